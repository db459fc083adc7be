"""An index file of ours that is damaged: noticed, set aside, and built anew from journal and logs.

The index is derived (SPEC 6.12), so damage costs time and nothing else. What is not ours stays refused: a
file without our application id, or with a table we do not know, is never moved (SPEC 6.12.2, 6.12.3).

Damage is noticed in two ways. Opening reads a page of every table, which finds a file cut short or
overwritten near its roots in a millisecond. What a query or a write meets later leaves a mark beside the
file; the next opening then checks the whole of it, and sets it aside only if it is damaged indeed.

The damaged file is renamed, not deleted: somebody may want to look at it. Only the last one is kept, and
``forget`` removes it, because the words of a forgotten session may stand in it (SPEC 16.10).
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Final

from ..protocol.errors import Code, QueryError
from . import sqlite
from .guard import SIDE_SUFFIXES, Schema, carries_our_id, create_private_file
from .sqlite import Connection

logger = logging.getLogger(__name__)

_CORRUPT: Final = 11
_NOT_A_DATABASE: Final = 26
_ASIDE: Final = ".damaged-"
_MARK: Final = ".suspect"
PROBLEMS_SHOWN: Final = 20


def is_damage(error: BaseException | None) -> bool:
    """Whether SQLite says that the file itself is wrong, rather than full, busy or out of reach."""
    while error is not None:
        if isinstance(error, sqlite.DatabaseError):
            code = getattr(error, "sqlite_errorcode", None)
            if isinstance(code, int):
                return code & 0xFF in (_CORRUPT, _NOT_A_DATABASE)
            return "malformed" in str(error) or "not a database" in str(error)
        error = error.__cause__
    return False


def look_over(connection: Connection) -> None:
    """Read a page or two of every table: a millisecond, whatever the size. Raises: sqlite.DatabaseError."""
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    listing = "SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'"
    for name, virtual in connection.execute(listing).fetchall():
        if virtual:
            connection.execute(
                f'SELECT rowid FROM "{name}" WHERE "{name}" MATCH ? LIMIT 1', ("nothing",)
            ).fetchall()
        else:
            connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchall()
    path = file_of(connection)
    if path and not Path(f"{path}-wal").exists():
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        if Path(path).stat().st_size < pages * size:
            raise sqlite.DatabaseError("database disk image is malformed: it is cut short")


def file_of(connection: Connection) -> str:
    """The path of the file behind a connection; empty for one in memory."""
    return next(
        (str(row[2]) for row in connection.execute("PRAGMA database_list").fetchall() if row[1] == "main"), ""
    )


def problems_of(connection: Connection) -> list[str]:
    """SQLite's own check of pages and indexes, full-text ones included; empty if all is well.

    Reads the whole file: seconds for a million events.
    """
    virtual = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
    try:
        for (table,) in connection.execute(virtual).fetchall():
            # FTS5 checks what a connection remembers of its segments; only a search brings that up to date
            connection.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH 'nothing' LIMIT 1").fetchall()
        check = f"PRAGMA integrity_check({PROBLEMS_SHOWN})"
        found = [str(row[0]) for row in connection.execute(check).fetchall()]
    except sqlite.DatabaseError as exc:
        return [str(exc)]  # so damaged that it cannot be checked to the end
    return [] if found == ["ok"] else found


def is_sound(path: Path) -> bool:
    """Whether the whole file at a path, which is ours alone now, can be read and agrees with itself."""
    try:
        connection = sqlite.open_uri(
            sqlite.uri(path, "rw")
        )  # one that may not write leaves side files behind
    except sqlite.Error:
        return False
    try:
        look_over(connection)
        return not problems_of(connection)
    except sqlite.Error:
        return False
    finally:
        connection.close()


def refuse_damaged_journal(path: Path) -> None:
    """Raises: QueryError PERSISTENCE_FAILED: an index must not be given up that no journal can replace."""
    if not is_sound(path):
        text = f"the journal {path} is damaged; the index was left as it is"
        raise QueryError(Code.PERSISTENCE_FAILED, text)


def mark_suspect(path: Path) -> None:
    """Let the next opening check the whole file. A mark that cannot be made is not worth a failure."""
    try:
        create_private_file(_mark_of(path))
    except OSError as exc:
        logger.warning("a damaged index could not be marked: %s", exc)


def is_suspect(path: Path) -> bool:
    """Whether ``mark_suspect`` was called since the file was last checked or replaced."""
    return _mark_of(path).exists()


def clear_suspicion(path: Path) -> None:
    """The file was checked and found sound, or replaced."""
    _mark_of(path).unlink(missing_ok=True)


def set_aside(path: Path, schema: Schema) -> Path:
    """Rename a derived file of ours with its side files, so that it is built anew. Returns where it is now.

    One that was set aside earlier is removed. Raises: QueryError with ``schema.failure`` if the first page
    does not carry our application id; OSError.
    """
    carries_our_id(path, schema)
    for older in set_aside_files(path):
        older.unlink(missing_ok=True)
    aside = path.with_name(f"{path.name}{_ASIDE}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    for suffix in SIDE_SUFFIXES:
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(aside.with_name(aside.name + suffix))
    path.rename(aside)
    clear_suspicion(path)
    return aside


def set_aside_files(path: Path) -> list[Path]:
    """The damaged files that were set aside, side files included, in the order of their names."""
    prefix = path.name + _ASIDE
    try:
        return sorted(entry for entry in path.parent.iterdir() if entry.name.startswith(prefix))
    except FileNotFoundError:
        return []


def _mark_of(path: Path) -> Path:
    return path.with_name(path.name + _MARK)


def suspect(index_path: str, error: BaseException) -> None:
    """Hear of an error: if the index is damaged, its next opening checks and replaces it. Any thread."""
    if is_damage(error) and not sqlite.is_memory(index_path) and not is_suspect(Path(index_path)):
        logger.error("the index seems to be damaged: the next start checks it and builds it anew if it is")
        mark_suspect(Path(index_path))
