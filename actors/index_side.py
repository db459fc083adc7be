"""The index's writing side: one lane, one thread, what was appended and is not in it yet, its upkeep.

Appends are taken in some at a time: after so many events, after so much time, and always before a search
looks. What the index cannot take (a full disk) is in the journal all the same; such sessions are *behind*,
nothing more of them is written bit by bit, and they catch up from the journal, tried again and again.

Merging is bounded work between writes: a step whenever nobody writes for a moment, and one in every so
many transactions when somebody always does, so that the number of segments stays small either way. The
write-ahead log can only begin anew when no reader looks into it. With searches that always overlap that
moment never comes by itself, so it is made: the lane is held until the readers of the old state are done.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import attrs
import outcome
import trio

from ..storage import sqlite
from ..storage.news import News
from ..storage.store import Store
from .durations import Durations
from .reader_pool import ReaderPool
from .worker import Worker

T = TypeVar("T")
logger = logging.getLogger(__name__)

NEWS_EVENTS: Final = 16
"""Appended events after which the index takes them in: 32 are hardly cheaper each, and take 2 ms together."""
NEWS_MAX: Final = 2048
"""Events that may wait for the index; above it appends wait with them, so that memory stays flat."""
INDEX_WITHIN_S: Final = 0.1
"""How long what was appended may wait to be indexed when nobody searches."""
MERGE_PAGES: Final = 64
MERGE_EVERY: Final = 16
"""Transactions between two merge steps when there is never silence."""
COPY_LOG_EVERY: Final = 4
"""Of merge steps without silence, one in so many copies the write-ahead log back: most of what they change is
changed again soon."""
SILENCE_S: Final = 0.05
LOG_MAX_BYTES: Final = 32 * 1024 * 1024
LOG_LOOK_EVERY: Final = 16
QUIET_WAIT_S: Final = 0.5
"""How long the lane is held for readers of an old state; a longer search is waited for another time."""
MEND_EVERY_S: Final = 2.0


@attrs.define(eq=False)
class IndexSide:
    """Everything that changes the index goes through here. ``run`` is the owner task of its upkeep.

    ``pools``: the readers that may hold a state of the index for longer than a moment.
    """

    store: Store
    journal_thread: Worker
    pools: tuple[ReaderPool, ...]
    _thread: Worker = attrs.field(factory=lambda: Worker("session-query index"), init=False)
    _lane: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _news: list[News] = attrs.field(factory=list, init=False)
    _taking: bool = attrs.field(default=False, init=False)
    _stirred: trio.Event = attrs.field(factory=trio.Event, init=False)
    _plenty: trio.Event = attrs.field(factory=trio.Event, init=False)
    _unmerged: int = attrs.field(default=0, init=False)
    _pressed: int = attrs.field(default=0, init=False)
    """Merge steps since the latest silence."""
    _look_at: int = attrs.field(default=0, init=False)
    waiting: int = attrs.field(default=0, init=False)
    """Appended events that are not in the index yet."""
    transactions: int = attrs.field(default=0, init=False)
    turns: Durations = attrs.field(factory=Durations, init=False)
    """CPU time of taking in what was appended."""
    shares: Durations = attrs.field(factory=Durations, init=False)
    """The same, of one event among those that were taken in together."""
    merges: Durations = attrs.field(factory=Durations, init=False)

    async def work(
        self,
        work: Callable[[Store], T],
        *,
        thread: Worker | None = None,
        before: Callable[[], None] | None = None,
    ) -> T:
        """Hold the lane, take in what was appended, then do ``work`` in the index's thread or another.

        ``before`` is called when the lane is free; what it raises ends it. Raises: what ``work`` raised.
        Cancellation: while waiting, at once; what has begun is awaited.
        """
        async with self._lane:
            if before is not None:
                before()
            return await self._turn(thread or self._thread, work)

    async def _turn(self, thread: Worker, work: Callable[[Store], T], *, most: int | None = None) -> T:
        """``most``: events to take in; one append is not divided."""
        news = self._next(most)
        self._taking = True
        try:
            cpu_s, result = await thread.call(lambda: _news_then(self.store, news, work))
        finally:
            self._taking = False
        if news:
            self.turns.note(cpu_s)
            self.shares.note(cpu_s / max(1, sum(one.events for one in news)))
        self.transactions += 1
        self._unmerged += 1
        self._stirred.set()
        return result.unwrap()

    def _next(self, most: int | None) -> list[News]:
        """Take what is to be indexed now out of what waits."""
        count = events = 0
        for one in self._news:
            if most is not None and events >= most:
                break
            count += 1
            events += one.events
        news, self._news = self._news[:count], self._news[count:]
        self.waiting -= events
        self._plenty = trio.Event()
        if self.waiting >= NEWS_EVENTS:
            self._plenty.set()
        return news

    async def close(self) -> None:
        """Take in what waits and end the thread. Nothing may be asked afterwards."""
        try:
            await self.take_in()
        finally:
            await self._thread.close()
            for one in self._news:  # a store that closes in good order says that its index is complete
                self.store.mark_behind(one.key)

    # -- what was appended -----------------------------------------------------------------------

    def tell(self, news: News) -> None:
        """Say what a committed append changes; every ``take_in`` that begins from now on sees to it."""
        if not self._news:
            self._stirred.set()
        self._news.append(news)
        self.waiting += news.events
        if self.waiting >= NEWS_EVENTS:
            self._plenty.set()

    def stir(self) -> None:
        """Let the upkeep look whether there is something to do."""
        self._stirred.set()

    async def take_in(self, most: int | None = None) -> None:
        """Index everything told until now, or so many events. Nothing to do costs nothing.

        Cancellation: as ``work``.
        """
        if not self._news and not self._taking:
            return
        async with self._lane:
            if self._news:
                await self._turn(self._thread, _nothing, most=most)

    @property
    def has_room(self) -> bool:
        """Whether an append need not wait for the index."""
        return self.waiting <= NEWS_MAX

    async def room(self) -> None:
        """Wait while too much waits for the index."""
        while not self.has_room:
            await self.take_in()

    # -- upkeep ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take in, merge, mend, and keep the write-ahead log short; ends only by cancellation."""
        while True:
            with trio.move_on_after(MEND_EVERY_S if self.store.is_behind() else math.inf):
                await self._stirred.wait()
            self._stirred = trio.Event()
            if self._news:
                with trio.move_on_after(INDEX_WITHIN_S):
                    await self._plenty.wait()
                await self.take_in(NEWS_EVENTS)  # what gathered behind a long step goes in bit by bit
            try:
                if self.store.is_behind():
                    await self._mend()
                await self._shorten_log()
                await self._merge()
            except sqlite.Error as exc:  # a full disk, mostly: upkeep can wait, searches cannot
                logger.warning("the upkeep of the index failed, the next write tries again: %s", exc)

    async def _merge(self) -> None:
        """In silence until nothing is left to merge; without silence a step now and then."""
        more = True
        while more:
            if self._unmerged < MERGE_EVERY and await self._is_stirred():
                return
            self._pressed = self._pressed + 1 if self._unmerged >= MERGE_EVERY else 0
            self._unmerged = 0
            step = partial(_merge, self.store, self._pressed)
            async with self._lane:
                cpu_s, more = await self._thread.call(step)
            self.merges.note(cpu_s)

    async def _is_stirred(self) -> bool:
        with trio.move_on_after(SILENCE_S):
            await self._stirred.wait()
        return self._stirred.is_set()

    async def _mend(self) -> None:
        """Let sessions that are behind catch up. With both files, as the journal is what is read."""
        count = await self.work(lambda store: store.catch_up(), thread=self.journal_thread)
        logger.info("the index caught up with %d events of the journal", count)

    async def _shorten_log(self) -> None:
        """Begin the index's write-ahead log anew when it has grown long because readers always overlap."""
        if self.transactions < self._look_at:
            return
        self._look_at = self.transactions + LOG_LOOK_EVERY
        if self._log_bytes() <= LOG_MAX_BYTES:
            return
        async with self._lane:  # nothing is written meanwhile: every reader that begins now sees the same
            with trio.move_on_after(QUIET_WAIT_S):
                await self._passed()
                await self._thread.call(lambda: sqlite.checkpoint(self.store.connection))
                await self._passed()  # later ones read the file itself and hold nothing
                await self._thread.call(lambda: sqlite.empty_log(self.store.connection, wait=False))

    async def _passed(self) -> None:
        for pool in self.pools:
            await pool.passed()

    def _log_bytes(self) -> int:
        try:
            return Path(f"{self.store.index_path}-wal").stat().st_size
        except OSError:  # in memory, or another journal mode
            return 0


def _nothing(_: Store) -> None:
    """No further work: what was appended is taken in before it."""


def _news_then(
    store: Store, news: list[News], work: Callable[[Store], T]
) -> tuple[float, outcome.Outcome[T]]:
    """In a writing thread. Returns: CPU seconds for the news, and what ``work`` came to."""
    began = time.thread_time()
    if news:
        store.take_news(news)
    took = time.thread_time() - began
    return took, outcome.capture(work, store)


def _merge(store: Store, pressed: int) -> tuple[float, bool]:
    """In the index's thread. ``pressed``: how many steps there were without silence.

    Returns: CPU seconds, and whether more is left.
    """
    began = time.thread_time()
    copy_log = pressed % COPY_LOG_EVERY == 0
    more = store.index.merge_step(MERGE_PAGES, copy_log=copy_log, pressed=pressed > 0)
    return time.thread_time() - began, more
