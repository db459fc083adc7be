"""The straightforward schema, kept as the comparison: one full-text row an event, with its text and columns.

Ranks by counting ``highlight()`` marks over every match and numbers sessions by a window function; a live
session that grows is rewritten whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ...storage import sqlite
from ...storage.sqlite import Connection
from .corpus import MadeSession

_SEARCH: Final = """
WITH hit AS (
    SELECT session_id, seq, time, type, length(text) AS chars,
        (length(highlight(row, 0, char(64976), '')) - length(text)) AS spans,
        snippet(row, 0, '', '', '…', 40) AS shown
    FROM row WHERE row MATCH ?),
ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY session_id ORDER BY spans DESC, chars, time DESC, seq DESC) AS place
    FROM hit)
SELECT session_id, seq, spans, chars, time, shown FROM ranked WHERE place = 1
ORDER BY spans DESC, chars, time DESC, session_id LIMIT 20"""


def build_rows(path: Path, sessions: Iterable[MadeSession]) -> Connection:
    """Fill a database with one row an event, 10,000 events a transaction."""
    path.touch()
    connection = sqlite.connect_writer(path)
    connection.execute(
        "CREATE VIRTUAL TABLE row USING fts5(text, session_id UNINDEXED, seq UNINDEXED, time UNINDEXED,"
        " type UNINDEXED, surface UNINDEXED, cwd UNINDEXED)"
    )
    waiting: list[tuple[str, str, int, int, str, str, str | None]] = []
    for session in sessions:
        header = session.state.header
        waiting += [
            (d.text, header.id, d.seq, d.time, d.type, d.surface, header.cwd) for d in session.documents
        ]
        if len(waiting) >= 10_000:
            _write(connection, waiting)
    _write(connection, waiting)
    return connection


def _write(connection: Connection, waiting: list[tuple[str, str, int, int, str, str, str | None]]) -> None:
    with sqlite.transaction(connection):
        connection.executemany("INSERT INTO row VALUES(?, ?, ?, ?, ?, ?, ?)", waiting)
    waiting.clear()


def search_rows(connection: Connection, phrase: str) -> list[sqlite.Row]:
    """The first 20 sessions for one phrase."""
    return connection.execute(_SEARCH, (f'"{phrase}"',)).fetchall()
