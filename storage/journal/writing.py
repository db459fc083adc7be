"""Writing the journal: attach, append with group commit, retained copies, forgetting.

Everything returned as done is on disk (``synchronous=FULL``) before it is returned. A refusal writes
nothing; a failure of the disk (``sqlite.Error``) undoes the whole call and leaves the journal as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...protocol.event import Event
from ...protocol.header import SessionHeader, compatible
from ...protocol.json_codec import decode_json, deep_equal, encode_json
from ...protocol.outward import SessionKey
from ..sqlite import Connection, empty_log, transaction
from .codec import encode_event, encode_header, encode_title
from .reading import JournalReader, blob
from .records import (
    PUBLISHED,
    Batch,
    Copy,
    Forgotten,
    HeaderConflict,
    JournalRefusal,
    JournalSession,
    SeqConflict,
    SeqGap,
    UnknownSession,
)
from .schema import SEQ_BITS
from .tombstones import Tombstones

END_SEED = "session/end-seed"

_INSERT = "INSERT INTO event VALUES (?, ?)"
_DELETE_FROM = "DELETE FROM event WHERE key BETWEEN ? AND ?"


class Journal(JournalReader):
    """The one writer of a journal. Owner: the storage actor's writer thread.

    ``connection`` comes from ``guard.open_guarded`` with ``synchronous="FULL"``.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.tombstones = Tombstones(connection)
        self._ends: dict[int, int] = {}
        """Committed lengths of sessions appended to: two statements less for each append."""

    def attach(
        self, place: str, header: SessionHeader, seed: Sequence[Event] | None, now_ms: int
    ) -> JournalSession:
        """Store a published session's header and seed, or verify them if the session is stored already.

        A new session with a seed, even an empty one, gets one ``session/end-seed`` right behind it unless
        the seed ends in one (SPEC 1.3.3); its time is ``now_ms``. Attaching again adds nothing.

        Raises: Forgotten, HeaderConflict (SPEC 1.1.3), SeqGap (the seed's seqs are not 0, 1, 2…),
            SeqConflict (a stored event differs, or the stored log is shorter than the seed).
        """
        key = SessionKey(PUBLISHED, place, header.id)
        if self.tombstones.forgotten(header, seed[0] if seed else None):
            raise Forgotten(header.id)
        with transaction(self.connection):
            stored = self.find(key)
            if stored is None:
                return self._create(key, header, seed, now_ms)
            if not compatible(stored.header, header):
                raise HeaderConflict(header.id)
            _check_contiguous(seed or (), 0, stored.length)
            if seed and len(seed) > stored.length:
                raise SeqConflict(stored.length)
            self._check_equal(stored.sid, seed or ())
            self.connection.execute("UPDATE session SET clean = 0 WHERE sid = ?", (stored.sid,))
            return stored

    def detach(self, sid: int) -> None:
        """Note that the session's runtime is done with it: nobody holds the log (SPEC 16.6.6)."""
        self.connection.execute("UPDATE session SET clean = 1 WHERE sid = ?", (sid,))

    def append(self, sid: int, from_seq: int, events: Sequence[Event]) -> int:
        """Append one batch; see ``commit``. Returns the last seq of the batch, ``from_seq - 1`` if empty.

        Raises: UnknownSession, SeqGap, SeqConflict.
        """
        (result,) = self.commit([Batch(sid=sid, from_seq=from_seq, events=events)])
        if isinstance(result, JournalRefusal):
            raise result
        return result

    def commit(self, batches: Sequence[Batch]) -> list[int | JournalRefusal]:
        """Append several sessions' batches in one transaction, each with its own outcome, in order.

        A batch must start at the stored length or before it; what is stored already must be equal and is
        not written again, so that repeating an append is safe (SPEC 1.3.2). Batches of one session see
        those before them.

        Returns: for each batch the last seq of it, now on disk, or why it was refused.
        Raises: sqlite.Error (a full disk): nothing of any batch was written.
        """
        results: list[int | JournalRefusal] = []
        ends: dict[int, int] = {}
        with transaction(self.connection):
            for batch in batches:
                try:
                    ends[batch.sid] = self._append(batch, ends.get(batch.sid))
                    results.append(batch.from_seq + len(batch.events) - 1)
                except JournalRefusal as refusal:
                    results.append(refusal)
        self._ends.update(ends)
        return results

    def retain(self, copies: Sequence[Copy]) -> None:
        """Keep copies of foreign sessions' events so that their history outlives their source.

        All in one transaction. Stored events from a copy's ``first_seq`` on are replaced: the source has
        been read again from there. Raises: SeqGap when events before ``first_seq`` are missing.
        """
        with transaction(self.connection):
            for copy in copies:
                self._retain(copy)

    def forget(self, sid: int, now_ms: int) -> bool:
        """Delete a session with secure deletion and leave a tombstone; False if it is unknown.

        The words are gone from the database file; call ``purge`` for the write-ahead log.
        """
        stored = self.find_sid(sid)
        if stored is None:
            return False
        with self._burying():
            self.tombstones.add(stored.key.source, stored.header, self.read_event(sid, 0), now_ms)
            self._delete(sid)
        return True

    def bury(self, source: str, header: SessionHeader, first: Event | None, now_ms: int) -> None:
        """Leave a tombstone for a session that the journal itself does not hold."""
        with self._burying():
            self.tombstones.add(source, header, first, now_ms)

    @contextmanager
    def _burying(self) -> Iterator[None]:
        """A transaction that adds tombstones; undone, they are forgotten as well."""
        try:
            with transaction(self.connection):
                yield
        except BaseException:
            self.tombstones.reload()
            raise

    def drop_copy(self, sid: int) -> None:
        """Delete a retained copy without a tombstone: its session may be read again."""
        with transaction(self.connection):
            self._delete(sid)

    def purge(self) -> bool:
        """Empty the write-ahead log after ``forget``; False while a reader still needs it."""
        return empty_log(self.connection)

    def _retain(self, copy: Copy) -> None:
        stored = self.find(copy.key)
        _check_contiguous(copy.events, copy.first_seq, 0 if stored is None else stored.length)
        sid = self._insert_session(copy.key, copy.header) if stored is None else stored.sid
        title, notes = encode_title(copy.title), encode_json(list(copy.notes))
        self.connection.execute(
            "UPDATE session SET header = ?, title = ?, inherited = ?, notes = ? WHERE sid = ?",
            (encode_header(copy.header), title, copy.inherited, notes, sid),
        )
        self._truncate(sid, copy.first_seq)
        self._insert(sid, copy.events)

    def _create(
        self, key: SessionKey, header: SessionHeader, seed: Sequence[Event] | None, now_ms: int
    ) -> JournalSession:
        _check_contiguous(seed or (), 0, 0)
        sid = self._insert_session(key, header)
        events = list(seed or ())
        if seed is not None and (not events or events[-1].type != END_SEED):
            events.append(Event(type=END_SEED, seq=len(events), time=now_ms, data={}))
        self._insert(sid, events)
        return JournalSession(
            sid=sid, key=key, header=header, length=len(events), revision=self.revision(sid, len(events))
        )

    def _append(self, batch: Batch, length: int | None) -> int:
        """Insert what is new of a batch; ``length`` as an earlier batch left it. Returns the new length."""
        if length is None:
            length = self._ends.get(batch.sid)
        if length is None:
            if not self.connection.execute("SELECT 1 FROM session WHERE sid = ?", (batch.sid,)).fetchall():
                raise UnknownSession(batch.sid)
            length = self.length(batch.sid)
        _check_contiguous(batch.events, batch.from_seq, length)
        known = length - batch.from_seq
        if known:
            self._check_equal(batch.sid, batch.events[:known])
        self._insert(batch.sid, batch.events[known:])
        return max(length, batch.from_seq + len(batch.events))

    def _check_equal(self, sid: int, events: Sequence[Event]) -> None:
        for event in events:
            stored, offered = self.read_json(sid, event.seq), encode_event(event)
            if stored != offered and (
                stored is None or not deep_equal(decode_json(stored), decode_json(offered))
            ):
                raise SeqConflict(event.seq)

    def _insert_session(self, key: SessionKey, header: SessionHeader) -> int:
        sql = "INSERT INTO session(source, place, id, header) VALUES (?, ?, ?, ?) RETURNING sid"
        parameters = (key.source, blob(key.place), blob(key.id), encode_header(header))
        ((sid,),) = self.connection.execute(sql, parameters).fetchall()
        return int(sid)

    def _insert(self, sid: int, events: Sequence[Event]) -> None:
        if events:
            self.connection.executemany(_INSERT, self._rows(sid, events))

    def _rows(self, sid: int, events: Sequence[Event]) -> Iterator[tuple[int, bytes]]:
        for event in events:
            yield sid << SEQ_BITS | event.seq, self._packer.pack(encode_event(event))

    def _truncate(self, sid: int, length: int) -> None:
        self._ends.pop(sid, None)
        base = sid << SEQ_BITS
        self.connection.execute(_DELETE_FROM, (base + length, base + (1 << SEQ_BITS) - 1))

    def _delete(self, sid: int) -> None:
        self._truncate(sid, 0)
        self.connection.execute("DELETE FROM session WHERE sid = ?", (sid,))


def _check_contiguous(events: Sequence[Event], from_seq: int, length: int) -> None:
    """Raise SeqGap unless the events carry from_seq, from_seq + 1, … and do not begin behind the end."""
    if not 0 <= from_seq <= length or any(event.seq != from_seq + at for at, event in enumerate(events)):
        raise SeqGap(length)
