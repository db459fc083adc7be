"""SQLite behind one door: which library, what it must be able to do, and how a connection is prepared.

``pysqlite3`` (a recent SQLite, statically linked) is used where it is installed, else the standard
library. Both are untyped or half typed; the rest of the package sees the two protocols below only.

A connection has one owner at a time. Connections are in autocommit mode (``isolation_level=None``):
whoever wants a transaction writes ``BEGIN IMMEDIATE`` or uses ``transaction``.
"""

from __future__ import annotations

import importlib
import os
import secrets
import sqlite3 as _standard
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote

SqlValue: TypeAlias = "int | float | str | bytes | memoryview | None"
Parameters: TypeAlias = "Sequence[SqlValue] | Mapping[str, SqlValue]"
Row: TypeAlias = tuple[Any, ...]
"""What a row holds is what the SQL text says; no type checker can know it. The one ``Any`` of the room."""

JournalMode: TypeAlias = Literal["wal", "delete", "truncate", "persist"]
JOURNAL_MODES: Final[tuple[JournalMode, ...]] = ("wal", "delete", "truncate", "persist")
Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

MINIMUM_VERSION: Final = (3, 40, 0)
"""STRICT tables, UPSERT, RETURNING, ``vfs=memdb``; the oldest SQLite our tests have run on."""
FTS5_SECURE_DELETE_VERSION: Final = (3, 42, 0)

BUSY_TIMEOUT_MS: Final = 10_000
"""Only a checkpoint, a rollback journal or ``:memory:`` makes our own connections wait for each other."""
READER_CACHE_KIB: Final = 4 * 1024
"""Page cache of a connection that searches. It forgets all of it with every commit of the writer, so that a
service under work keeps a larger one for one search: at 120,000 events 16 MiB made none any faster."""
READER_CACHE_MAX_KIB: Final = 16 * 1024
CACHE_SHARE: Final = 32
"""Of a large index its 32nd part: at a million events a search in one workspace took half as long again
with 4 MiB."""
WRITER_CACHE_KIB: Final = 4 * 1024
"""Of one that takes in what is appended; with 32 MiB it costs the same (230-250 us an event, 50 sessions)."""
BULK_CACHE_KIB: Final = 32 * 1024
"""Of a writer while an index is built: with 8 MiB that took a tenth more CPU, and twice the time."""


class Cursor(Protocol):
    """A statement that ran. Fetch it whole: a half-read cursor pins the write-ahead log."""

    @property
    def lastrowid(self) -> int | None: ...
    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Row | None: ...
    def fetchmany(self, size: int = ..., /) -> list[Row]: ...
    def fetchall(self) -> list[Row]: ...
    def __iter__(self) -> Iterator[Row]: ...
    def close(self) -> None: ...


