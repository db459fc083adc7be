"""The storage actor: the owner of both databases, their writers and their readers.

Two threads write. The journal's commits appends, all that wait at that moment in one transaction with one
``fsync``; it also runs what changes both files. The index's takes in what was appended, merges, and reads
logs: none of this keeps an acknowledgement waiting, and a commit that waits for the disk keeps no search
waiting. An append that was acknowledged before a search began is found by it (SPEC 6.10).

Queries take a free reader; a cancelled one interrupts its statement and waits for the thread.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import attrs
import outcome
import trio

from ..protocol.errors import Code, QueryError
from ..protocol.header import SessionHeader
from ..protocol.json_value import JSON
from ..protocol.outward import SessionKey
from ..protocol.signal import Signal
from ..storage import sqlite
from ..storage.index.door import IndexReader
from ..storage.journal import Batch, JournalReader, JournalRefusal
from ..storage.news import News, put_news
from ..storage.sources.freshness import Freshness as Marks
from ..storage.store import SMALL_CACHE_KIB, Store
from ..storage.store_reader import StoreReader
from .index_side import IndexSide
from .reader_pool import ReaderPool
from .worker import GroupWorker

T = TypeVar("T")
logger = logging.getLogger(__name__)


@attrs.define(eq=False)
class StorageActor:
    """Owner of the store. Made by ``open_storage``, which also closes it."""

    _store: Store
    _search_readers: ReaderPool
    _read_readers: ReaderPool
    _point_reader: StoreReader
    _journal: GroupWorker[Batch, int] = attrs.field(init=False)
    _index: IndexSide = attrs.field(init=False)
    writes: int = attrs.field(default=0, init=False)
    """Appends, and writes of other kinds."""
    appends: int = attrs.field(default=0, init=False)
    groups: int = attrs.field(default=0, init=False)
    """Transactions of the journal that appends were committed in."""

    def __attrs_post_init__(self) -> None:
        self._journal = GroupWorker("session-query journal", self._commit)
        self._index = IndexSide(self._store, self._journal, (self._search_readers, self._read_readers))

    # -- writing ---------------------------------------------------------------------------------

    async def write(self, work: Callable[[Store], T], signal: Signal | None = None) -> T:
        """Run ``work(store)`` with both files to itself. It commits or rolls back before it returns.

        Raises: what ``work`` raised; the signal's exact reason when it aborted before its turn came.
        Cancellation: while waiting, at once; a write that has begun is awaited (SPEC 6.14.3).
        """
        self.writes += 1
        before = None if signal is None else signal.raise_if_aborted
        return await self._index.work(work, thread=self._journal, before=before)

    async def write_index(self, work: Callable[[Store], T]) -> T:
        """As ``write``, for work that leaves the journal alone: appends are committed meanwhile."""
        self.writes += 1
        return await self._index.work(work)

    async def append(self, batch: Batch | None, news: News) -> None:
        """Commit one batch to the journal, together with all that wait at that moment.

        ``news``: what it changes in the index, which takes it in before the next search looks. ``batch``
        None: the session is kept nowhere else, and is in the index when this returns.
        Raises: JournalRefusal; QueryError PERSISTENCE_FAILED when it cannot be written (a full disk);
            repeating is safe. Cancellation: none; it is stored or failed when this ends.
        """
        try:
            if batch is None:
                with trio.CancelScope(shield=True):  # bounded: one transaction, behind others
                    await self._index.work(lambda store: put_news(store.index, [news]))
            else:
                if not self._index.has_room:
                    with trio.CancelScope(shield=True):  # bounded: what waits is taken in
                        await self._index.room()
                await self._journal.do(batch)
                self._index.tell(news)
        except sqlite.Error as exc:
            logger.warning("an append could not be stored: %s", exc)
            raise QueryError(Code.PERSISTENCE_FAILED, "the store cannot be written") from exc
        self.writes += 1
        self.appends += 1

    def _commit(self, batches: Sequence[Batch]) -> list[outcome.Outcome[int]]:
        """In the journal's thread: one transaction for all, one outcome for each."""
        self.groups += 1
        return [
            outcome.Error(result) if isinstance(result, JournalRefusal) else outcome.Value(result)
            for result in self._store.journal.commit(batches)
        ]

    def mark_behind(self, key: SessionKey) -> None:
        """The journal may hold something of this session that the index does not."""
        self._store.mark_behind(key)
        self._index.stir()

    def suspect(self, error: BaseException) -> None:
        """Hear of an error: an index that turns out to be damaged is built anew at the next start."""
        self._store.suspect(error)

    def is_forgotten(self, header: SessionHeader) -> bool:
        """Whether a session of this identity was forgotten. Costs a set look-up unless its id was."""
        return self._store.journal.tombstones.forgotten(header, None)

    def is_behind(self) -> bool:
        """Whether the index misses something that the journal has, beside what waits to be taken in."""
        return self._store.is_behind()

    def statistics(self) -> dict[str, JSON]:
        """Counters for the operator: what was written, and what it cost the index."""
        return {
            "writes": self.writes,
            "appends": self.appends,
            "append_groups": self.groups,
            "appends_queued": self._journal.queued,
            "appended_unindexed": self._index.waiting,
            "index_turns": self._index.turns.told(),
            "index_of_an_event": self._index.shares.told(),
            "merge_steps": self._index.merges.told(),
        }

    async def take_in(self) -> None:
        """Let the index take in everything whose append has returned. Nothing to do costs nothing."""
        await self._index.take_in()

    def marks(self) -> Marks:
        """What may have changed in the sources; the one part of the store that threads share."""
        return self._store.sources.freshness

    # -- reading ---------------------------------------------------------------------------------

    async def search(self, query: Callable[[IndexReader], T]) -> T:
        """Run one search on a search reader, inside one snapshot that has all appends until now."""
        await self._index.take_in()
        return await self._search_readers.run_store(lambda reader: query(reader.index))

    async def read(self, query: Callable[[StoreReader], T]) -> T:
        """Run one bounded read in a thread, inside one snapshot that has all appends until now."""
        await self._index.take_in()
        return await self._read_readers.run_store(query)

    async def read_journal(self, query: Callable[[JournalReader], T]) -> T:
        """Run one bounded read of the journal alone; the index may be any way behind it."""
        return await self._read_readers.run_store(lambda reader: query(reader.journal))

    @property
    def index_version(self) -> int:
        """Moves with every write to the index, at the latest when whoever wrote hears of it."""
        return self._index.transactions

    def point(self, query: Callable[[StoreReader], T]) -> T:
        """Run a point read by key in the loop: 10-30 us warm, where a thread hop costs 200-400 us.

        Its snapshot may lack the latest appends to live sessions: their length, title and documents.
        """
        with self._point_reader.index.snapshot():
            return query(self._point_reader)

    def point_journal(self, query: Callable[[JournalReader], T]) -> T:
        """The same in the journal, whose events never change: one statement needs no snapshot."""
        return query(self._point_reader.journal)

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The upkeep of the index; ends only by cancellation."""
        await self._index.run()

    async def close(self) -> None:
        """Take in what waits and end both threads."""
        try:
            await self._index.close()
        finally:
            await self._journal.close()


@asynccontextmanager
async def open_storage(
    open_store: Callable[[], Store], *, search_readers: int, read_readers: int = 2
) -> AsyncIterator[StorageActor]:
    """Open the store in a thread, run its upkeep, close it when the block ends (shielded).

    Raises: QueryError INDEX_FAILED, PERSISTENCE_FAILED as ``open_store`` does; nothing stays open then.
    """
    store = await trio.to_thread.run_sync(open_store)
    readers: list[StoreReader] = []
    actor: StorageActor | None = None
    try:
        await trio.to_thread.run_sync(_open_readers, store, readers, search_readers, read_readers + 1)
        actor = StorageActor(
            store,
            ReaderPool(readers[:search_readers]),
            ReaderPool(readers[search_readers:-1]),
            readers[-1],
        )
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            try:
                yield actor
            except Exception as exc:  # handed on outside the nursery, so that it stays what it is
                failure = exc
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
    finally:
        with trio.CancelScope(shield=True):  # bounded: what waits is indexed, files are closed
            try:
                if actor is not None:
                    await actor.close()
            finally:
                await trio.to_thread.run_sync(_close, store, readers)


def _open_readers(store: Store, opened: list[StoreReader], searching: int, others: int) -> None:
    """Readers for searches, then others with a small page cache each: memory is bounded by their sum."""
    try:
        for number in range(searching + others):
            kib = None if number < searching else SMALL_CACHE_KIB
            reader = store.open_reader(cache_kib=kib)
            opened.append(reader)
    except Exception as exc:
        raise QueryError(Code.INDEX_FAILED, "no reader could be opened") from exc


def _close(store: Store, readers: list[StoreReader]) -> None:
    """Readers first: the last connection to close empties the write-ahead log into the file."""
    for reader in readers:
        reader.close()
    store.close()


__all__ = ["StorageActor", "open_storage"]
