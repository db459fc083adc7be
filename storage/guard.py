"""Who may open a database file, decided before anything is changed (SPEC 6.12).

A file of ours carries our application id and a schema version. Anything else is refused and stays
byte for byte as it was: the path may be a slip of the keyboard and the file somebody's canonical store.

Looking must leave no trace either. A read-only connection to a file in WAL mode still creates its side
files, so the first look is with ``immutable=1`` (no locks, no side files). Only when a side file holds
something not yet in the main file is there a second look: in place if the main file already says it is
ours, else on a private copy.
"""

from __future__ import annotations

import enum
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from ..protocol.errors import Code, QueryError
from . import sqlite
from .sqlite import Connection, JournalMode, Synchronous

SQLITE_MAGIC: Final = b"SQLite format 3\x00"
COPY_MAX_BYTES: Final = 64 * 1024 * 1024
"""A file with no table of its own and a pending side file is copied to look at it; ours are tiny then."""

SIDE_SUFFIXES: Final = ("-wal", "-shm", "-journal")

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


@attrs.frozen(kw_only=True)
class Schema:
    """What makes a file one of ours. ``tables``: every table it may hold, shadow tables included.

    ``derived``: the content can be built again, so another version is dropped and rebuilt. A file that is
    not derived is migrated by ``migrate`` (from an older version) or refused (from a newer one).
    ``create`` makes all tables in an empty database, inside the guard's transaction.
    """

    name: str
    application_id: int
    version: int
    tables: frozenset[str]
    create: Callable[[Connection], None]
    failure: Code = Code.INDEX_FAILED
    derived: bool = True
    migrate: Callable[[Connection, int], None] | None = None
    page_size: int | None = None
    gives_back: bool = False
    """Pages that become free can be given back to the file system in steps (``auto_vacuum``)."""


class Opening(enum.Enum):
    """What the guard did with a file it accepted."""

    CREATED = "created"
    USED = "used"
    REBUILT = "rebuilt"
    MIGRATED = "migrated"


class _Action(enum.Enum):
    REFUSE = 0
    INITIALISE = 1
    USE = 2
    OTHER_VERSION = 3


@attrs.frozen
class _Seen:
    application_id: int
    version: int
    tables: frozenset[str]


def open_guarded(
    path: str | Path,
    schema: Schema,
    *,
    journal_mode: JournalMode = "wal",
    synchronous: Synchronous = "NORMAL",
    cache_kib: int = sqlite.WRITER_CACHE_KIB,
) -> tuple[Connection, Opening]:
    """Open ``path`` for writing if the decision table of SPEC 6.12.2 allows it, else leave it untouched.

    A relative path is resolved against the current directory. Missing directories are created with mode
    0700 and a missing file with 0600; existing modes stay. ``:memory:`` names are accepted.

    Returns: the writer connection, and what was done.
    Raises: QueryError with ``schema.failure``: the file is refused, or cannot be read, made or opened.
    """
    if sqlite.is_memory(path):
        connection = sqlite.connect_writer(path, journal_mode=None, cache_kib=cache_kib)
        _initialise(connection, schema)
        return connection, Opening.CREATED
    place = Path(path).absolute()
    try:
        created = create_private_file(place)
        action = _Action.INITIALISE if created else _examine(place, schema)
        connection = sqlite.connect_writer(place, journal_mode=None, cache_kib=cache_kib)
        try:
            opening = _apply(connection, schema, action)
            # only now: initialising under a rollback journal leaves the whole schema in the main file,
            # so that a crash right after it is judged by the first, traceless look
            connection.execute(f"PRAGMA journal_mode={journal_mode}").fetchall()
            connection.execute(f"PRAGMA synchronous={synchronous}")
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite.Error) as exc:
        raise QueryError(schema.failure, f"{schema.name} {place} cannot be opened: {exc}") from exc
    return connection, opening


