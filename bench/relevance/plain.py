"""The plain comparison: one row an event, any word of the query, ordered by bm25 (SPEC 16.1.8).

What a day's work gives: the default tokenizer, the engine's own relevance, best event of each session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ...protocol.text import event_text
from ...storage import sqlite
from .composing import LabelledSession
from .searching import Found, Match, Searcher

_WORD: Final = re.compile(r"\w+")


@contextmanager
def plain_searcher(sessions: Sequence[LabelledSession]) -> Iterator[Searcher]:
    """A searcher over a fresh full-text table in memory; ``match`` means nothing to it."""
    connection = sqlite.open_uri("file::memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE f USING fts5(text, session UNINDEXED)")
        for session in sessions:
            rows = [(_encodable(event_text(event)), session.header.id) for event in session.events]
            connection.executemany("INSERT INTO f VALUES(?, ?)", [row for row in rows if row[0]])
        yield _Plain(connection, {session.header.id: session.header.cwd for session in sessions})
    finally:
        connection.close()


class _Plain:
    def __init__(self, connection: sqlite.Connection, workspaces: dict[str, str | None]) -> None:
        self._connection = connection
        self._workspaces = workspaces

    def search(self, query: str, *, match: Match, limit: int, workspace: str | None) -> list[Found]:
        words = dict.fromkeys(word.lower() for word in _WORD.findall(query))
        if not words:
            return []
        expression = " OR ".join(f'"{word}"' for word in words)
        rows = self._connection.execute(
            "SELECT session, min(r) AS best FROM"
            " (SELECT session, rank AS r FROM f WHERE f MATCH ?) GROUP BY session ORDER BY best, session",
            (expression,),
        ).fetchall()
        inside = [name for name, _ in rows if workspace is None or self._workspaces[name] == workspace]
        return [Found(name) for name in inside[:limit]]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
