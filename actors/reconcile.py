"""Bringing the index in line with mounted providers before a search (SPEC 6.10).

Stability is judged session by session (SPEC 14 L6): what two listings around the inspections agree on is
committed, only what moved is looked at again. One bad session is quarantined with its code, one failing
provider keeps what was known of it (SPEC 16.6.4).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

import attrs
import trio

from ..protocol.errors import Code, QueryError
from ..protocol.header import compatible, same_snapshot
from ..protocol.outward import SessionKey
from ..protocol.signal import Signal
from ..storage import sqlite
from ..storage.index.door import IndexReader, SessionState, StoredSession
from ..storage.projection import Change
from ..storage.store import Store
from ..storage.store_reader import StoreReader
from ..storage.whole_session import WholeSession, prepare, put_whole, quarantined
from .live import LiveSession, LiveStore
from .mounted import BUILT_IN, Binding, Mounted, inspect_with
from .providers import SessionSnapshot
from .storage import StorageActor
from .visibility import Visibility

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 2
BATCH: Final = 256
"""Sessions inspected between two listings: what is not committed yet is held in memory."""
PROVIDER_RANK: Final = 1000
"""Mounted providers rank behind every reader, in mount order (SPEC 16.6.3)."""
UNREAD: Final = "\0unread"
"""The revision of a row that has to be looked into, whatever its provider's revision is."""

Pending: TypeAlias = "dict[str, SessionSnapshot | None]"
"""Sessions whose two listings disagreed, each as it was listed last; None: not any more."""


