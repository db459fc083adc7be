"""The tables of the index. Rows are narrow and integer-keyed; README.md says why they stand like this.

A *document number* counts the documents of a session from 0. A *block* is a run of 4,096 document
numbers; a session owns one or more, so sessions of any length fit. The row id of a document is
``block << 12 | number & 4095``: one session is a few ranges, and postings of one session stay close.
"""

from __future__ import annotations

from typing import Final

from ...protocol.event import SURFACES, Surface
from ...protocol.tokens import TOKENS_VERSION
from .. import sqlite
from ..sqlite import Connection

INDEX_VERSION: Final = 13
"""Raised with every change of tables or of what is stored in them. TOKENS_VERSION is checked apart."""

BLOCK_BITS: Final = 12
BLOCK_DOCUMENTS: Final = 1 << BLOCK_BITS
BLOCK_MASK: Final = BLOCK_DOCUMENTS - 1

SURFACE_NUMBERS: Final[dict[Surface, int]] = {"current": 0, "shadowed": 1, "log-only": 2}
NO_WORKSPACE: Final = 0
"""The row of ``workspace`` for sessions without a ``cwd``."""
PROMPT_TYPE: Final = 1
"""The row of ``type`` for prompts."""
TAG: Final = "\u2021"
"""Begins the tokens of ours in ``parts``: a separator in every text, yet a token for the engine."""

_STATEMENTS: Final = (
    "CREATE TABLE index_meta(name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
    # documents: of all its sessions, seen or not: as many hits as a search in it can have at most
    "CREATE TABLE workspace(ws INTEGER PRIMARY KEY, cwd UNIQUE, generation INT NOT NULL DEFAULT 0,"
    " documents INT NOT NULL DEFAULT 0)",
    f"INSERT INTO workspace(ws, cwd) VALUES({NO_WORKSPACE}, NULL)",
    "CREATE TABLE source(name TEXT PRIMARY KEY, shown INT NOT NULL) WITHOUT ROWID",
    # id, place, cwd and parent have no type: text that is no Unicode is kept as a blob
    """CREATE TABLE session(
        sid INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL, place NOT NULL, id NOT NULL, ws INT NOT NULL, created_at INT NOT NULL, parent,
        rank INT NOT NULL, visible INT NOT NULL, error TEXT, durable INT NOT NULL, persisted INT NOT NULL,
        sub_agent INT NOT NULL, inherited INT NOT NULL, losses INT NOT NULL,
        documents INT NOT NULL DEFAULT 0, texts INT NOT NULL DEFAULT 0, chars INT NOT NULL DEFAULT 0,
        generation INT NOT NULL DEFAULT 0,
        key INT NOT NULL, state BLOB NOT NULL)""",
    # Of source, place and id: rows.key_hash. The writer keeps them unique.
    "CREATE INDEX session_key ON session(key)",
    # With the workspace: a look-up inside a reach never comes to a row outside it, not even for its time
    "CREATE INDEX session_id ON session(id, ws)",
    "CREATE INDEX session_parent ON session(parent) WHERE parent IS NOT NULL",
    "CREATE INDEX session_unseen ON session(sid) WHERE visible = 0 OR error IS NOT NULL",
    # With times of creation in an index a list of 9,000 took as long, a range of 1 % 1 ms instead of 1.6
    "CREATE INDEX session_readable ON session(ws, losses) WHERE visible = 1 AND error IS NULL",
    "CREATE TABLE block(block INTEGER PRIMARY KEY AUTOINCREMENT, sid INT NOT NULL)",
    "CREATE INDEX block_sid ON block(sid)",
    "CREATE TABLE type(type INTEGER PRIMARY KEY, name UNIQUE)",
    f"INSERT INTO type VALUES({PROMPT_TYPE}, 'user/message')",
    # search: SPEC 16.1.7; prompt: ranks last among equals in the tools. session.texts and chars count
    # what an ordinary search sees. One number says type, search and surface: a column of its own takes a byte
    # a row even where it is always 0. See ``document_kind``
    f"""CREATE TABLE doc(doc INTEGER PRIMARY KEY, seq INT NOT NULL, time INT NOT NULL, kind INT NOT NULL,
        chars INT NOT NULL, type INT AS (kind / 6), search INT AS (kind / 3 % 2), surface INT AS (kind % 3),
        prompt INT AS (kind / 6 = {PROMPT_TYPE}))""",
    # Texts and skeletons as they were written, ``doc`` to ``last``, until they are packed together. See
    # bodies, shelves, skeletons.
    "CREATE TABLE body_new(doc INTEGER PRIMARY KEY, last INT NOT NULL, texts BLOB NOT NULL)",
    "CREATE TABLE body(doc INTEGER PRIMARY KEY, texts BLOB NOT NULL)",
    # Text first: a posting outside column 0 carries a marker, which made the index 41 % larger.
    # Documents that are searches stand in columns of their own: no other query has to leave them out.
    "CREATE VIRTUAL TABLE fts USING"
    " fts5(text, parts, search_text, search_parts, content='', columnsize=0, tokenize='ascii')",
    "INSERT INTO fts(fts, rank) VALUES('automerge', 0)",
    "INSERT INTO fts(fts, rank) VALUES('crisismerge', 1900)",
)

