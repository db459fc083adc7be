"""A store over toy logs, and short ways to ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from session_query.protocol.documents import Document
from session_query.storage.index.door import Reach, SearchSpec, StoredSession
from session_query.storage.sources.ingest import Progress
from session_query.storage.sources.spec import SourceSpec
from session_query.storage.store import Store, StoreSettings, open_store
from session_query.storage.store_reader import StoreReader
from support.toy_logs import DocumentReader, ToyReader

EVERYONE = Reach()


@attrs.define(eq=False)
class ToyStore:
    """An open store with one toy root and one document root under ``logs``."""

    store: Store
    reader: StoreReader
    logs: Path
    toy: ToyReader
    doc: DocumentReader

    def refresh(self) -> Progress | None:
        """Walk everything and read what changed; the last progress, None if there was nothing to do."""
        self.store.sources.freshness.mark_everything()
        steps = list(self.store.sources.refresh())
        return steps[-1] if steps else None

    def write(self, name: str, *lines: bytes) -> Path:
        """Write a log anew; mtimes differ for each write."""
        path = self.logs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        return path

    def append(self, name: str, *lines: bytes) -> None:
        with (self.logs / name).open("ab") as file:
            file.write(b"".join(lines))

    def sessions(self) -> dict[str, StoredSession]:
        """Visible readable sessions by id."""
        with self.reader.index.snapshot():
            return {session.key.id: session for session in self.reader.index.sessions(EVERYONE)}

    def path(self, session: str) -> str | None:
        """Where the session's log lies, as people are told."""
        with self.reader.index.snapshot():
            (row,) = self.reader.index.with_id(session)
            return self.reader.index.log_path(row.sid)

    def unread(self) -> dict[str, str | None]:
        with self.reader.index.snapshot():
            return {row.key.id: row.state.error for row in self.reader.index.unread(EVERYONE)}

    def documents(self, session: str) -> list[Document]:
        with self.reader.index.snapshot():
            (row,) = self.reader.index.with_id(session)
            return self.reader.index.documents(row.sid)

    def texts(self, session: str) -> list[str]:
        return [document.text for document in self.documents(session)]

    def surfaces(self, session: str) -> str:
        """The first letter of each document's surface: c, s, l."""
        return "".join(document.surface[0] for document in self.documents(session))

    def found(self, query: str) -> set[str]:
        """Ids of the sessions that hold the phrase."""
        with self.reader.index.snapshot():
            hits = self.reader.index.search_sessions(SearchSpec(query=query, limit=100), EVERYONE).hits
            return {hit.session.key.id for hit in hits}

    def close(self) -> None:
        self.reader.close()
        self.store.close()


def open_toy_store(
    directory: Path,
    *,
    retain: bool = False,
    toy: ToyReader | None = None,
    doc: DocumentReader | None = None,
    in_memory: bool = False,
) -> ToyStore:
    """A store in ``directory/data`` over ``directory/logs``."""
    logs = directory / "logs"
    logs.mkdir(exist_ok=True)
    toy, doc = toy or ToyReader(), doc or DocumentReader()
    settings = StoreSettings(
        data_dir=None if in_memory else directory / "data",
        sources=tuple(SourceSpec(format=name, root=logs, retain=retain) for name in ("toy", "doc")),
        readers={"toy": toy, "doc": doc},
    )
    store = open_store(settings)
    return ToyStore(store, store.open_reader(), logs, toy, doc)


@contextmanager
def toy_store(directory: Path, *, retain: bool = False) -> Iterator[ToyStore]:
    """``open_toy_store``, closed at the end."""
    opened = open_toy_store(directory, retain=retain)
    try:
        yield opened
    finally:
        opened.close()
