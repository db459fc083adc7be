"""Write retained logs back as files, byte for byte. Works beside a running service: it only reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final

import attrs

from ..protocol.errors import Code, QueryError
from . import sqlite
from .guard import FILE_MODE, create_private_directory
from .journal import Original, OriginalDamaged, Originals
from .journal.schema import APPLICATION_ID, VERSION
from .store import JOURNAL_NAME

CACHE_KIB: Final = 2048


@attrs.frozen(kw_only=True)
class Exported:
    """What became of one kept log. ``problem``: why it could not be written whole; empty if it was."""

    original: Original
    path: Path
    bytes: int = 0
    problem: str = ""


def open_originals(data_dir: Path) -> tuple[sqlite.Connection, Originals]:
    """The kept logs of a data directory, over a connection of their own.

    Raises: QueryError PERSISTENCE_FAILED: there is no journal, or it is of another version.
    """
    path = data_dir / JOURNAL_NAME
    try:
        connection = sqlite.connect_reader(path, cache_kib=CACHE_KIB)
        ((application_id,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    except sqlite.Error as exc:
        raise QueryError(Code.PERSISTENCE_FAILED, f"{path} cannot be read: {exc}") from exc
    if (application_id, version) != (APPLICATION_ID, VERSION):
        connection.close()
        raise QueryError(
            Code.PERSISTENCE_FAILED, f"{path} is no journal of this version; start the service once"
        )
    return connection, Originals(connection)


def export(originals: Originals, wanted: Iterable[Original], folder: Path) -> Iterator[Exported]:
    """Write logs under ``folder/<format>/<path under its root>``. Nothing that is there is overwritten.

    Two logs of the same name, from two roots, get a number behind their names. Raises: OSError.
    """
    used: set[Path] = set()
    for original in wanted:
        path = _path_of(folder, original, used)
        used.add(path)
        yield _write(originals, original, path)


def _write(originals: Originals, original: Original, path: Path) -> Exported:
    create_private_directory(path.parent)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), FILE_MODE)
    except FileExistsError:
        return Exported(original=original, path=path, problem="a file of this name is there already")
    count = 0
    problem = ""
    with os.fdopen(handle, "wb") as file:
        try:
            for part in originals.read(original.number):
                file.write(part)
                count += len(part)
        except OriginalDamaged as exc:
            problem = str(exc)
    os.utime(path, ns=(original.changed_ns, original.changed_ns))
    return Exported(original=original, path=path, bytes=count, problem=problem)


def _path_of(folder: Path, original: Original, used: set[Path]) -> Path:
    """Where a log goes: always below ``folder``, whatever its name is."""
    parts = [part for part in PurePath(original.name).parts if part not in ("..", os.sep, ".", "")]
    path = folder.joinpath(original.source, *(parts or ["log"]))
    number = 1
    while path in used:
        number += 1
        path = path.with_name(f"{path.name if number == 2 else path.name.rpartition('.')[0]}.{number}")
    return path
