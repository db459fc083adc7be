"""Another program's SQLite database, read while its owner may be writing. Never a lock, never a side file.

With a write-ahead log or a rollback journal beside it the database is in use: it is read in one snapshot
(``mode=ro``), which holds nobody up. Otherwise it is read as an unchanging file (``immutable``), and what
was read counts only if the file is still the same afterwards.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeVar

from ....protocol.json_value import JSON
from ...sqlite import Connection, DatabaseError, OperationalError, open_uri, uri
from ..decode import decode_record
from ..lines import open_regular

_T = TypeVar("_T")
_MAGIC: Final = b"SQLite format 3\x00"
_BUSY_MS: Final = 500
_TRIES: Final = 3


class NoSuchDatabase(Exception):
    """The file is no SQLite database, or lacks the tables of the format. Says nothing about damage."""


class DamagedDatabase(Exception):
    """SQLite itself calls the file malformed."""


def side_files(path: Path) -> tuple[Path, ...]:
    """Files beside a database that hold a part of it or come and go with its use."""
    return tuple(path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))


def read_database(path: Path, tables: frozenset[str], read: Callable[[Connection], _T]) -> _T:
    """Return ``read(connection)`` as of one moment of the database at ``path``.

    Raises: OSError: it cannot be opened, its owner keeps it locked, or it never stood still.
        NoSuchDatabase. DamagedDatabase.
    """
    with open_regular(path) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise NoSuchDatabase("not a SQLite database")
    for _ in range(_TRIES):
        live = any(side.exists() for side in side_files(path))
        before = _stamp(path)
        result = _read_once(path, tables, read, live=live)
        if live or (_stamp(path) == before and not any(side.exists() for side in side_files(path))):
            return result
    raise OSError(errno.EAGAIN, "the database changed while it was read", str(path))


def _stamp(path: Path) -> tuple[int, int, int]:
    stat = os.stat(path)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _read_once(path: Path, tables: frozenset[str], read: Callable[[Connection], _T], *, live: bool) -> _T:
    try:
        with _opened(path, live=live) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            if missing := tables.difference(name for (name,) in found):
                raise NoSuchDatabase(f"no table {min(missing)}")
            return read(connection)
    except OperationalError as exc:
        if str(exc).startswith("no such"):
            raise NoSuchDatabase(str(exc)) from exc
        # Locked by its owner, no rights, no room: the file may be read at another time.
        raise OSError(errno.EBUSY, f"the database cannot be read now: {exc}", str(path)) from exc
    except DatabaseError as exc:
        raise DamagedDatabase(str(exc)) from exc


@contextmanager
def _opened(path: Path, *, live: bool) -> Iterator[Connection]:
    connection = open_uri(uri(path, "ro") + ("" if live else "&immutable=1"))
    try:
        connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}").fetchall()
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()


def columns_of(connection: Connection, table: str) -> frozenset[str]:
    """The column names of ``table``, a name of ours."""
    return frozenset(name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall())


def rows_of(
    connection: Connection, table: str, session_id: str, *, key: str = "session_id", order: str
) -> list[dict[str, JSON]]:
    """The rows of one session as objects. Text is taken as bytes, so that bad UTF-8 costs no row."""
    names = sorted(columns_of(connection, table))
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    picked = ", ".join(
        f"CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in quoted
    )
    kinds = ", ".join(f"typeof({name})" for name in quoted)
    cursor = connection.execute(
        f"SELECT {picked}, {kinds} FROM {table} WHERE {key} = ? ORDER BY {order}", (session_id,)
    )
    return [
        {name: _value(row[at], row[at + len(names)]) for at, name in enumerate(names)}
        for row in cursor.fetchall()
    ]


def _value(value: object, kind: str) -> JSON:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") if kind == "text" else f"({len(value)} bytes)"
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None


def signatures_of(
    connection: Connection, sessions: str, owned: dict[str, str], *, order: str, key: str = "session_id"
) -> dict[str, bytes]:
    """Every session of a store with what moves when it changes, in ``order``.

    That is the session's row, and of each table it owns rows of (``owned`` names the table's data
    column): their count, last row and last ``time_updated``; without such a time the size of their data.
    """
    facts: dict[str, list[object]] = {}
    for (name,) in connection.execute(f"SELECT id FROM {sessions} ORDER BY {order}").fetchall():
        if isinstance(name, str):
            facts[name] = [*rows_of(connection, sessions, name, key="id", order="id")]
    for table, data in owned.items():
        timed = "time_updated" in columns_of(connection, table)
        moved = "max(time_updated)" if timed else "0"
        grouped = f"SELECT {key}, count(*), max(rowid), {moved} FROM {table} GROUP BY {key}"
        for name, *told in connection.execute(grouped).fetchall():
            if name in facts:
                facts[name].append(told if told[-1] else [*told, _size(connection, table, data, key, name)])
    return {name: _digest(told) for name, told in facts.items()}


def _size(connection: Connection, table: str, data: str, key: str, name: str) -> object:
    sized = f"SELECT total(length({data})) FROM {table} WHERE {key} = ?"
    return connection.execute(sized, (name,)).fetchone()


def _digest(facts: list[object]) -> bytes:
    return blake2b(repr(facts).encode("utf-8", "replace"), digest_size=8).digest()


def json_column(value: JSON) -> JSON:
    """What a text column holds as JSON; None if it holds none."""
    if not isinstance(value, str):
        return None
    try:
        return decode_record(value.encode("utf-8", "replace"))
    except ValueError:
        return None