def discard(path: Path, schema: Schema) -> None:
    """Delete a derived file of ours, damaged or not, with its side files, so that it is built anew.

    Raises: QueryError with ``schema.failure`` if its first page does not carry our application id.
    """
    carries_our_id(path, schema)
    for suffix in (*SIDE_SUFFIXES, ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def carries_our_id(path: Path, schema: Schema) -> None:
    """Return if ``path`` is a derived file of ours by its first page.

    Raises: QueryError with ``schema.failure``.
    """
    head = _head(path)
    if not schema.derived or head[:16] != SQLITE_MAGIC or _application_id(head) != schema.application_id:
        raise _refusal(path, schema, "it does not carry our application id")


def create_private_directory(path: Path) -> None:
    """Make ``path`` and its missing parents, each with mode 0700 whatever the umask allows beyond."""
    missing = [entry for entry in (path, *path.parents) if not entry.exists()]
    for directory in reversed(missing):
        try:
            directory.mkdir(mode=DIRECTORY_MODE)
        except FileExistsError:
            if not directory.is_dir():
                raise


def create_private_file(path: Path) -> bool:
    """Create ``path`` exclusively with mode 0600. Returns False if it was there already."""
    create_private_directory(path.parent)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return False
    os.close(handle)
    return True


def _examine(path: Path, schema: Schema) -> _Action:
    if not path.is_file():
        raise _refusal(path, schema, "it is not a file")
    head = _head(path)
    pending = [side for side in _side_files(path) if side.exists() and side.stat().st_size]
    if head and head[:16] != SQLITE_MAGIC:
        raise _refusal(path, schema, "it is no SQLite database")
    if not pending:
        action = _decide(_look(path, "ro&immutable=1"), schema)
    elif head and _application_id(head) == schema.application_id:
        hot_journal = any(side.name.endswith("-journal") for side in pending)
        action = _decide(_look(path, "rw" if hot_journal else "ro"), schema)
    elif head and _application_id(head):
        action = _Action.REFUSE
    else:
        action = _decide(_look_at_copy(path, pending, schema), schema)
    if action is _Action.REFUSE:
        raise _refusal(path, schema, "it holds something that is not ours")
    return action


def _decide(seen: _Seen, schema: Schema) -> _Action:
    """The table of SPEC 6.12.2."""
    if seen.application_id == 0:
        return _Action.REFUSE if seen.tables else _Action.INITIALISE
    if seen.application_id != schema.application_id or not seen.tables <= schema.tables:
        return _Action.REFUSE
    return _Action.USE if seen.version == schema.version else _Action.OTHER_VERSION


def _look(path: Path, mode: str) -> _Seen:
    connection = sqlite.open_uri(sqlite.uri(path, mode))
    try:
        ((application_id,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    finally:
        connection.close()
    names = frozenset(name for (name,) in tables if not name.startswith("sqlite_"))
    return _Seen(application_id, version, names)


def _look_at_copy(path: Path, pending: list[Path], schema: Schema) -> _Seen:
    main = path.stat().st_size
    if main and _look(path, "ro&immutable=1").tables:
        raise _refusal(path, schema, "it holds something that is not ours")
    if main + sum(side.stat().st_size for side in pending) > COPY_MAX_BYTES:
        raise _refusal(path, schema, "it has a large unfinished journal that is not ours")
    with tempfile.TemporaryDirectory(prefix="session-query-") as directory:
        copy = Path(directory, path.name)
        for source in (path, *pending):
            shutil.copyfile(source, Path(directory, source.name))
        return _look(copy, "rw")


def _apply(connection: Connection, schema: Schema, action: _Action) -> Opening:
    if action is _Action.USE:
        connection.execute("BEGIN IMMEDIATE")  # a write-protected file says so now, not at the first write
        connection.execute("ROLLBACK")
        return Opening.USED
    if action is _Action.INITIALISE:
        _initialise(connection, schema)
        return Opening.CREATED
    ((found,),) = connection.execute("PRAGMA user_version").fetchall()
    if schema.derived:
        with sqlite.transaction(connection):
            _drop_all(connection)
            _stamp(connection, schema)
        if schema.gives_back:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")  # of empty tables; what was dropped leaves the file at once
        return Opening.REBUILT
    if found > schema.version or schema.migrate is None:
        raise QueryError(schema.failure, f"{schema.name} was written by a newer version ({found})")
    with sqlite.transaction(connection):
        schema.migrate(connection, found)
        connection.execute(f"PRAGMA user_version={schema.version}")
    return Opening.MIGRATED


def _initialise(connection: Connection, schema: Schema) -> None:
    if schema.page_size is not None:
        connection.execute(f"PRAGMA page_size={schema.page_size}")
    if schema.gives_back:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    with sqlite.transaction(connection):
        _stamp(connection, schema)


def _stamp(connection: Connection, schema: Schema) -> None:
    connection.execute(f"PRAGMA application_id={schema.application_id}")
    connection.execute(f"PRAGMA user_version={schema.version}")
    schema.create(connection)


def _drop_all(connection: Connection) -> None:
    """Drop every table, virtual ones first: they take their shadow tables with them."""
    listing = "SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type = 'table'"
    rows = connection.execute(listing).fetchall()
    ordinary = [name for name, virtual in rows if not virtual and not name.startswith("sqlite_")]
    for name in [name for name, virtual in rows if virtual] + ordinary:
        connection.execute(f"DROP TABLE IF EXISTS {_quoted(name)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


def _application_id(head: bytes) -> int:
    return int.from_bytes(head[68:72], "big", signed=True)


def _side_files(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-journal")


def _refusal(path: Path, schema: Schema, why: str) -> QueryError:
    return QueryError(schema.failure, f"{schema.name} {path} is refused and left as it is: {why}")
