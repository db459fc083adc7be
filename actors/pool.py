"""The pool: traces and reads run in parallel up to a bound, never behind a search (SPEC 16.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import trio

from ..protocol.errors import Busy
from ..protocol.signal import Signal
from .scoping import run_exact

T = TypeVar("T")
RETRY_AFTER_MS = 50
WAITING_PER_SLOT = 64  # a read takes well under a millisecond warm: this line is a few ms long


@attrs.define(eq=False)
class Pool:
    """Bounded parallelism without an owner task: each job runs in its asker's own task and scope."""

    size: int
    _limiter: trio.CapacityLimiter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._limiter = trio.CapacityLimiter(self.size)

    async def run(self, work: Callable[[], Awaitable[T]], signal: Signal) -> T:
        """Run ``work`` when a slot is free.

        Raises: the signal's exact reason (SPEC 4.8); Busy when too many wait already.
        Cancellation: as ``run_exact``; while waiting for a slot it ends at once.
        """
        if self._limiter.statistics().tasks_waiting >= self.size * WAITING_PER_SLOT:
            raise Busy(RETRY_AFTER_MS)

        async def limited() -> T:
            async with self._limiter:
                return await work()

        return await run_exact(signal, limited)