@attrs.define(eq=False)
class Reconciler:
    """Runs one reconcile at a time; later searches of the same moment wait for it and find nothing to do.

    ``workers`` inspect at once, all providers together.
    """

    storage: StorageActor
    live: LiveStore
    mounted: Mounted
    visibility: Visibility
    workers: int
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _trusted: dict[str, int] = attrs.field(factory=dict, init=False)
    _in_step: dict[str, tuple[int, float]] = attrs.field(factory=dict, init=False)
    _behind: dict[str, QueryError] = attrs.field(factory=dict, init=False)

    async def run(self, signal: Signal) -> None:
        """Reconcile every bound provider.

        Raises: QueryError PERSISTENCE_FAILED in strict mode only; INDEX_FAILED when the transaction fails
            (everything rolled back, the next search starts from scratch); the signal's exact reason.
        Cancellation: nothing more is started, nothing is committed half.
        """
        await self.visibility.follow()
        unjournaled = any(session.memory is not None for session in self.live.all())
        if not self.mounted.names and not unjournaled:
            return
        async with self._lock:
            for rank, binding in enumerate(self.mounted.bindings):
                signal.raise_if_aborted()
                await self._keep_up(binding.name, PROVIDER_RANK + rank, signal)
            signal.raise_if_aborted()
            await self._flag_persisted(signal)

    def stale_s(self) -> float | None:
        """Seconds since the worst provider was last in step; None while all are (SPEC 16.3). Any thread."""
        late = [
            time.monotonic() - self._last_in_step(binding)
            for binding in self.mounted.bindings
            if binding.name in self._behind
        ]
        return max(late, default=None)

    def failure(self) -> QueryError | None:
        """Why a bound provider is not in step, if one is not: absence from the index proves nothing then."""
        return next((self._behind[name] for name in self.mounted.names if name in self._behind), None)

    def _last_in_step(self, binding: Binding) -> float:
        epoch, at = self._in_step.get(binding.name, (0, 0.0))
        return at if epoch == binding.epoch else binding.since

    async def _keep_up(self, name: str, rank: int, signal: Signal) -> None:
        pending: Pending | None = None  # None: every listed session
        for _ in range(ATTEMPTS):
            binding = self.mounted.binding(name)
            if binding is None:
                return  # unmounted meanwhile: its rows are hidden before the next question
            try:
                moved = await self._attempt(binding, rank, pending, signal)
            except QueryError as failure:
                if not self.mounted.is_bound(binding):
                    pending = None
                    continue  # an error under a binding that changed: an unstable attempt (SPEC 6.10 step 5)
                if self.mounted.strict or failure.code is Code.INDEX_FAILED:
                    raise
                self._behind[name] = failure
                return
            if moved is not None and not moved:
                self._trusted[name] = binding.epoch
                self._in_step[name] = binding.epoch, time.monotonic()
                self._behind.pop(name, None)
                return
            pending = moved
        await self._give_up(name, rank, pending or {}, signal)

    async def _attempt(
        self, binding: Binding, rank: int, pending: Pending | None, signal: Signal
    ) -> Pending | None:
        """List, inspect, list again, commit what is stable. Returns what moved; None: all of it."""
        before = await self.mounted.snapshots(binding, signal)
        rows = await self.storage.read(partial(_rows_of, source=binding.name))
        due = [
            snapshot
            for snapshot in before.values()
            if (pending is None or snapshot.header.id in pending)
            and self._must_look(binding, rank, snapshot, rows.get(snapshot.header.id))
        ]
        moved: set[str] = set()
        after = before
        for start in range(0, len(due), BATCH):
            batch = due[start : start + BATCH]
            sessions = await self._look_into(binding, rank, batch, signal)
            after = await self.mounted.snapshots(binding, signal)
            if not self.mounted.is_bound(binding):
                return None
            moved |= _moved(before, after) | self._owned_late(sessions.values())
            stable = [session for id_, session in sessions.items() if id_ not in moved]
            if stable:
                await self._write(partial(_apply, sessions=stable, gone=()), signal)
        gone = [row.sid for id_, row in rows.items() if id_ not in after and id_ not in moved]
        if gone:
            await self._write(partial(_apply, sessions=(), gone=gone), signal)
        return {id_: after.get(id_) for id_ in moved}

    def _must_look(
        self, binding: Binding, rank: int, snapshot: SessionSnapshot, row: StoredSession | None
    ) -> bool:
        """Whether a listed session has to be looked into (SPEC 6.10 steps 2 and 4, 6.10.2, 6.10.5)."""
        if row is None:
            return True
        if self.live.shadowing(snapshot.header) is not None:
            # its live owner's log counts; what is stored is refreshed when it detaches
            return not same_snapshot(row.state.header, snapshot.header)
        trusted = self._trusted.get(binding.name, binding.epoch) == binding.epoch
        return not trusted or row.state.revision != snapshot.revision or row.state.rank != rank

    async def _look_into(
        self, binding: Binding, rank: int, snapshots: list[SessionSnapshot], signal: Signal
    ) -> dict[str, WholeSession]:
        """Inspect and fold, ``workers`` at once, in listing order. A failure is its session's own."""
        found: dict[str, WholeSession] = {}
        queue = iter(snapshots)

        async def worker() -> None:
            for snapshot in queue:
                if signal.aborted:
                    return
                found[snapshot.header.id] = await self._session(binding, rank, snapshot, signal)

        async with trio.open_nursery() as nursery:
            for _ in range(min(self.workers, len(snapshots))):
                nursery.start_soon(worker)
        signal.raise_if_aborted()
        return found

    async def _session(
        self, binding: Binding, rank: int, snapshot: SessionSnapshot, signal: Signal
    ) -> WholeSession:
        header = snapshot.header
        key = SessionKey(binding.name, "", header.id)
        state = SessionState(
            header=header, rank=rank, revision=snapshot.revision, inherited=header.seed_length or 0
        )
        if self.live.shadowing(header) is not None:
            return WholeSession(key, attrs.evolve(state, revision=UNREAD), Change())
        try:
            inspected = await inspect_with(binding.provider, header, signal)
            if not compatible(inspected.header, header):
                raise QueryError(Code.SOURCE_CONFLICT, "listed and inspected headers differ")
        except QueryError as failure:
            if failure.code is not Code.CORRUPT_SESSION:  # it may pass: looked into again by the next search
                state = attrs.evolve(state, revision=UNREAD)
            return quarantined(key, state, failure.code)
        try:
            return await trio.to_thread.run_sync(prepare, key, state, inspected.events)
        except Exception as exc:  # no log: a host's object that only looks like events
            logger.warning("a session of provider %s cannot be folded: %s", binding.name, type(exc).__name__)
            return quarantined(key, attrs.evolve(state, revision=UNREAD), Code.PERSISTENCE_FAILED)

    async def _give_up(self, name: str, rank: int, pending: Pending, signal: Signal) -> None:
        """After two unstable attempts what is left cannot be read for now (SPEC 6.10 step 3)."""
        failure = QueryError(Code.PERSISTENCE_FAILED, "a provider's sessions keep moving")
        if self.mounted.strict:
            raise failure
        self._behind[name] = failure
        left = [
            quarantined(
                SessionKey(name, "", snapshot.header.id),
                SessionState(header=snapshot.header, rank=rank, revision=UNREAD),
                Code.PERSISTENCE_FAILED,
            )
            for snapshot in pending.values()
            if snapshot is not None and self.live.shadowing(snapshot.header) is None
        ]
        await self._write(partial(_apply, sessions=left, gone=()), signal)

    def _owned_late(self, found: Iterable[WholeSession]) -> set[str]:
        """Ids that came to live while they were inspected, or were let go while they were not."""
        return {
            session.key.id
            for session in found
            if (self.live.shadowing(session.state.header) is not None) != _is_left_out(session.state)
        }

    async def _flag_persisted(self, signal: Signal) -> None:
        """Live sessions that nobody journals: does some store hold them now (SPEC 4.2, 6.9)?"""
        sessions = [session for session in self.live.all() if session.memory is not None]
        if not sessions:
            return
        names = self.mounted.names
        held = await self.storage.read(
            lambda reader: {one.sid for one in sessions if is_stored_elsewhere(reader.index, one, names)}
        )
        flipped = [session for session in sessions if session.persisted != (session.sid in held)]
        for session in flipped:
            session.persisted = session.sid in held
        if flipped:
            await self._write(partial(_flag, sessions=flipped), signal)

    async def _write(self, work: Callable[[Store], None], signal: Signal) -> None:
        """Raises: QueryError INDEX_FAILED: the transaction failed and is undone (SPEC 6.10 step 8)."""
        try:
            await self.storage.write(work, signal)
        except sqlite.Error as exc:
            raise QueryError(Code.INDEX_FAILED, "the index cannot be written") from exc


