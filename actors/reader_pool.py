"""Read-only connections, each with one owner at a time; a cancelled query interrupts its statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs
import trio

from ..storage import sqlite
from ..storage.run_query import run_query
from ..storage.store_reader import StoreReader

T = TypeVar("T")


@attrs.define(eq=False)
class ReaderPool:
    """``len(readers)`` queries at once, each in a thread and inside one snapshot of the index."""

    readers: list[StoreReader]
    _free: list[StoreReader] = attrs.field(init=False)
    _slots: trio.CapacityLimiter = attrs.field(init=False)
    _threads: trio.CapacityLimiter = attrs.field(init=False)
    _running: set[trio.Event] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self._free = list(self.readers)
        self._slots = trio.CapacityLimiter(len(self.readers))
        self._threads = trio.CapacityLimiter(len(self.readers))

    async def run_store(self, query: Callable[[StoreReader], T]) -> T:
        """``query`` on a free reader. Raises: what it raised. Cancellation: see ``run_query``."""
        async with self._slots:
            reader, ended = self._free.pop(), trio.Event()
            self._running.add(ended)
            try:
                return await run_query(
                    reader.connection, lambda _: _in_snapshot(reader, query), limiter=self._threads
                )
            except sqlite.Error as exc:
                reader.suspect(exc)
                raise
            finally:
                self._free.append(reader)
                self._running.discard(ended)
                ended.set()

    async def passed(self) -> None:
        """Wait until every query that runs now has ended, whatever began meanwhile."""
        for ended in tuple(self._running):
            await ended.wait()


def _in_snapshot(reader: StoreReader, query: Callable[[StoreReader], T]) -> T:
    reader.used()
    with reader.index.snapshot():
        return query(reader)
