"""Forgetting a session for good: index, text copies, journal, retained copies (SPEC 16.10).

Spilled results lie with the service, which removes them before it calls this.
"""

from __future__ import annotations

import time
from pathlib import Path

import attrs

from ..protocol.header import SessionHeader
from ..protocol.outward import SessionKey
from .damage import file_of, set_aside_files
from .index.door import IndexReader, IndexWriter, StoredSession
from .journal import Journal
from .sources.sources import Sources
from .sqlite import Connection, empty_log


@attrs.frozen(kw_only=True)
class Forgotten:
    """What was removed. ``keys``: every copy of the session, from whatever source.

    ``swept`` False: a reader still holds an old state of a file; call ``sweep`` again when it is done.
    """

    keys: tuple[SessionKey, ...]
    swept: bool


@attrs.define(eq=False)
class Forgetting:
    """Removes sessions. Owner: the writer thread."""

    connection: Connection
    index: IndexWriter
    reader: IndexReader
    journal: Journal
    sources: Sources

    def forget(self, key: SessionKey) -> Forgotten:
        """Remove a session and every other row of the same session (SPEC 16.6.3), and leave tombstones.

        The tool's own log is not touched; read again, the session is recognised and passed over.
        Returns: the keys removed, empty if there is no such session.
        Raises: sqlite.Error, OSError: what was not removed yet is still there; repeat.
        """
        known = self.index.find(key)
        stored = self.journal.find(key)
        header = known.state.header if known else stored.header if stored else None
        if header is None:
            return Forgotten(keys=(), swept=True)
        now_ms = time.time_ns() // 1_000_000
        # the tombstone first: after a crash the session may still be found, but it cannot come back
        first = self.sources.first_event(known.sid) if known and stored is None else None
        if stored is not None:
            first = self.journal.read_event(stored.sid, 0)
        self.journal.bury(key.source, header, first, now_ms)
        rows = self._rows(known, header)
        with self.index.transaction():
            self.sources.forget([row.sid for row in rows])
            for row in rows:
                self.index.delete(row.sid)
        keys = {key, *(row.key for row in rows)}
        for one in sorted(keys, key=lambda one: (one.source, one.place)):
            self.journal.originals.forget(one)
            copy = self.journal.find(one)
            if copy is not None:
                self.journal.forget(copy.sid, now_ms)
        self.index.scrub()
        self._drop_set_aside()
        return Forgotten(keys=tuple(keys), swept=self.sweep())

    def _drop_set_aside(self) -> None:
        """A damaged index that was kept to be looked at may hold the words."""
        path = file_of(self.connection)
        for file in set_aside_files(Path(path)) if path else []:
            file.unlink(missing_ok=True)

    def finish(self) -> int:
        """After a crash: forget what has a tombstone and is still there. Returns how many sessions."""
        doomed: list[SessionKey] = []
        with self.reader.snapshot():
            for session_id in self.journal.tombstones.ids():
                doomed += [row.key for row in self.reader.with_id(session_id) if self._is_buried(row)]
        doomed += [
            stored.key
            for stored in self.journal.sessions()
            if self.journal.tombstones.knows(stored.key.id)
            and self.journal.tombstones.forgotten(stored.header, self.journal.read_event(stored.sid, 0))
        ]
        for key in dict.fromkeys(doomed):
            self.forget(key)
        return len(set(doomed))

    def _is_buried(self, row: StoredSession) -> bool:
        header = row.state.header
        first = None if header.created_at else self.sources.first_event(row.sid)
        return self.journal.tombstones.forgotten(header, first)

    def sweep(self) -> bool:
        """Empty both write-ahead logs, where the words may still stand; False while a reader needs one."""
        return all([empty_log(self.connection), self.journal.purge()])

    def _rows(self, known: StoredSession | None, header: SessionHeader) -> list[StoredSession]:
        """Every row of the session. Without a creation time an id alone proves nothing: its own, and those
        that begin as it does, which would not be taken again either.
        """
        if known is None:
            return []
        with self.reader.snapshot():
            if header.created_at:
                return self.reader.fallbacks(known.sid)
            others = [row for row in self.reader.with_id(header.id) if row.sid != known.sid]
        return [known, *(row for row in others if self._is_buried(row))]