def is_stored_elsewhere(index: IndexReader, live: LiveSession, mounted: frozenset[str]) -> bool:
    """Whether a store that is there now holds the session of a live row as well."""
    return any(
        row.sid != live.sid
        and row.state.persisted
        and (row.key.source in BUILT_IN or row.key.source in mounted)
        and compatible(row.state.header, live.header)
        for row in index.fallbacks(live.sid)
    )


def _is_left_out(state: SessionState) -> bool:
    """Whether a session was not inspected because somebody has it live."""
    return state.revision == UNREAD and state.error is None


def _moved(before: Mapping[str, SessionSnapshot], after: Mapping[str, SessionSnapshot]) -> set[str]:
    """Ids that two listings do not agree on: come, gone, another revision or header (SPEC 6.10 step 3)."""
    moved = before.keys() ^ after.keys()
    for id_ in before.keys() & after.keys():
        first, second = before[id_], after[id_]
        if first.revision != second.revision or not same_snapshot(first.header, second.header):
            moved.add(id_)
    return moved


def _rows_of(reader: StoreReader, source: str) -> dict[str, StoredSession]:
    return {row.key.id: row for row in reader.index.of_source(source)}


def _apply(store: Store, sessions: Iterable[WholeSession], gone: Iterable[int]) -> None:
    with store.index.transaction():
        for sid in gone:
            store.index.delete(sid)
        for session in sessions:
            put_whole(store.index, session)


def _flag(store: Store, sessions: Iterable[LiveSession]) -> None:
    with store.index.transaction():
        for session in sessions:
            row = store.index.find(session.key)
            if row is not None:
                store.index.put_session(session.key, attrs.evolve(row.state, persisted=session.persisted))
