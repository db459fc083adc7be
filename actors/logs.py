"""Whole logs of single sessions, wherever they lie: memory, journal, a foreign log, a retained copy.

The view of a journal or dsh log is balanced after a crash when nobody can still be writing it: its runtime
detached it, or it has not changed for ten minutes (SPEC 1.7, 16.6.6). Other logs show an open turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..protocol.crash_repair import repaired
from ..protocol.errors import Code, QueryError
from ..protocol.event import Event
from ..protocol.outward import SessionKey
from ..protocol.reads import Window, event_number
from ..storage.index.door import StoredSession
from ..storage.journal import PUBLISHED, JournalDamaged, JournalReader, JournalSession
from ..storage.readers.held import writer_may_hold
from ..storage.readers.registry import READERS
from ..storage.sources.locate import locate, read_located
from ..storage.store_reader import StoreReader
from .live import LiveSession
from .parsed import BYTES_PER_LOG_BYTE, ParsedCache, ParsedLog
from .storage import StorageActor

if TYPE_CHECKING:
    from .circle import Entry

QUIET_S: Final = 600.0
"""A log unchanged for this long has no writer any more (SPEC 16.6.6)."""
POINT_EVENTS: Final = 64
"""Windows of at most this many events are read in the loop, by key: tens of microseconds warm."""
POINT_BYTES: Final = 64 * 1024
SIDS_MAX: Final = 4096
DSH: Final = "dsh"


@attrs.define(eq=False)
class LogReading:
    """Reads logs for the pool; keeps parsed foreign logs in ``cache``."""

    storage: StorageActor
    cache: ParsedCache
    _sids: dict[SessionKey, int] = attrs.field(factory=dict, init=False, repr=False)

    async def live(self, session: LiveSession, first: int = 0) -> Sequence[Event]:
        """A live session's log from ``first`` on, as it is now: an open turn is not closed (SPEC 1.7.6)."""
        if session.memory is not None:
            return tuple(session.memory[first:])
        sid, length = session.journal_sid, session.length
        if sid is None or first >= length:
            return ()
        if length - first <= POINT_EVENTS:
            events = self._read_small(sid, first, length - 1)
            if events is not None:
                return events
        return await self.storage.read_journal(lambda journal: _journal_events(journal, sid, length, first))

    async def stored(self, row: StoredSession) -> Sequence[Event]:
        """A stored session's log.

        Raises: QueryError: the code of a session that cannot be read; CORRUPT_SESSION, PERSISTENCE_FAILED;
            SESSION_NOT_FOUND when log and copies are gone.
        """
        if row.key.source == PUBLISHED:
            return await self.storage.read(lambda reader: self._published(reader, row))
        key = (row.sid, row.state.revision)
        return await self.cache.get(key, lambda: self._foreign(row))

    def point_window(
        self, entry: Entry, seq: object, window: Window, most_bytes: int = POINT_BYTES
    ) -> tuple[int, tuple[Event, ...]] | None:
        """A small window by key, in the loop: (place of the target, events); None when it takes more.

        Args: most_bytes: as JSON; what is in memory already is not measured.
        Raises: QueryError EVENT_NOT_FOUND.
        """
        number = event_number(seq)
        if entry.live is not None:
            length = entry.live.length
        elif entry.stored is not None and entry.key.source == PUBLISHED and entry.provider is None:
            length = entry.stored.state.length
        else:
            return None
        first, last = window.bounds(number, length)
        reaches_end = entry.live is None and last >= length - 1  # closers may stand behind
        if number >= length or reaches_end or last - first >= POINT_EVENTS:
            if entry.live is not None and number >= length:
                raise QueryError(Code.EVENT_NOT_FOUND)
            return None
        if entry.live is not None and entry.live.memory is not None:
            return number - first, tuple(entry.live.memory[first : last + 1])
        try:
            events = self._point(entry, first, last, most_bytes)
        except JournalDamaged as exc:
            raise QueryError(Code.CORRUPT_SESSION, str(exc)) from exc
        if events is None:
            return None
        if len(events) != last - first + 1:
            raise QueryError(Code.EVENT_NOT_FOUND)
        return number - first, events

    def shows_closers(self, row: StoredSession) -> bool:
        """Whether the view of a stored session may end in closers: then its skeleton is not all of it."""
        return row.key.source in (PUBLISHED, DSH)

    def is_repaired(self, row: StoredSession) -> bool:
        """Whether the view of a published session's log ends in closers, if a turn was left open."""
        stored = self.storage.point_journal(lambda journal: journal.find(row.key))
        return stored is not None and self.storage.point_journal(lambda one: _has_no_writer(one, stored))

    def _point(self, entry: Entry, first: int, last: int, most_bytes: int) -> tuple[Event, ...] | None:
        live = entry.live
        sid = live.journal_sid if live is not None else self._sids.get(entry.key) or self._find_sid(entry.key)
        events = self._read_small(sid, first, last, most_bytes)
        if live is None and events is not None and len(events) <= last - first:  # forgotten, and let back in
            events = self._read_small(self._find_sid(entry.key), first, last, most_bytes)
        return events

    def _read_small(
        self, sid: int | None, first: int, last: int, most_bytes: int = POINT_BYTES
    ) -> tuple[Event, ...] | None:
        if sid is None:
            return None
        events = self.storage.point_journal(lambda journal: journal.read_small(sid, first, last, most_bytes))
        return None if events is None else tuple(events)

    def _find_sid(self, key: SessionKey) -> int | None:
        """The journal's number of a session, remembered: no other one ever gets it."""
        stored = self.storage.point_journal(lambda journal: journal.find(key))
        if len(self._sids) >= SIDS_MAX:
            self._sids.clear()
        if stored is None:
            self._sids.pop(key, None)
            return None
        self._sids[key] = stored.sid
        return stored.sid

    def _published(self, reader: StoreReader, row: StoredSession) -> Sequence[Event]:
        stored = reader.journal.find(row.key)
        if stored is None:
            raise QueryError(Code.SESSION_NOT_FOUND)
        events = _journal_events(reader.journal, stored.sid, stored.length)
        return repaired(events) if _has_no_writer(reader.journal, stored) else events

    async def _foreign(self, row: StoredSession) -> ParsedLog:
        if row.state.error is not None:
            raise QueryError(Code(row.state.error))
        stopped = False

        async def stop_on_cancel() -> None:
            nonlocal stopped
            try:
                await trio.sleep_forever()
            finally:  # the reader's thread is awaited; it looks at this between two records
                stopped = True

        log: ParsedLog | None = None
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_on_cancel)
            try:
                log = await self.storage.read(lambda reader: _read_foreign(reader, row, lambda: stopped))
            except Exception as exc:  # handed on outside the nursery, so that it stays what it is
                failure = exc
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert log is not None
        return log


