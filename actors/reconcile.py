"""Reconcile: bring the index in line with mounted providers before a search (SPEC 6.10).

Stability is judged session by session (SPEC 14 L6): what two listings around the inspections agree on is
committed, only what moved is looked at again. One bad session is quarantined with its code, one failing
provider keeps what was known of it (SPEC 16.6.4).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import attrs
import trio

from ..protocol.errors import Code, QueryError
from ..protocol.header import compatible, same_snapshot
from ..protocol.outward import SessionKey
from ..protocol.signal import Signal
from ..storage.index.door import SessionState, StoredSession
from ..storage.store import Store, StoreReader
from ..storage.whole_session import WholeSession, prepare, put_whole, quarantined
from .live import LiveStore
from .mounted import Binding, Mounted, inspect_with
from .providers import Inspected, SessionSnapshot
from .storage import StorageActor

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 2
PROVIDER_RANK: Final = 1000
"""Mounted providers rank behind every reader, in mount order (SPEC 16.6.3)."""


@attrs.define(eq=False)
class Reconciler:
    """Runs one reconcile at a time; later searches of the same moment wait for it and find nothing to do."""

    storage: StorageActor
    live: LiveStore
    mounted: Mounted
    workers: int
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _trusted: dict[str, int] = attrs.field(factory=dict, init=False)
    _first: set[str] = attrs.field(factory=set, init=False)
    _shown: frozenset[str] = attrs.field(default=frozenset(), init=False)

    async def run(self, signal: Signal) -> None:
        """Reconcile every bound provider.

        Raises: QueryError PERSISTENCE_FAILED in strict mode only; INDEX_FAILED when the transaction fails
            (everything rolled back, the next search starts from scratch).
        Cancellation: nothing more is started, nothing is committed half.
        """
        if not self.mounted.names and not self._shown:
            return
        async with self._lock:
            await self._hide_unmounted()
            for rank, binding in enumerate(self.mounted.bindings):
                signal.raise_if_aborted()
                try:
                    await self._provider(binding, PROVIDER_RANK + rank, signal)
                except QueryError:
                    if self.mounted.strict:
                        raise
                    logger.warning("provider %s could not be reconciled", binding.name)

    async def _hide_unmounted(self) -> None:
        """Rows of unmounted providers are kept but invisible (SPEC 6.10.3)."""
        names = self.mounted.names
        gone, come = self._shown - names, names - self._shown
        if gone or come:
            await self.storage.write(lambda store: _show(store, gone, come))
            self._shown = names

    async def _provider(self, binding: Binding, rank: int, signal: Signal) -> None:
        pending: frozenset[str] | None = None  # None: every listed session
        for attempt in range(ATTEMPTS):
            before = await self.mounted.snapshots(binding, signal)
            rows = await self.storage.read(lambda reader: _rows_of(reader, binding.name))
            changed = [
                snapshot
                for snapshot in before.values()
                if (pending is None or snapshot.header.id in pending)
                and self._must_inspect(binding, snapshot, rows.get(snapshot.header.id))
            ]
            inspected = await self._inspect_all(binding, changed, signal)
            after = await self.mounted.snapshots(binding, signal) if changed else before
            signal.raise_if_aborted()
            if not self.mounted.is_bound(binding):
                return  # what was seen belongs to a binding that is no more
            moved = _moved(before, after)
            stable = [item for item in inspected.items() if item[0] not in moved]
            sessions = [self._session(binding, rank, after[id_], found) for id_, found in stable]
            gone = [rows[id_].sid for id_ in rows.keys() - after.keys() - moved]
            if sessions or gone:
                await self.storage.write(partial(_apply, sessions=sessions, gone=gone), signal)
            if not moved:
                self._trusted[binding.name] = binding.epoch
                self._first.add(binding.name)
                return
            pending = frozenset(moved)
            if attempt + 1 == ATTEMPTS:
                raise QueryError(Code.PERSISTENCE_FAILED, "a provider's sessions keep moving")

    def _must_inspect(self, binding: Binding, snapshot: SessionSnapshot, row: StoredSession | None) -> bool:
        """Whether a listed session has to be looked into (SPEC 6.10.2, 6.10.4, 6.10.5)."""
        if row is None:
            return True
        trusted = self._trusted.get(binding.name, binding.epoch) == binding.epoch
        return not trusted or row.state.revision != snapshot.revision

    async def _inspect_all(
        self, binding: Binding, snapshots: list[SessionSnapshot], signal: Signal
    ) -> dict[str, Inspected | QueryError]:
        """Inspect with at most ``workers`` at once, in listing order. A failure is that session's own."""
        results: dict[str, Inspected | QueryError] = {}
        queue = iter(snapshots)

        async def worker() -> None:
            for snapshot in queue:
                if signal.aborted:
                    return
                header = snapshot.header
                try:
                    found = await inspect_with(binding.provider, header.id, signal)
                    if not compatible(found.header, header):
                        raise QueryError(Code.SOURCE_CONFLICT, "listed and inspected headers differ")
                    results[header.id] = found
                except QueryError as exc:
                    results[header.id] = exc

        async with trio.open_nursery() as nursery:
            for _ in range(min(self.workers, len(snapshots))):
                nursery.start_soon(worker)
        return results

    def _session(
        self, binding: Binding, rank: int, snapshot: SessionSnapshot, found: Inspected | QueryError
    ) -> WholeSession:
        key = SessionKey(binding.name, "", snapshot.header.id)
        state = SessionState(header=snapshot.header, rank=rank, revision=snapshot.revision)
        if isinstance(found, QueryError):
            return quarantined(key, state, found.code)
        inherited = snapshot.header.seed_length or 0
        return prepare(key, attrs.evolve(state, inherited=inherited), found.events)


def _moved(before: Mapping[str, SessionSnapshot], after: Mapping[str, SessionSnapshot]) -> set[str]:
    """Ids that two listings do not agree on: come, gone, another revision or header (SPEC 6.10.3)."""
    moved = before.keys() ^ after.keys()
    for id_ in before.keys() & after.keys():
        first, second = before[id_], after[id_]
        if first.revision != second.revision or not same_snapshot(first.header, second.header):
            moved.add(id_)
    return moved


def _rows_of(reader: StoreReader, source: str) -> dict[str, StoredSession]:
    return {row.key.id: row for row in reader.index.of_source(source)}


def _show(store: Store, gone: Iterable[str], come: Iterable[str]) -> None:
    with store.index.transaction():
        for source in gone:
            store.index.show_source(source, False)
        for source in come:
            store.index.show_source(source, True)


def _apply(store: Store, sessions: list[WholeSession], gone: list[int]) -> None:
    with store.index.transaction():
        for sid in gone:
            store.index.delete(sid)
        for session in sessions:
            put_whole(store.index, session)
