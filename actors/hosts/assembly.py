"""How the shipped hosts put a service together: data directory, sources, tokens, spill."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from ...storage.readers.registry import READERS
from ...storage.sources.spec import SourceSpec, find_sources, load_list, merged, save_list
from ...storage.tokens import OPERATOR_FILE
from ..config import ServiceConfig, Source

INLINE_BYTES: Final = 50_000
"""What shipped hosts show inline of one result (SPEC 16.12)."""


def chosen_sources(data_dir: Path, given: tuple[Source, ...], *, retain: bool = False) -> tuple[Source, ...]:
    """The sources to read: what was given is added to what is remembered, and remembered.

    With nothing given and nothing remembered, the usual places of every known tool are looked at anew each
    time, so that a tool installed later is found.
    Raises: QueryError INVALID_CONFIG: the remembered list cannot be read.
    """
    remembered = load_list(data_dir)
    if given:
        specs = merged(
            remembered or (),
            [SourceSpec(format=source.format, root=source.root, retain=retain) for source in given],
        )
        save_list(data_dir, specs)
    elif remembered is not None:
        specs = remembered
    else:
        specs = find_sources(READERS, os.environ, Path.home(), sys.platform)
    return tuple(Source(format=spec.format, root=spec.root, retain=spec.retain or retain) for spec in specs)


def host_config(
    data_dir: Path, given: tuple[Source, ...], *, retain: bool = False, watch: bool, canonical: bool = False
) -> ServiceConfig:
    """The configuration of a shipped host on a data directory."""
    return ServiceConfig(
        data_dir=data_dir,
        sources=chosen_sources(data_dir, given, retain=retain),
        retain=retain,
        watch=watch,
        canonical_workspaces=canonical,
        max_inline_bytes=INLINE_BYTES,
    )


def operator_token(data_dir: Path) -> str | None:
    """The local operator's token, if this user may read it."""
    try:
        return (data_dir / OPERATOR_FILE).read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None
