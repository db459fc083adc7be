"""The product's own index as a searcher, through the index's door."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...protocol.errors import QueryError
from ...protocol.query import normalise_query
from ...storage import sqlite
from ...storage.index import (
    IndexReader,
    Reach,
    SearchSpec,
    SessionKey,
    SessionState,
    create_index,
    open_reader,
    open_writer,
)
from ...storage.whole_session import prepare, put_whole
from .composing import LabelledSession
from .searching import Found, Match, Searcher


@contextmanager
def index_searcher(sessions: Sequence[LabelledSession]) -> Iterator[Searcher]:
    """A searcher over a fresh index file that holds these sessions, asked as the tools ask."""
    with TemporaryDirectory(prefix="relevance-") as folder:
        path = Path(folder) / "index.db"
        path.touch()
        build_index(path, sessions)
        connection = sqlite.connect_reader(path)
        try:
            yield _Index(open_reader(connection))
        finally:
            connection.close()


def build_index(path: Path, sessions: Sequence[LabelledSession]) -> None:
    """Write all sessions into an empty file."""
    connection = sqlite.connect_writer(path)
    try:
        with sqlite.transaction(connection):
            create_index(connection)
        writer = open_writer(connection)
        with writer.transaction():
            for session in sessions:
                key = SessionKey("relevance", "", session.header.id)
                state = SessionState(header=session.header, rank=2, inherited=session.inherited)
                put_whole(writer, prepare(key, state, session.events))
    finally:
        connection.close()


class _Index:
    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader

    def search(self, query: str, *, match: Match, limit: int, workspace: str | None) -> list[Found]:
        try:
            normalised = normalise_query(query)
        except QueryError:
            return []
        spec = SearchSpec(query=normalised, match=match, limit=limit, tools=True)
        reach = Reach(workspaces=None if workspace is None else (workspace,))
        with self._reader.snapshot():
            hits = self._reader.search_sessions(spec, reach).hits
        return [
            Found(
                hit.session.key.id,
                hit.tier,
                tuple(sub.session.key.id for sub in hit.sub_agents),
            )
            for hit in hits
        ]
