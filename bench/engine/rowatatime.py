"""The comparison: the straightforward schema, as one would write it in a day.

One FTS5 table holds an event a row, its text stored beside the index, everything else in columns that are
not indexed. A search counts matches by ``highlight()`` over every match and picks one event a session with
a window function. Sessions that still run stand in a table of their own and are written anew, whole, with
every append. It gives the exact order of SPEC 6.5 for whole words; it splits no scripts and no identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from ...protocol.documents import Document
from ...storage import sqlite
from ...storage.sqlite import Connection, Row
from .corpus import MadeSession

_COLUMNS: Final = (
    "text, session UNINDEXED, cwd UNINDEXED, seq UNINDEXED, type UNINDEXED, time UNINDEXED, surface UNINDEXED"
)
_SEARCH: Final = """
    WITH marked AS MATERIALIZED (
        SELECT session, cwd, seq, type, time, length(text) AS size, highlight(stored, 0, char(1), '') AS marks
        FROM stored WHERE stored MATCH ?),
    counted AS (
        SELECT session, cwd, seq, type, time, size, length(marks) - size AS matches FROM marked),
    numbered AS (
        SELECT *, row_number() OVER (
            PARTITION BY session ORDER BY matches DESC, size, time DESC, seq DESC) AS place
        FROM counted)
    SELECT session, seq, type, time, matches FROM numbered WHERE place = 1
    ORDER BY matches DESC, size, time DESC, session LIMIT ?"""
_PLAINER: Final = _SEARCH.replace("AS MATERIALIZED", "AS")
"""Without the hint SQLite computes ``highlight()`` anew wherever its result is named: 1.9 times the CPU
at 50,000 events. Promises are judged by the cheaper form."""


@attrs.define(eq=False)
class RowAtATime:
    """The comparison's database. Owner: the bench."""

    connection: Connection

    def add(self, sessions: Sequence[MadeSession]) -> None:
        """Store whole sessions in one transaction."""
        with sqlite.transaction(self.connection):
            for session in sessions:
                self._insert("stored", session, session.documents)

    def search(self, query: str, limit: int = 20, *, hint: bool = True) -> list[Row]:
        """The best event of each of the first ``limit`` sessions that hold ``query`` as a phrase.

        ``hint`` False: as one writes it first, without telling SQLite to keep what ``highlight()`` gave.
        """
        return self.connection.execute(_SEARCH if hint else _PLAINER, (f'"{query}"', limit)).fetchall()

    def rewrite(self, session: MadeSession, documents: Sequence[Document]) -> None:
        """What an append to a running session costs here: the whole session once more."""
        with sqlite.transaction(self.connection):
            self.connection.execute("DELETE FROM live WHERE session = ?", (session.key.id,))
            self._insert("live", session, documents)

    def _insert(self, table: str, session: MadeSession, documents: Sequence[Document]) -> None:
        cwd = session.state.header.cwd
        self.connection.executemany(
            f"INSERT INTO {table} VALUES(?, ?, ?, ?, ?, ?, ?)",
            [(d.text, session.key.id, cwd, d.seq, d.type, d.time, d.surface) for d in documents],
        )


def create_row_at_a_time(path: Path) -> RowAtATime:
    """A fresh database at ``path``, which must not exist."""
    path.touch(exist_ok=False)
    connection = sqlite.connect_writer(path)
    for table in ("stored", "live"):
        connection.execute(f"CREATE VIRTUAL TABLE {table} USING fts5({_COLUMNS})")
    return RowAtATime(connection)
