"""Reading the journal: listings without logs, and point reads by session and seq.

A reader wraps one connection and has its owner. All operations are synchronous and bounded by what they
return; ``run_query`` or a caller with a connection of its own keeps them off the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...protocol.event import Event
from ...protocol.json_codec import decode_json
from ...protocol.outward import SessionKey
from ..sqlite import Connection, Row
from .codec import HEAD_BYTES, Packer, decode_event, decode_header, decode_title, plain_size
from .originals import Originals
from .records import JournalDamaged, JournalSession
from .schema import SEQ_BITS

PAGE_EVENTS: Final = 512
"""Events fetched at a time by ``read_all``: a page is fetched whole, so that no cursor stays open."""

_LENGTH: Final = (
    "(SELECT key FROM event WHERE key BETWEEN sid << 32 AND (sid << 32) + 4294967295 "
    "ORDER BY key DESC LIMIT 1)"
)
_SESSION: Final = (
    f"SELECT sid, source, place, id, header, {_LENGTH}, title, inherited, notes, clean FROM session"
)
_POINT: Final = "SELECT body FROM event WHERE key = ?"
_SMALL: Final = (
    "SELECT key, CASE WHEN length(body) <= ? THEN body END FROM event WHERE key BETWEEN ? AND ? ORDER BY key"
)
_ONE_SMALL: Final = "SELECT CASE WHEN length(body) <= ? THEN body END FROM event WHERE key = ?"
_RANGE: Final = "SELECT key, body FROM event WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"


class JournalReader:
    """Point reads and listings over one connection, read-only or the writer's own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        rows = connection.execute("SELECT number, body FROM dictionary").fetchall()
        self._packer = Packer(dict(rows), max(number for number, _ in rows))
        ((store,),) = connection.execute("SELECT value FROM meta WHERE key = 'store'").fetchall()
        self.store: str = store
        self.originals = Originals(connection)

    def sessions(self, source: str | None = None) -> list[JournalSession]:
        """Every session (of one source), by sid. No event is read."""
        rows = self.connection.execute(
            f"{_SESSION} WHERE ?1 IS NULL OR source = ?1 ORDER BY sid", (source,)
        ).fetchall()
        return [self._session(row) for row in rows]

    def find(self, key: SessionKey) -> JournalSession | None:
        """The session with this key, or None."""
        return self._one("source = ? AND place = ? AND id = ?", (key.source, blob(key.place), blob(key.id)))

    def find_sid(self, sid: int) -> JournalSession | None:
        """The session with this number, or None."""
        return self._one("sid = ?", (sid,))

    def length(self, sid: int) -> int:
        """How many events are stored; 0 for an unknown session as well."""
        first = sid << SEQ_BITS
        sql = "SELECT key FROM event WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1"
        rows = self.connection.execute(sql, (first, first + (1 << SEQ_BITS) - 1)).fetchall()
        return int(rows[0][0]) - first + 1 if rows else 0

    def read_json(self, sid: int, seq: int) -> bytes | None:
        """One event's stored JSON, or None if there is no such event. Raises: JournalDamaged."""
        row = self.connection.execute(_POINT, (sid << SEQ_BITS | seq,)).fetchone()
        return None if row is None else self._restore(sid, seq, row[0])

    def read_event(self, sid: int, seq: int) -> Event | None:
        """One event, or None if there is no such event. Raises: JournalDamaged."""
        plain = self.read_json(sid, seq)
        return None if plain is None else self._event(sid, seq, plain)

    def read_events(self, sid: int, first: int, last: int, limit: int = -1) -> list[Event]:
        """Events ``first``..``last`` inclusive, as many as there are. Raises: JournalDamaged.

        A negative ``first`` counts as 0. ``limit`` bounds the number of events; negative means none.
        """
        base = sid << SEQ_BITS
        last = min(last, (1 << SEQ_BITS) - 1)
        rows = self.connection.execute(_RANGE, (base + max(first, 0), base + last, limit)).fetchall()
        return [self._event(sid, key - base, self._restore(sid, key - base, body)) for key, body in rows]

    def read_small(self, sid: int, first: int, last: int, most_bytes: int) -> list[Event] | None:
        """As ``read_events``, if they have at most ``most_bytes`` as JSON; else None, and none is restored.

        For reads that may not keep a loop waiting. Their compressed size would say little: a megabyte of
        brackets takes some hundred bytes. Raises: JournalDamaged.
        """
        base = sid << SEQ_BITS
        if first == last:
            return self._read_one_small(sid, first, most_bytes)
        rows = self.connection.execute(_SMALL, (most_bytes, base + first, base + last)).fetchall()
        size = 0
        for _, body in rows:
            size += most_bytes + 1 if body is None else plain_size(body[:HEAD_BYTES], len(body))
            if size > most_bytes:
                return None
        return [self._event(sid, key - base, self._restore(sid, key - base, body)) for key, body in rows]

    def _read_one_small(self, sid: int, seq: int, most_bytes: int) -> list[Event] | None:
        rows = self.connection.execute(_ONE_SMALL, (most_bytes, sid << SEQ_BITS | seq)).fetchall()
        if not rows:
            return []
        body: bytes | None = rows[0][0]
        if body is None or plain_size(body[:HEAD_BYTES], len(body)) > most_bytes:
            return None
        return [self._event(sid, seq, self._restore(sid, seq, body))]

    def read_all(self, sid: int, first: int = 0) -> Iterator[list[Event]]:
        """The log from ``first`` on, in pages of at most 512 events; each page its own small read.

        Events are never changed, so pages fit together even while the log grows. Raises: JournalDamaged.
        """
        while page := self.read_events(sid, first, (1 << SEQ_BITS) - 1, PAGE_EVENTS):
            yield page
            first = page[-1].seq + 1

    def last_time(self, sid: int) -> int | None:
        """``time`` of the last event in ms, None when there is none. Raises: JournalDamaged."""
        length = self.length(sid)
        last = self.read_event(sid, length - 1) if length else None
        return None if last is None else last.time

    def revision(self, sid: int, length: int) -> str:
        """The revision of a log of this length (SPEC 1.9.1)."""
        return f"{self.store}:{sid}:{length}"

    def _one(self, where: str, parameters: tuple[int | str | bytes, ...]) -> JournalSession | None:
        rows = self.connection.execute(f"{_SESSION} WHERE {where}", parameters).fetchall()
        return self._session(rows[0]) if rows else None

    def _session(self, row: Row) -> JournalSession:
        sid, source, place, identity, header, last, title, inherited, notes, clean = row
        length = 0 if last is None else last - (sid << SEQ_BITS) + 1
        noted = decode_json(notes) if notes else []
        return JournalSession(
            sid=sid,
            key=SessionKey(source, text(place), text(identity)),
            header=decode_header(header),
            length=length,
            revision=self.revision(sid, length),
            title=decode_title(title),
            inherited=inherited,
            notes=tuple(str(note) for note in noted) if isinstance(noted, list) else (),
            clean=bool(clean),
        )

    def _restore(self, sid: int, seq: int, body: bytes) -> bytes:
        try:
            return self._packer.unpack(body)
        except ValueError as exc:
            raise JournalDamaged(sid, seq) from exc

    def _event(self, sid: int, seq: int, plain: bytes) -> Event:
        try:
            return decode_event(plain)
        except ValueError as exc:
            raise JournalDamaged(sid, seq) from exc


def blob(value: str) -> bytes:
    """Text as the bytes it is stored and compared as; lone surrogates keep their identity."""
    return value.encode("utf-8", "surrogatepass")


def text(value: bytes) -> str:
    """What ``blob`` was given."""
    return value.decode("utf-8", "surrogatepass")