class Connection(Protocol):
    """The part of a DB-API connection we use. ``interrupt`` alone may be called from any thread."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def total_changes(self) -> int: ...
    def execute(self, sql: str, parameters: Parameters = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Cursor: ...
    def interrupt(self) -> None: ...
    def create_function(
        self, name: str, narg: int, func: Callable[..., SqlValue] | None, /, *, deterministic: bool = ...
    ) -> None: ...
    def set_progress_handler(self, handler: Callable[[], bool] | None, n: int) -> None: ...
    def close(self) -> None: ...


class SQLiteTooOld(RuntimeError):
    """The only SQLite at hand lacks something this product needs; the message says what and where."""


def _library() -> ModuleType:
    try:
        return importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return _standard


_sqlite: Final = _library()

Error: Final[type[Exception]] = _sqlite.Error
DatabaseError: Final[type[Exception]] = _sqlite.DatabaseError
OperationalError: Final[type[Exception]] = _sqlite.OperationalError
IntegrityError: Final[type[Exception]] = _sqlite.IntegrityError

LIBRARY: Final[str] = _sqlite.__name__.split(".")[0]
VERSION: Final[tuple[int, int, int]] = _sqlite.sqlite_version_info
FTS5_SECURE_DELETE: Final = VERSION >= FTS5_SECURE_DELETE_VERSION
"""Whether FTS5 can take words out of its segments on delete; without it a deletion must ``optimize``."""


def check_library(version: tuple[int, ...] = VERSION, options: frozenset[str] | None = None) -> None:
    """Refuse a SQLite that cannot serve. ``options``: compile options, asked of the library if None.

    Raises: SQLiteTooOld, with the version found, the one needed and the library that was loaded.
    """
    if version < MINIMUM_VERSION:
        found, needed = (".".join(map(str, v)) for v in (version, MINIMUM_VERSION))
        raise SQLiteTooOld(
            f"SQLite {found} (from {LIBRARY}) is too old, {needed} or newer is needed; "
            "install pysqlite3-binary or a newer Python"
        )
    if "ENABLE_FTS5" not in (compile_options() if options is None else options):
        raise SQLiteTooOld(
            f"SQLite from {LIBRARY} was built without FTS5, the full-text module; install pysqlite3-binary"
        )


def compile_options() -> frozenset[str]:
    """The options the loaded SQLite was compiled with, without their ``SQLITE_`` prefix."""
    connection: Connection = _sqlite.connect(":memory:")
    try:
        return frozenset(name for (name,) in connection.execute("PRAGMA compile_options").fetchall())
    finally:
        connection.close()


def memory_path() -> str:
    """A fresh path for a database in memory that several connections of this process may open.

    It lives while a connection to it is open. There is no write-ahead log in memory: a writer waits
    for running readers, at most ``BUSY_TIMEOUT_MS``.
    """
    return f":memory:{secrets.token_hex(8)}"


def is_memory(path: str | Path) -> bool:
    """Whether ``path`` names a database in memory: ``:memory:`` or what ``memory_path`` gave."""
    return str(path).startswith(":memory:")


def connect_writer(
    path: str | Path,
    *,
    journal_mode: JournalMode | None = "wal",
    synchronous: Synchronous = "NORMAL",
    cache_kib: int = WRITER_CACHE_KIB,
    secure_delete: bool = True,
) -> Connection:
    """Open an existing database for writing (one in memory is created). One writer a file: see ``lock``.

    Args: ``journal_mode`` None leaves the file's own. ``secure_delete``: what is deleted is overwritten
        with zeros in the same transaction (SPEC 16.10).
    Raises: OperationalError if the file is missing or cannot be opened.
    """
    connection = open_uri(uri(path, "rw"))
    try:
        prepare_connection(connection, cache_kib=cache_kib)
        connection.execute(f"PRAGMA secure_delete={'ON' if secure_delete else 'OFF'}").fetchall()
        if journal_mode is not None:
            connection.execute(f"PRAGMA journal_mode={journal_mode}").fetchall()
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def reader_cache_kib(path: str | Path) -> int:
    """The page cache of a connection that searches: from 4 MiB, of a large file its 32nd part, to 16 MiB."""
    try:
        size = os.stat(path).st_size
    except OSError:  # in memory, or soon to be missed by whoever opens it
        size = 0
    return min(max(READER_CACHE_KIB, size // CACHE_SHARE // 1024), READER_CACHE_MAX_KIB)


def connect_reader(path: str | Path, *, cache_kib: int | None = None, mmap_bytes: int = 0) -> Connection:
    """Open an existing database read-only (``mode=ro``); every attempt to write fails.

    Args: cache_kib: of the page cache; None: ``reader_cache_kib``, as for searching.
    Raises: OperationalError if the file is missing or cannot be opened.
    """
    connection = open_uri(uri(path, "ro"))
    try:
        cache_kib = reader_cache_kib(path) if cache_kib is None else cache_kib
        prepare_connection(connection, cache_kib=cache_kib, mmap_bytes=mmap_bytes)
        connection.execute("PRAGMA query_only=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_connection(connection: Connection, *, cache_kib: int, mmap_bytes: int = 0) -> None:
    """The pragmas every connection of ours gets. None of them changes the file.

    ``temp_store=MEMORY``: no words of a session reach a temporary file. ``trusted_schema=OFF``: a
    crafted file cannot call functions from its schema.
    """
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}").fetchall()
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute("PRAGMA trusted_schema=OFF")
    resize_cache(connection, cache_kib)
    if mmap_bytes:
        connection.execute(f"PRAGMA mmap_size={mmap_bytes}").fetchall()


def resize_cache(connection: Connection, cache_kib: int) -> None:
    """Let a connection keep at most so many KiB of pages; what it has above that is freed at once."""
    connection.execute(f"PRAGMA cache_size=-{cache_kib}").fetchall()


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """``BEGIN IMMEDIATE`` … ``COMMIT``; anything raised inside rolls everything back and goes on.

    Inside another transaction it is a savepoint: what is raised undoes this part alone.
    """
    nested = connection.in_transaction
    connection.execute("SAVEPOINT part" if nested else "BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("RELEASE part" if nested else "COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk or an interrupt may have rolled back already
            connection.execute("ROLLBACK TO part" if nested else "ROLLBACK")
            if nested:
                connection.execute("RELEASE part")
        raise


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """One read transaction: every statement inside sees the same state. Never across an ``await``."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def checkpoint(connection: Connection) -> None:
    """Copy as much of the write-ahead log into the database file as no reader keeps from it."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def empty_log(connection: Connection, *, wait: bool = True) -> bool:
    """Move the write-ahead log into the database file and truncate it to nothing (SPEC 16.10).

    Returns: False if a reader still needs the log: ask again when it has finished. True as well where
    there is no write-ahead log. Waits for readers at most ``BUSY_TIMEOUT_MS``, or not at all.
    """
    try:
        if not wait:
            connection.execute("PRAGMA busy_timeout=0").fetchall()
        rows = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        if not wait:
            connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}").fetchall()
    return not rows or rows[0][0] == 0


def uri(path: str | Path, mode: str) -> str:
    """The SQLite URI for ``path``; ``:memory:`` names become shared in-process databases."""
    if is_memory(path):
        name = str(path).removeprefix(":memory:") or "session-query"
        return f"file:/{quote(name)}?vfs=memdb&mode={mode}"
    absolute = str(Path(path).absolute()).replace("\\", "/")
    if not absolute.startswith("/"):
        absolute = "/" + absolute  # a Windows drive letter
    return f"file:{quote(absolute, safe='/:')}?mode={mode}"


def open_uri(address: str) -> Connection:
    """A bare connection, as ``uri`` spells it and without any pragma; for looks that leave no trace."""
    connection: Connection = _sqlite.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    return connection