SPAN_STATEMENTS: Final = (
    # One row for a run of documents: which sessions hold a frequent word at all. See spans.
    "CREATE VIRTUAL TABLE span USING fts5(words, content='', columnsize=0, detail=none, tokenize='ascii')",
    "INSERT INTO span(span, rank) VALUES('automerge', 0)",
    "INSERT INTO span(span, rank) VALUES('crisismerge', 1900)",
    "CREATE TABLE span_end(doc INTEGER PRIMARY KEY, last INT NOT NULL)",
    "CREATE TABLE span_word(token TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE span_todo(block INTEGER PRIMARY KEY)",
    # Which tokens a document holds more than once, of documents that have spans. See repeats.
    "CREATE TABLE repeats(doc INTEGER PRIMARY KEY, tokens BLOB NOT NULL)",
    # Blocks whose documents from ``next`` on wait for theirs. See repeats_later.
    "CREATE TABLE repeats_todo(block INTEGER PRIMARY KEY, next INT NOT NULL)",
)
"""What stands in an index only when spans have begun: even empty these tables are eight pages."""

_FTS_SHADOWS: Final = ("data", "idx", "config", "docsize", "content")
FORMER_TABLES: Final = ("skeleton",)
"""Tables that an earlier version made and this one does not. They stay ours: an index of that version is
dropped and built anew, where one with a table of somebody else's is refused."""

INDEX_TABLES: Final = frozenset(
    (
        *FORMER_TABLES,
        "index_meta",
        "workspace",
        "source",
        "session",
        "block",
        "type",
        "doc",
        "body",
        "body_new",
        "span_end",
        "span_word",
        "span_todo",
        "repeats",
        "repeats_todo",
    )
) | frozenset(
    name for table in ("fts", "span") for name in (table, *(f"{table}_{end}" for end in _FTS_SHADOWS))
)
"""Every table of the index, now and before, for the guard (SPEC 6.12)."""


def create_index(connection: Connection) -> None:
    """Make all tables in an empty database, inside the caller's transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)
    if sqlite.FTS5_SECURE_DELETE:
        # Never for ``span``: with detail=none this loses postings that were not deleted (found by a random
        # test, SQLite 3.51). Spans hold only words of many sessions; ``scrub`` sees to the rest.
        connection.execute("INSERT INTO fts(fts, rank) VALUES('secure-delete', 1)")
    connection.execute("INSERT INTO index_meta VALUES('tokens', ?)", (TOKENS_VERSION.encode(),))


def document_kind(type_: int, search: bool, surface: Surface) -> int:
    """The column ``kind`` of a document: its other columns are told from it."""
    return type_ * 6 + int(search) * 3 + SURFACE_NUMBERS[surface]


def type_of(kind: int) -> int:
    """The column ``type``: SQLite takes 0.1 us to make it, for every row it looks at."""
    return kind // 6


def surface_of(kind: int) -> Surface:
    """The surface that the column ``surface`` is the number of."""
    return SURFACES[kind % 3]


def prompt_of(kind: int) -> int:
    """The column ``prompt``."""
    return int(kind // 6 == PROMPT_TYPE)


def spans_stand(connection: Connection) -> bool:
    """Whether the tables of spans and repeats were made."""
    return connection.execute("SELECT 1 FROM index_meta WHERE name = 'spans'").fetchone() is not None


def tokens_agree(connection: Connection) -> bool:
    """Whether the index was made with this version of the tokenizer; if not it has to be built again."""
    row = connection.execute("SELECT value FROM index_meta WHERE name = 'tokens'").fetchone()
    return row is not None and bytes(row[0]) == TOKENS_VERSION.encode()
