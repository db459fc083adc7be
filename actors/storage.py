"""The storage actor: one writer, a few read-only snapshot readers, each in a thread of its own turn.

Writes go through one lane in arrival order and are never thrown away once begun. Appends that wait for
the lane together are committed together (group commit): whoever gets the lane first commits for all.
Queries take a free reader; a cancelled one interrupts its statement and waits for the thread.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

import attrs
import outcome
import trio

from ..protocol.errors import Code, QueryError
from ..protocol.header import SessionHeader
from ..protocol.outward import SessionKey
from ..protocol.signal import Signal
from ..storage import sqlite
from ..storage.index.door import IndexReader
from ..storage.journal.tombstones import Tombstones
from ..storage.run_query import run_query
from ..storage.sources.freshness import Freshness as Marks
from ..storage.store import Store, StoreReader

T = TypeVar("T")
logger = logging.getLogger(__name__)

GROUP_MAX: Final = 128
"""Appends committed together at most: more are no cheaper each than 16, and hold the lane longer."""
IDLE_S: Final = 0.05
"""Merging waits for this much silence of the lane; a merge step then costs a few ms."""
MERGE_PAGES: Final = 64


@attrs.define(eq=False)
class _Append(Generic[T]):
    """One append waiting for the lane. ``result`` is set by whoever commits it."""

    work: Callable[[Store], T]
    result: outcome.Outcome[T] | None = None


@attrs.define(eq=False)
class StorageActor:
    """Owner of the store. Made by ``open_storage``, which also closes it."""

    _store: Store
    _search_readers: _Readers
    _read_readers: _Readers
    _point_reader: StoreReader
    _lane: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _pending: list[_Append[object]] = attrs.field(factory=list, init=False)
    _hops: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1), init=False)
    _written: trio.Event = attrs.field(factory=trio.Event, init=False)
    writes: int = attrs.field(default=0, init=False)
    appends: int = attrs.field(default=0, init=False)
    groups: int = attrs.field(default=0, init=False)

    async def write(self, work: Callable[[Store], T], signal: Signal | None = None) -> T:
        """Run ``work(store)`` in the writer thread, alone. It commits or rolls back before it returns.

        Raises: what ``work`` raised; the signal's exact reason when it aborted before the lane was free.
        Cancellation: while waiting, at once; a write that has begun is awaited (SPEC 6.14.3).
        """
        async with self._lane:
            if signal is not None:
                signal.raise_if_aborted()
            with trio.CancelScope(shield=True):  # bounded by the work: a commit may not be half known
                result = await trio.to_thread.run_sync(outcome.capture, work, self._store, limiter=self._hops)
            self.writes += 1
            self._written.set()
        return result.unwrap()

    async def append(self, work: Callable[[Store], T]) -> T:
        """Run one append, together with all that wait at that moment. Each has its own outcome.

        ``work`` opens no transaction of its own on the journal: see ``Store.grouped``.
        Raises: QueryError PERSISTENCE_FAILED when a database cannot be written; repeating is safe.
        Cancellation: awaited, then it goes on; the append is durable or failed by then.
        """
        job: _Append[T] = _Append(work)
        self._pending.append(job)  # type: ignore[arg-type]  # results are opaque in the queue
        with trio.CancelScope(shield=True):
            async with self._lane:
                if job.result is None:
                    await self._commit_pending()
        await trio.lowlevel.checkpoint_if_cancelled()
        assert job.result is not None
        try:
            return job.result.unwrap()
        except sqlite.Error as exc:
            logger.warning("an append could not be stored: %s", exc)
            raise QueryError(Code.PERSISTENCE_FAILED, "the store cannot be written") from exc

    async def _commit_pending(self) -> None:
        group, self._pending = self._pending[:GROUP_MAX], self._pending[GROUP_MAX:]
        works = [job.work for job in group]
        results = await trio.to_thread.run_sync(_run_group, self._store, works, limiter=self._hops)
        for job, result in zip(group, results, strict=True):
            job.result = result
        self.writes += len(group)
        self.appends += len(group)
        self.groups += 1
        self._written.set()

    def mark_behind(self, key: SessionKey) -> None:
        """The journal may hold something of this session that the index does not."""
        self._store.mark_behind(key)

    def is_forgotten(self, header: SessionHeader) -> bool:
        """Whether a session of this identity was forgotten. Costs a set look-up unless its id was."""
        if not self._store.journal.tombstones.knows(header.id):
            return False
        return Tombstones(self._point_reader.journal.connection).forgotten(header, None)

    def is_behind(self) -> bool:
        """Whether the index misses something that the journal has."""
        return self._store.is_behind()

    @property
    def appends_queued(self) -> int:
        """Appends that wait for the lane."""
        return len(self._pending)

    def marks(self) -> Marks:
        """What may have changed in the sources; the one part of the store that threads share."""
        return self._store.sources.freshness

    async def search(self, query: Callable[[IndexReader], T]) -> T:
        """Run one search statement on a search reader, inside one snapshot."""
        return await self._search_readers.run(query)

    async def read(self, query: Callable[[StoreReader], T]) -> T:
        """Run one bounded read in a thread, inside one snapshot of the index."""
        return await self._read_readers.run_store(query)

    def point(self, query: Callable[[StoreReader], T]) -> T:
        """Run a point read by key in the loop: 10-30 us warm, where a thread hop costs 200-400 us."""
        with self._point_reader.index.snapshot():
            return query(self._point_reader)

    async def run_idle(self) -> None:
        """Merge index segments when nobody writes; ends only by cancellation."""
        while True:
            await self._written.wait()
            self._written = trio.Event()
            more = True
            while more:
                with trio.move_on_after(IDLE_S):
                    await self._written.wait()
                    self._written = trio.Event()
                    continue
                try:
                    more = await self.write(_merge)
                except sqlite.Error as exc:  # a full disk, mostly: merging can wait, searches cannot
                    logger.warning("merging the index failed, the next write tries again: %s", exc)
                    more = False
                self._written = trio.Event()


def _merge(store: Store) -> bool:
    return store.index.merge_step(MERGE_PAGES)


def _run_group(store: Store, works: list[Callable[[Store], object]]) -> list[outcome.Outcome[object]]:
    """In the writer thread: all appends of a group in one transaction of each database."""
    try:
        with store.grouped():
            results: list[outcome.Outcome[object]] = [outcome.capture(work, store) for work in works]
    except Exception as exc:  # the commit failed (disk full): nothing of the group is stored
        return [outcome.Error(exc) for _ in works]
    return results


@attrs.define(eq=False)
class _Readers:
    """A pool of readers; each has one owner at a time."""

    readers: list[StoreReader]
    _free: list[StoreReader] = attrs.field(init=False)
    _slots: trio.CapacityLimiter = attrs.field(init=False)
    _threads: trio.CapacityLimiter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._free = list(self.readers)
        self._slots = trio.CapacityLimiter(len(self.readers))
        self._threads = trio.CapacityLimiter(len(self.readers))

    async def run(self, query: Callable[[IndexReader], T]) -> T:
        return await self.run_store(lambda reader: query(reader.index))

    async def run_store(self, query: Callable[[StoreReader], T]) -> T:
        async with self._slots:
            reader = self._free.pop()
            try:
                return await run_query(
                    reader.connection, lambda _: _in_snapshot(reader, query), limiter=self._threads
                )
            finally:
                self._free.append(reader)


def _in_snapshot(reader: StoreReader, query: Callable[[StoreReader], T]) -> T:
    with reader.index.snapshot():
        return query(reader)


@asynccontextmanager
async def open_storage(
    open_store: Callable[[], Store], *, search_readers: int, read_readers: int = 2
) -> AsyncIterator[StorageActor]:
    """Open the store in a thread, run its idle work, close it when the block ends (shielded).

    Raises: QueryError INDEX_FAILED, PERSISTENCE_FAILED as ``open_store`` does; nothing stays open then.
    """
    store = await trio.to_thread.run_sync(open_store)
    readers: list[StoreReader] = []
    try:
        actor = await trio.to_thread.run_sync(_with_readers, store, readers, search_readers, read_readers)
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run_idle)
            try:
                yield actor
            except Exception as exc:  # handed on outside the nursery, so that it stays what it is
                failure = exc
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
    finally:
        with trio.CancelScope(shield=True):  # bounded: closing files
            await trio.to_thread.run_sync(_close, store, readers)


def _with_readers(store: Store, opened: list[StoreReader], search: int, read: int) -> StorageActor:
    try:
        for _ in range(search + read + 1):
            opened.append(store.open_reader())  # noqa: PERF401 - on a failure those before it are closed
    except Exception as exc:
        raise QueryError(Code.INDEX_FAILED, "no reader could be opened") from exc
    return StorageActor(store, _Readers(opened[:search]), _Readers(opened[search:-1]), opened[-1])


def _close(store: Store, readers: list[StoreReader]) -> None:
    """Readers first: the last connection to close empties the write-ahead log into the file."""
    for reader in readers:
        reader.close()
    store.close()


__all__ = ["StorageActor", "open_storage"]
