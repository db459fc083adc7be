"""The catalog's tables. They live in index.db: what was read and what it became commit together.

Dropping the index drops the catalog, and everything is read again. Paths, places and ids are blobs:
file names need not be UTF-8, ids may hold lone surrogates.
"""

from __future__ import annotations

from typing import Final

from ..sqlite import Connection

CATALOG_VERSION: Final = 5

_STATEMENTS: Final = (
    "CREATE TABLE catalog_root(root_id INTEGER PRIMARY KEY AUTOINCREMENT, format TEXT NOT NULL,"
    " root BLOB NOT NULL, label TEXT NOT NULL, walked_ms INT NOT NULL DEFAULT 0,"
    " missing INT NOT NULL DEFAULT 0)",
    # A root and path stand here once: all units are in memory. lies: see whereabouts.
    # offset, prefix, state: the checkpoint; NULL where the format is rewritten whole.
    # epoch counts restarts: sessions of an older epoch are gone when the read is through.
    # tail_*: what a last line without line feed counted for; it comes again with the next read.
    """CREATE TABLE catalog_unit(
        unit_id INTEGER PRIMARY KEY AUTOINCREMENT, root_id INT NOT NULL, lies BLOB NOT NULL, stamp BLOB,
        version INT NOT NULL DEFAULT 0,
        offset INT, prefix BLOB, state BLOB, epoch INT NOT NULL DEFAULT 0,
        records INT NOT NULL DEFAULT 0, lost INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0,
        tail_records INT NOT NULL DEFAULT 0, tail_lost INT NOT NULL DEFAULT 0,
        problem TEXT, message TEXT, gone INT NOT NULL DEFAULT 0, read_ms INT NOT NULL DEFAULT 0)""",
    # number: the session's in the index, which has its id, header and title then; below zero for one that the
    # index has not: told by another log of its folder as well, or forgotten. Such a row has its id itself.
    # tail: events behind the checkpoint; they come again with the next read.
    """CREATE TABLE catalog_session(
        number INTEGER PRIMARY KEY, unit_id INT NOT NULL, flags INT NOT NULL, epoch INT NOT NULL,
        length INT NOT NULL, tail INT NOT NULL, last_time INT NOT NULL, serial INT NOT NULL,
        id, note BLOB)""",
    "CREATE INDEX catalog_session_unit ON catalog_session(unit_id)",
    "CREATE INDEX catalog_session_id ON catalog_session(id) WHERE id IS NOT NULL",
    # at most LOSSES_KEPT rows a unit; further ones are only counted
    """CREATE TABLE catalog_loss(
        unit_id INT NOT NULL, number INT NOT NULL, path TEXT NOT NULL, offset INT NOT NULL,
        length INT NOT NULL, cause TEXT NOT NULL, records INT NOT NULL, tail INT NOT NULL,
        PRIMARY KEY(unit_id, number)) WITHOUT ROWID""",
    "CREATE TABLE catalog_skipped(root_id INT NOT NULL, path BLOB NOT NULL, reason TEXT NOT NULL,"
    " PRIMARY KEY(root_id, path)) WITHOUT ROWID",
)

CATALOG_TABLES: Final = frozenset(
    f"catalog_{name}" for name in ("root", "unit", "session", "loss", "skipped")
)
"""For the guard (SPEC 6.12)."""


def create_catalog(connection: Connection) -> None:
    """Make the tables in an empty database, inside the caller's transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)
