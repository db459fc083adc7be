"""The pool: traces and reads run side by side, never behind a search (SPEC 16.5).

A read that waits for a host's provider holds nothing that another read needs: threads are bounded, and so
is the number of operations under way, but there are no slots that waiting ones could fill.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import attrs
import trio

from ..protocol.errors import Busy, Code, QueryError
from ..protocol.signal import Signal
from ..storage import sqlite
from .scoping import run_exact

T = TypeVar("T")
RETRY_AFTER_MS: Final = 50
UNDER_WAY_PER_THREAD: Final = 64
"""A read takes well under a millisecond warm: so many for each thread are a line of a few milliseconds."""
HEAVY_EVENTS: Final = 1_000
"""Logs longer than this are folded and copied in a thread: some 3 us an event (measured, CPython 3.11)."""


@attrs.define(eq=False)
class Pool:
    """Bounded parallelism without an owner task: each job runs in its asker's own task and scope.

    ``threads``: how many threads work on whole logs at once.
    """

    threads: int
    under_way: int = attrs.field(default=0, init=False)
    _limiter: trio.CapacityLimiter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._limiter = trio.CapacityLimiter(self.threads)

    @property
    def is_full(self) -> bool:
        """Whether so many operations are under way that no other may begin."""
        return self.under_way >= self.threads * UNDER_WAY_PER_THREAD

    async def run(self, work: Callable[[], Awaitable[T]], signal: Signal) -> T:
        """Run ``work`` now.

        Raises: the signal's exact reason (SPEC 4.8); Busy when too many are under way already; QueryError
            PERSISTENCE_FAILED when a database cannot be read.
        Cancellation: as ``run_exact``.
        """
        signal.raise_if_aborted()
        if self.is_full:
            raise Busy(RETRY_AFTER_MS)
        self.under_way += 1
        try:
            return await run_exact(signal, work)
        except sqlite.Error as exc:
            raise QueryError(Code.PERSISTENCE_FAILED, "the store cannot be read") from exc
        finally:
            self.under_way -= 1

    async def over_log(self, length: int, work: Callable[[], T]) -> T:
        """Run pure work over a log of ``length`` events, in a thread if that takes long.

        Cancellation: the thread is awaited; it can do nothing but end.
        """
        if length <= HEAVY_EVENTS:
            return work()
        return await trio.to_thread.run_sync(work, limiter=self._limiter)
