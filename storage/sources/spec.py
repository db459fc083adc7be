"""Which logs to read: sources, their usual places, and the list the data directory remembers."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from ...protocol.errors import Code, QueryError
from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from ..guard import create_private_directory
from ..readers.seam import Reader

LIST_NAME: Final = "sources.json"
SOURCES_VARIABLE: Final = "SESSION_QUERY_SOURCES"
"""``FORMAT=PATH`` entries joined by ``os.pathsep``; replaces what would be found in the usual places."""


@attrs.frozen(kw_only=True)
class SourceSpec:
    """One place with logs: a reader's format, a root (folder or single log), whether to keep copies.

    ``retain``: events are copied into the journal as they are read, so that the history outlives its log.
    """

    format: str
    root: Path
    retain: bool = False


@attrs.frozen
class SourceList:
    """What a data directory remembers: sources somebody named, in order.

    ``usual_places``: those of every known tool are read as well, but for ``left_out``.
    """

    named: tuple[SourceSpec, ...] = ()
    usual_places: bool = False
    left_out: tuple[SourceSpec, ...] = ()

    def with_named(self, added: Iterable[SourceSpec]) -> SourceList:
        """The list with further sources, which are no longer left out."""
        named = merged(self.named, added)
        left_out = without(self.left_out, named)
        return attrs.evolve(self, named=tuple(named), left_out=tuple(left_out))

    def dropping(self, spec: SourceSpec) -> SourceList:
        """The list without a source, which is left out from now on wherever it is found."""
        left_out = merged(self.left_out, [attrs.evolve(spec, retain=False)])
        return attrs.evolve(self, named=tuple(without(self.named, [spec])), left_out=tuple(left_out))


class BadSource(ValueError):
    """An entry that is no source: malformed, or of a format nobody reads. The message names it."""


def parse_source(entry: str, formats: Iterable[str]) -> SourceSpec:
    """Read ``FORMAT=PATH``; ``~`` is expanded, a relative path resolved. Raises: BadSource."""
    name, mark, path = entry.partition("=")
    if not mark or not path:
        raise BadSource(f"a source is FORMAT=PATH, not {entry!r}")
    if name not in formats:
        raise BadSource(f"unknown format {name!r}; known are {', '.join(sorted(formats))}")
    return SourceSpec(format=name, root=Path(path).expanduser().absolute())


def find_sources(
    readers: Mapping[str, Reader], environ: Mapping[str, str], home: Path, platform: str
) -> list[SourceSpec]:
    """The roots that exist now: those of ``SESSION_QUERY_SOURCES`` if it is set, else the usual places.

    An entry of the variable is taken whether it exists or not. Usual places that do not exist are left
    out; ``usual_roots`` lists them all, for watching.
    Raises: BadSource: a malformed entry in the variable.
    """
    named = environ.get(SOURCES_VARIABLE)
    if named is not None:
        return [parse_source(entry, readers) for entry in named.split(os.pathsep) if entry.strip()]
    return [spec for spec in usual_roots(readers, environ, home, platform) if _exists(spec.root)]


def usual_roots(
    readers: Mapping[str, Reader], environ: Mapping[str, str], home: Path, platform: str
) -> list[SourceSpec]:
    """Every reader's usual places, in the readers' order, each once, whether they exist or not."""
    found = [
        SourceSpec(format=name, root=root)
        for name, reader in readers.items()
        for root in reader.usual_places(environ, home, platform)
    ]
    return list(dict.fromkeys(found))


def load_list(data_dir: Path) -> SourceList | None:
    """The remembered sources; None if nothing was ever remembered.

    Raises: QueryError INVALID_CONFIG: the file is there and cannot be read, or is not a list of ours.
    """
    path = data_dir / LIST_NAME
    try:
        value = decode_json(path.read_bytes())
        if not isinstance(value, dict):
            raise ValueError("it is no list of sources")
        return SourceList(
            tuple(map(_entry, _entries(value, "sources"))),
            value.get("usual_places") is True,
            tuple(map(_entry, _entries(value, "left_out"))) if "left_out" in value else (),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise QueryError(Code.INVALID_CONFIG, f"{path} cannot be read: {exc}") from exc


def save_list(data_dir: Path, sources: SourceList) -> None:
    """Remember the sources: written beside the old list and moved over it. Raises: OSError."""
    create_private_directory(data_dir)
    # a name that is no UTF-8 holds lone surrogates here; our JSON keeps them as escapes
    content: dict[str, JSON] = {
        "usual_places": sources.usual_places,
        "sources": [
            {"format": spec.format, "root": str(spec.root), "retain": spec.retain}
            for spec in merged(sources.named)
        ],
    }
    if sources.left_out:
        content["left_out"] = [{"format": spec.format, "root": str(spec.root)} for spec in sources.left_out]
    handle, name = tempfile.mkstemp(prefix=LIST_NAME, dir=data_dir)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encode_json(content) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, data_dir / LIST_NAME)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def merged(*lists: Iterable[SourceSpec]) -> list[SourceSpec]:
    """The sources of all lists, in order, one for each format and folder; a later ``retain`` wins.

    A link to a folder is that folder, under the name it was given first: its logs are not read twice.
    """
    found: dict[tuple[str, str], SourceSpec] = {}
    for sources in lists:
        for spec in sources:
            key = _key(spec)
            found[key] = attrs.evolve(found.get(key, spec), retain=spec.retain)
    return list(found.values())


def without(sources: Iterable[SourceSpec], others: Iterable[SourceSpec]) -> list[SourceSpec]:
    """The sources that are none of the others, whatever links either is named by."""
    keys = set(map(_key, others))
    return [spec for spec in sources if _key(spec) not in keys]


def _key(spec: SourceSpec) -> tuple[str, str]:
    return spec.format, os.path.realpath(spec.root)


def _entries(value: dict[str, JSON], name: str) -> list[JSON]:
    entries = value.get(name)
    if not isinstance(entries, list):
        raise ValueError("it is no list of sources")
    return entries


def _entry(value: JSON) -> SourceSpec:
    if isinstance(value, dict):
        name, root, retain = value.get("format"), value.get("root"), value.get("retain", False)
        if isinstance(name, str) and isinstance(root, str) and isinstance(retain, bool):
            return SourceSpec(format=name, root=Path(root), retain=retain)
    raise ValueError("an entry is no source")


def _exists(root: Path) -> bool:
    try:
        return root.exists()
    except OSError:
        return True  # it is there and cannot be looked into: worth a line in the status
