"""An index in a temporary file with its writer and readers, and sessions to put into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from session_query.protocol.documents import Document
from session_query.protocol.header import SessionHeader
from session_query.storage import sqlite
from session_query.storage.index import SessionKey, SessionState, create_index, tagging
from session_query.storage.index.reader import Reader
from session_query.storage.index.writer import Writer, open_writer


@attrs.define(eq=False)
class IndexFile:
    path: Path | str
    connection: sqlite.Connection
    writer: Writer
    reader_connection: sqlite.Connection
    reader: Reader

    def put(self, key: SessionKey, state: SessionState, documents: Sequence[Document] = ()) -> int:
        """Store a whole session in one transaction."""
        with self.writer.transaction():
            sid = self.writer.put_session(key, state)
            self.writer.append(sid, documents)
        return sid


@contextmanager
def open_index(path: Path | str | None = None, *, tagged: bool = True) -> Iterator[IndexFile]:
    """A new index: in ``path``, or in memory. ``tagged``: as if it had grown large once (see ``tagging``)."""
    place = sqlite.memory_path() if path is None else path
    connection = sqlite.open_uri(sqlite.uri(place, "rwc"))
    connection.close() if path is not None else None
    writer_connection = sqlite.connect_writer(place, journal_mode="wal" if path is not None else None)
    with sqlite.transaction(writer_connection):
        create_index(writer_connection)
        if tagged:
            value = str(tagging.ALL).encode()
            writer_connection.execute("INSERT INTO index_meta VALUES('tagged', ?)", (value,))
    reader_connection = sqlite.connect_reader(place)
    try:
        yield IndexFile(
            place,
            writer_connection,
            open_writer(writer_connection),
            reader_connection,
            Reader(reader_connection),
        )
    finally:
        reader_connection.close()
        writer_connection.close()
        if path is None:
            connection.close()


def document(seq: int, text: str, type_: str = "assistant/message", **more: object) -> Document:
    """A document with a time of its own."""
    fields: dict[str, object] = {"time": 1000 + seq, "surface": "current", **more}
    return Document(seq=seq, type=type_, text=text, **fields)  # type: ignore[arg-type]


def state(id_: str, **more: object) -> SessionState:
    """A stored session's state; header fields by their names."""
    names = {"cwd", "created_at", "parent_session", "origin", "seed_length"}
    header: dict[str, object] = {"created_at": 1, "cwd": "/a"}
    header.update({name: more.pop(name) for name in names & more.keys()})
    return SessionState(header=SessionHeader(id=id_, **header), **{"rank": 1, **more})  # type: ignore[arg-type]
