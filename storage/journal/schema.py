"""The journal's tables. Its data is canonical: a journal of another version is migrated, never dropped."""

from __future__ import annotations

import secrets
from typing import Final

from ...protocol.errors import Code
from ..guard import Schema
from ..sqlite import Connection
from .codec import DICTIONARY
from .originals import TABLES as ORIGINALS
from .originals import create_originals

APPLICATION_ID: Final = 0x53514A4C  # "SQJL"
VERSION: Final = 2
"""1: without originals."""

SEQ_BITS: Final = 32
"""An event's key is ``sid << 32 | seq``: one integer b-tree, a session's events side by side, no index."""

_TABLES: Final = {
    "meta": "CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID",
    "dictionary": "CREATE TABLE dictionary(number INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
    # ids and places are blobs: they may hold lone surrogates, which SQLite's text does not take.
    # A sid is never used again (AUTOINCREMENT): a revision of a forgotten session stays unequal.
    "session": """CREATE TABLE session(
        sid INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL, place BLOB NOT NULL, id BLOB NOT NULL,
        header BLOB NOT NULL, title BLOB, inherited INTEGER NOT NULL DEFAULT 0,
        notes BLOB, clean INTEGER NOT NULL DEFAULT 0,
        UNIQUE(source, place, id)) STRICT""",
    "event": "CREATE TABLE event(key INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
    "tombstone": """CREATE TABLE tombstone(
        id BLOB NOT NULL, digest BLOB NOT NULL, source TEXT NOT NULL, forgotten_ms INTEGER NOT NULL,
        PRIMARY KEY(id, digest)) STRICT, WITHOUT ROWID""",
}


def create(connection: Connection) -> None:
    """Make an empty journal. ``store`` qualifies revisions: no two journals share one (SPEC 1.9.1)."""
    for statement in _TABLES.values():
        connection.execute(statement)
    create_originals(connection)
    connection.execute("INSERT INTO dictionary VALUES (1, ?)", (DICTIONARY,))
    connection.execute("INSERT INTO meta VALUES ('store', ?)", (secrets.token_hex(6),))


def migrate(connection: Connection, found: int) -> None:
    """From version 1: the originals of retained logs get their tables; nothing else changes."""
    create_originals(connection)


SCHEMA: Final = Schema(
    name="journal",
    application_id=APPLICATION_ID,
    version=VERSION,
    tables=frozenset(_TABLES) | frozenset(ORIGINALS),
    create=create,
    failure=Code.PERSISTENCE_FAILED,
    derived=False,
    migrate=migrate,
)
