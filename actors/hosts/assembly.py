"""How the shipped hosts put a service together: data directory, sources, tokens, spill."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from ...storage.readers.registry import READERS
from ...storage.sources.spec import (
    SourceList,
    SourceSpec,
    find_sources,
    load_list,
    merged,
    save_list,
    without,
)
from ...storage.store import INDEX_NAME
from ...storage.tokens import OPERATOR_FILE
from ..config import ServiceConfig, Source

INLINE_BYTES: Final = 50_000
"""What shipped hosts show inline of one result (SPEC 16.12)."""


def chosen_sources(data_dir: Path, given: tuple[Source, ...], *, retain: bool = False) -> tuple[Source, ...]:
    """The sources to read: what was given is added to what is remembered, and remembered.

    The usual places of every known tool are looked at anew each time, so that a tool installed later is
    found; only a directory whose first logs were named reads nothing but what is named.
    Raises: QueryError INVALID_CONFIG: the remembered list cannot be read.
    """
    known = remember_sources(data_dir, given, retain=retain) if given else load_list(data_dir)
    specs = [] if known is None else list(known.named)
    if known is None or known.usual_places:
        left_out = () if known is None else known.left_out
        found = find_sources(READERS, os.environ, Path.home(), sys.platform)
        specs = merged(without(found, left_out), specs)
    return tuple(Source(format=spec.format, root=spec.root, retain=spec.retain or retain) for spec in specs)


def remember_sources(data_dir: Path, given: tuple[Source, ...], *, retain: bool = False) -> SourceList:
    """Add sources to the list of a data directory, for its next service; returns the list.

    Where logs were read from the usual places so far, these go on being read.
    Raises: QueryError INVALID_CONFIG: the remembered list cannot be read.
    """
    known = load_list(data_dir) or SourceList(usual_places=(data_dir / INDEX_NAME).exists())
    known = known.with_named(
        SourceSpec(format=source.format, root=source.root, retain=retain) for source in given
    )
    save_list(data_dir, known)
    return known


def leave_out_source(data_dir: Path, source: Source) -> None:
    """Have the services of a data directory not read a source any more, usual place or not.

    Raises: QueryError INVALID_CONFIG: the remembered list cannot be read.
    """
    known = load_list(data_dir) or SourceList(usual_places=True)
    save_list(data_dir, known.dropping(SourceSpec(format=source.format, root=source.root)))


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