def _read_foreign(reader: StoreReader, row: StoredSession, stopped: Callable[[], bool]) -> ParsedLog:
    """In a reader's thread: parse the log, or fall back to the retained copy."""
    located = locate(reader.connection, row.sid)
    if located is not None:
        try:
            size, quiet = _look(located.unit.path)
            events = tuple(read_located(READERS[located.format], located, stopped))
        except FileNotFoundError:
            events = ()
        except OSError as exc:
            raise QueryError(Code.PERSISTENCE_FAILED, f"the log cannot be read: {exc.strerror}") from exc
        if events or not row.state.length:
            if row.key.source == DSH and quiet:
                events = tuple(repaired(events))
            return ParsedLog(events, size * BYTES_PER_LOG_BYTE)
    stored = reader.journal.find(row.key)
    if stored is None:
        raise QueryError(Code.SESSION_NOT_FOUND, "the log is gone and no copy was kept")
    kept = _journal_events(reader.journal, stored.sid, stored.length)
    return ParsedLog(kept, sum(len(str(event.data)) for event in kept) * 2)


def _journal_events(journal: JournalReader, sid: int, length: int, first: int = 0) -> tuple[Event, ...]:
    try:
        return tuple(event for page in journal.read_all(sid, first) for event in page)[: length - first]
    except JournalDamaged as exc:
        raise QueryError(Code.CORRUPT_SESSION, str(exc)) from exc


def _has_no_writer(journal: JournalReader, stored: JournalSession) -> bool:
    """Whether nobody may go on writing a session of the journal that is not live (SPEC 16.6.6)."""
    if stored.clean:
        return True
    last_ms = journal.last_time(stored.sid) or 0
    return time.time() - last_ms / 1000 >= QUIET_S


def _look(path: Path) -> tuple[int, bool]:
    """(size in bytes, whether no writer can still hold the log). Raises: OSError."""
    return path.stat().st_size, not writer_may_hold(path, time.time())
