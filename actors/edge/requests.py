"""A request on its way through a connection: its signal, its deadline, its place in line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio

from ...protocol.json_value import JSON
from ...protocol.signal import Signal
from ...protocol.wire.messages import AbortKind, Request
from ..wire_service import Progress
from .failures import AbortReason
from .lanes import Ticket


@attrs.define(eq=False)
class RunningRequest:
    """One request from dispatch to answer. Owner: its connection.

    Aborting tells the signal, once and with the first reason; the handler is then awaited to its end.
    """

    message: Request
    ticket: Ticket | None = None
    signal: Signal = attrs.field(factory=Signal, init=False)
    handled: bool = attrs.field(default=False, init=False)
    """True once its handler has ended; what is left is to hand the answer to the peer."""
    arrived_at: float = attrs.field(factory=trio.current_time, init=False, repr=False)

    @property
    def id(self) -> int:
        return self.message.id

    def abort(self, kind: AbortKind, reason: JSON = None) -> None:
        """Abort for this reason unless there was one already."""
        self.signal.abort(AbortReason(kind, reason))

    @property
    def abort_reason(self) -> AbortReason | None:
        reason = self.signal.reason
        return reason if isinstance(reason, AbortReason) else None

    async def wait_turn(self) -> None:
        """Wait until this request is first in its lane, or aborted. Requests without a lane do not wait."""
        if self.ticket is not None and not self.ticket.ready.is_set():
            forget = self.signal.on_abort(self.ticket.ready.set)
            try:
                await self.ticket.ready.wait()
            finally:
                forget()

    def leave_lane(self) -> None:
        if self.ticket is not None:
            self.ticket.leave()


@asynccontextmanager
async def deadline(signal: Signal, at: float, deadline_ms: int) -> AsyncIterator[None]:
    """Abort ``signal`` at the absolute Trio time ``at`` unless the block ends before.

    It only notifies (SPEC 12.2.2): the block itself is not cancelled. The timer is always released.
    """
    async with trio.open_nursery() as nursery:

        async def expire() -> None:
            await trio.sleep_until(at)
            signal.abort(AbortReason.deadline(deadline_ms))

        nursery.start_soon(expire)
        yield
        nursery.cancel_scope.cancel(reason="settled before its deadline")


@attrs.define(eq=False)
class Follower:
    """Progress of one request, thinned out: news that comes too fast or cannot be sent is left out."""

    send: Progress
    every_s: float
    _next_at: float = attrs.field(default=0.0, init=False)

    def __call__(self, done: int, total: int | None, unit: str) -> None:
        now = trio.current_time()
        if now >= self._next_at:
            self._next_at = now + self.every_s
            self.send(done, total, unit)
