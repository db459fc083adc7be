"""Publishing: attach, append, detach. What runtimes tell the service, committed before it is acknowledged.

Order of one append: judge the batch against the stored log, commit the new events to the journal, then
tell the index of just those events; it takes them in before the next search looks. The journal is
canonical: if the index cannot take them, the append still stands and the index catches up later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
import trio

from ..protocol.envelope import EventError, event_from_json, event_to_json, with_seed_marker
from ..protocol.errors import UnsupportedFormat
from ..protocol.event import Event
from ..protocol.event_types import EventTypes
from ..protocol.header import HeaderError, SessionHeader, compatible, header_from_json
from ..protocol.json_value import JSON
from ..protocol.outward import SessionKey
from ..protocol.signal import Signal
from ..protocol.weight import is_heavy
from ..protocol.wire.appending import Verdict, check_seqs, judge, judge_prefix, same_event
from ..protocol.wire.codes import WireCode, WireError
from ..protocol.wire.identity import Owner
from ..storage.index.door import SessionState
from ..storage.journal import Batch, Forgotten, HeaderConflict, JournalRefusal, JournalSession
from ..storage.news import News
from ..storage.projection import Projection
from ..storage.store import Store
from .live import LiveSession, LiveStore
from .pool import HEAVY_EVENTS
from .storage import StorageActor
from .wire_service import Attached

T = TypeVar("T")

JOURNAL_RANK = 1
LIVE_RANK = 0
RETRY_AFTER_MS = 1000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@attrs.define(eq=False)
class Publishing:
    """The writers' side of the service. ``journal`` False: sessions live in memory and end on detach.

    ``types``: what a seed may hold (SPEC 1.5.3). What a live session appends is its runtime's own affair.
    """

    storage: StorageActor
    live: LiveStore
    journal: bool
    types: EventTypes = attrs.field(factory=EventTypes)
    _attaching: dict[SessionKey, trio.Lock] = attrs.field(factory=dict, init=False)

    async def attach(
        self, header: JSON, events: Sequence[JSON] | None, owner: Owner, signal: Signal
    ) -> Attached:
        """Make a session live; see ``WireService.attach`` for the errors and their order."""
        known = _header(header)
        seed = None if events is None else list(events)
        if seed is not None:
            check_seqs(0, seed)
        key = SessionKey("journal" if self.journal else "live", _place(known, owner), known.id)
        lock = self._attaching.setdefault(key, trio.Lock())
        try:
            async with lock:
                signal.raise_if_aborted()
                session = self.live.find(key)
                if session is not None:
                    return await self._take_over(session, known, seed, owner)
                if self.live.owned(known.id, owner) is not None:  # appends name the id alone
                    raise WireError(
                        WireCode.INVALID_HEADER, "this connection has another session with this id attached"
                    )
                return await self._bring_in(key, known, seed, owner, signal)
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._attaching.pop(key, None)

    async def append(
        self, session_id: str, from_seq: int, events: Sequence[JSON], owner: Owner, signal: Signal
    ) -> int:
        """Commit a batch; see ``WireService.append``."""
        session = self._owned(session_id, owner)
        await _acquire(session.lock)
        try:
            signal.raise_if_aborted()
            self._owned(session_id, owner)  # it may have been taken over while we waited
            if session.projection is None:
                await self._rebuild(session)
            length = session.length
            stored = (
                await self._stored(session, from_seq, from_seq + len(events) - 1) if from_seq < length else []
            )
            heavy = _is_heavy(events)
            verdict, fresh = await _off_the_loop(
                heavy, lambda: _judged(length, from_seq, events, _comparing(stored))
            )
            if fresh:
                await self._commit(session, fresh, heavy)
            else:
                await trio.lowlevel.checkpoint()
            return verdict.through_seq
        finally:
            session.lock.release()

    async def detach(self, session_id: str, owner: Owner) -> None:
        """End a live session if this connection still holds it."""
        session = self.live.owned(session_id, owner)
        if session is not None:
            await self._end(session)

    async def disconnected(self, owner: Owner) -> None:
        """End every live session of a lost connection."""
        for session in self.live.of_connection(owner.connection_id):
            await self._end(session)

    async def end_all(self) -> None:
        """End every live session: the service stops."""
        for session in self.live.all():
            await self._end(session)

    async def _end(self, session: LiveSession) -> None:
        with trio.CancelScope(shield=True):  # bounded by the writes before it: no row may stay half live
            async with session.lock:
                if self.live.find(session.key) is session:
                    await self._leave(session)

    async def _leave(self, session: LiveSession) -> None:
        """Take a session out of the live ones, if it is there, and tell journal and index."""
        with trio.CancelScope(shield=True):  # as in ``_end``
            self.live.remove(session)
            await self.storage.write(lambda store: _detach(store, session))

    async def _take_over(
        self, session: LiveSession, header: SessionHeader, seed: list[JSON] | None, owner: Owner
    ) -> Attached:
        if session.owner.token_id != owner.token_id:
            raise WireError(
                WireCode.BUSY, "the session is live under another token", retry_after_ms=RETRY_AFTER_MS
            )
        if not compatible(session.header, header):
            raise WireError(WireCode.INVALID_HEADER, "the header differs from the live session's")
        async with session.lock:
            stored = await self._stored(session, 0, len(seed or ()) - 1)
            judge_prefix(session.length, seed or [], _comparing(stored))
            self.live.hand_over(session, owner)
            return Attached(session_id=session.key.id, next_seq=session.length)

    async def _bring_in(
        self,
        key: SessionKey,
        header: SessionHeader,
        seed: list[JSON] | None,
        owner: Owner,
        signal: Signal,
    ) -> Attached:
        heavy = _is_heavy(seed or ())
        given = await _off_the_loop(heavy, lambda: _seed(seed or ()))
        stored: JournalSession | None = None
        if self.journal:
            stored = await self._journaled(key, header, None if seed is None else given, signal)
        else:
            self._check_types(given)
        session = await self._admit(key, header if stored is None else stored.header, owner, stored)
        try:
            if stored is None:
                if seed is not None:
                    given = with_seed_marker(given, time=now_ms())
                await self._commit(session, given, heavy)
            else:
                await self._rebuild(session)
                await self._index_rest(session)
                self.live.add(session)  # not before: whoever reads a live session goes by its length
        except BaseException:  # nobody was told of it, so nobody would detach it
            await self._leave(session)
            raise
        return Attached(session_id=key.id, next_seq=session.length)

    async def _journaled(
        self, key: SessionKey, header: SessionHeader, seed: Sequence[Event] | None, signal: Signal
    ) -> JournalSession:
        def attach(store: Store) -> JournalSession:
            if store.journal.find(key) is None:
                self._check_types(seed or ())
            return store.journal.attach(key.place, header, seed, now_ms())

        try:
            return await self.storage.write(attach, signal)
        except Forgotten as exc:
            raise WireError(WireCode.FORBIDDEN, "the session was forgotten and may not come back") from exc
        except HeaderConflict as exc:
            raise WireError(WireCode.INVALID_HEADER, "the header differs from the stored session's") from exc
        except JournalRefusal as exc:
            raise WireError(WireCode.SEQ_CONFLICT, "the events are no prefix of the stored log") from exc

    def _check_types(self, seed: Sequence[Event]) -> None:
        """Refuse to load what a newer writer made (SPEC 1.5.3-1.5.4). Raises: WireError INVALID_EVENT."""
        try:
            for event in seed:
                self.types.check_stored(event)
        except UnsupportedFormat as exc:
            raise WireError(WireCode.INVALID_EVENT, str(exc)) from exc

    async def _admit(
        self, key: SessionKey, header: SessionHeader, owner: Owner, stored: JournalSession | None
    ) -> LiveSession:
        """A session on its way to be live; its row says how much of the log the index holds, maybe none.

        One that is not journaled is live at once: it has no log yet, and its row is nothing without it.
        """

        def put(store: Store) -> int:
            known = store.index.find(key)
            state = self._state(None, 0, header) if known is None else known.state
            with store.index.transaction():
                sid = store.index.put_session(key, state)
                store.index.touch([sid])
            return sid

        with trio.CancelScope(shield=True):  # the row and its place among the live come together
            sid = await self.storage.write(put)
        session = LiveSession(
            key=key,
            header=header,
            owner=owner,
            sid=sid,
            journal_sid=None if stored is None else stored.sid,
            memory=[] if stored is None else None,
            persisted=self.journal,
        )
        if stored is None:
            self.live.add(session)
        return session

    async def _rebuild(self, session: LiveSession) -> None:
        """Fold the stored log again: on attaching to a stored session, and after a failed commit."""
        events = await self._stored(session, 0, None)
        projection = Projection()
        heavy = _is_heavy([event.data for event in events])
        await _off_the_loop(heavy, lambda: projection.feed(events))
        session.projection, session.length = projection, 0
        session.committed(events)

    async def _index_rest(self, session: LiveSession) -> None:
        """Index what the journal holds and the index does not (a seed just stored, or a crash between)."""
        state = self._state(session, session.length, session.header, session.projection)
        await self.storage.write(lambda store: _catch_up(store, session.key, state))

    async def _commit(self, session: LiveSession, events: Sequence[Event], heavy: bool) -> None:
        """Store new events. Raises: WireError INVALID_EVENT when they break the surface (SPEC 2).

        Stored and known to be stored are one: nothing is awaited between them, and storing itself is not
        cancellable.
        """
        projection = session.projection
        assert projection is not None
        session.projection = None  # it runs ahead of the log until the commit is known
        change = await _off_the_loop(
            heavy, lambda: projection.feed(events, skeleton=session.journal_sid is None)
        )
        if projection.broken is not None:
            raise WireError(WireCode.INVALID_EVENT, _surface_defect(events, projection.broken))
        state = self._state(session, session.length + len(events), session.header, projection)
        try:
            await self.storage.append(_batch(session, events), News(session.key, session.sid, change, state))
        except BaseException:
            if session.journal_sid is not None:  # a commit that failed may be on the disk all the same
                self.storage.mark_behind(session.key)
            raise
        session.projection = projection
        if session.memory is not None:
            session.memory.extend(events)
        session.committed(events)

    def _state(
        self,
        session: LiveSession | None,
        length: int,
        header: SessionHeader,
        projection: Projection | None = None,
    ) -> SessionState:
        """What the index is told of a session; its title is that of ``projection``."""
        title, title_error = (None, None) if projection is None else projection.title()
        return SessionState(
            header=header,
            rank=JOURNAL_RANK if self.journal else LIVE_RANK,
            title=title,
            title_error=title_error,
            length=length,
            revision=str(length),
            inherited=header.seed_length or 0,
            persisted=self.journal if session is None else session.persisted,
            durable=self.journal,
        )

    async def _stored(self, session: LiveSession, first: int, last: int | None) -> list[Event]:
        """Stored events first..last of a session; a short list for an empty range, without a thread hop."""
        end = session.length if last is None else min(last + 1, session.length)
        if session.memory is not None:
            return session.memory[first:end]
        journal_sid = session.journal_sid
        if journal_sid is None or (last is not None and first >= end):
            return []
        return await self.storage.read_journal(
            lambda journal: (
                [event for page in journal.read_all(journal_sid, first) for event in page]
                if last is None
                else journal.read_events(journal_sid, first, last)
            )
        )

    def _owned(self, session_id: str, owner: Owner) -> LiveSession:
        session = self.live.owned(session_id, owner)
        if session is None:
            raise WireError(WireCode.NOT_ATTACHED, "this connection has no such session attached")
        return session


async def _acquire(lock: trio.Lock) -> None:
    """Take a lock, without a pass of the loop if it is free. Cancellation: at once, the lock untaken."""
    await trio.lowlevel.checkpoint_if_cancelled()
    try:
        lock.acquire_nowait()
    except trio.WouldBlock:
        await lock.acquire()


def _is_heavy(events: Sequence[JSON]) -> bool:
    """Whether the loop has better things to do than to go through these."""
    return len(events) > HEAVY_EVENTS or is_heavy(events)


async def _off_the_loop(heavy: bool, work: Callable[[], T]) -> T:
    """Pure work, in a thread if it is heavy. Cancellation: as for a thread."""
    return await trio.to_thread.run_sync(work) if heavy else work()


def _judged(
    length: int, from_seq: int, events: Sequence[JSON], is_stored: _IsStored
) -> tuple[Verdict, list[Event]]:
    """What is to be done with a batch, and its new events. Raises: WireError."""
    verdict = judge(length, from_seq, events, is_stored)
    new = events[verdict.skip :]
    return verdict, [_event(event, verdict.first_new + at) for at, event in enumerate(new)]


def _comparing(stored: Sequence[Event]) -> _IsStored:
    return _IsStored({event.seq: event for event in stored})


@attrs.frozen
class _IsStored:
    events: dict[int, Event]

    def __call__(self, seq: int, event: JSON) -> bool:
        stored = self.events.get(seq)
        return stored is not None and same_event(event_to_json(stored), event)


def _place(header: SessionHeader, owner: Owner) -> str:
    """What keeps apart sessions that share an id and have no business together (SPEC 16.6.1).

    Inside one workspace an id is one session; a session without workspace belongs to its token alone.
    """
    return header.cwd if header.cwd is not None else f"token:{owner.token_id}"


def _header(value: JSON) -> SessionHeader:
    try:
        return header_from_json(value)
    except HeaderError as exc:
        raise WireError(WireCode.INVALID_HEADER, str(exc)) from exc


def _event(value: JSON, seq: int) -> Event:
    try:
        return event_from_json(value, default_seq=seq)
    except EventError as exc:
        raise WireError(WireCode.INVALID_EVENT, f"event {seq}: {exc}") from exc


def _seed(values: Sequence[JSON]) -> list[Event]:
    """The events of a seed. Raises: WireError INVALID_EVENT, also if they break the surface."""
    events = [_event(value, seq) for seq, value in enumerate(values)]
    projection = Projection()
    projection.feed(events)
    if projection.broken is not None:
        raise WireError(WireCode.INVALID_EVENT, _surface_defect(events, projection.broken))
    return events


def _surface_defect(events: Sequence[Event], code: str) -> str:
    return f"the events break the surface rules ({code})"


def _batch(session: LiveSession, events: Sequence[Event]) -> Batch | None:
    """What the journal is given; None for a session that is kept in memory."""
    if session.journal_sid is None:
        return None
    return Batch(sid=session.journal_sid, from_seq=session.length, events=events)


def _catch_up(store: Store, key: SessionKey, state: SessionState) -> None:
    store.catch_up(key)
    with store.index.transaction():
        store.index.put_session(key, state)


def _detach(store: Store, session: LiveSession) -> None:
    if session.journal_sid is not None:
        store.journal.detach(session.journal_sid)
        with store.index.transaction():
            store.index.touch([session.sid])
        return
    with store.index.transaction():
        store.index.delete(session.sid)
