"""What waits to be sent to a peer, and how much of it may.

The rules. Large answers wait for room in the outbox, in their own request's task, so they cost the peer its
own in-flight slots and us no memory. Small frames never wait; if they pile up to twice the bound, the peer
asks without reading and is cut off.
"""

from __future__ import annotations

from collections import deque

import attrs
import trio


class SlowPeer(Exception):
    """The peer does not read what it asked for."""


class OutboxClosed(Exception):
    """The connection is ending; what was to be sent is dropped."""


@attrs.define(eq=False)
class Outbox:
    """Encoded frames on their way to one peer. Owner: the connection; only its writer takes."""

    room_bytes: int
    unsent_bytes: int = attrs.field(default=0, init=False)
    _frames: deque[bytes] = attrs.field(factory=deque, init=False, repr=False)
    _closed: bool = attrs.field(default=False, init=False)
    _taker: trio.lowlevel.Task | None = attrs.field(default=None, init=False, repr=False)
    """The writer while it waits: one task waits here for every answer, so it is woken without a detour."""
    _left: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)

    @property
    def crowded(self) -> bool:
        """True while answers would have to wait; news that can be left out is left out then."""
        return self.unsent_bytes > self.room_bytes

    def put_nowait(self, frame: bytes) -> None:
        """Queue a small frame. Raises: SlowPeer at twice the bound, OutboxClosed."""
        if self._closed:
            raise OutboxClosed
        if self.unsent_bytes + len(frame) > 2 * self.room_bytes and self.unsent_bytes:
            raise SlowPeer(f"{self.unsent_bytes} bytes unsent")
        self._queue(frame)

    async def room(self) -> None:
        """Wait until an answer may be encoded and put. Raises: OutboxClosed."""
        while self.unsent_bytes > self.room_bytes and not self._closed:
            await self._left.park()
        if self._closed:
            raise OutboxClosed

    async def put(self, frame: bytes) -> None:
        """Queue a frame as soon as there is room; one frame may be larger than all the room.

        Raises: OutboxClosed. Cancellation: the frame is not queued.
        """
        while self.unsent_bytes and self.unsent_bytes + len(frame) > self.room_bytes and not self._closed:
            await self._left.park()
        if self._closed:
            raise OutboxClosed
        self._queue(frame)

    async def take(self) -> bytes:
        """The next frame, waiting for one. It counts as unsent until ``sent``. Raises: OutboxClosed."""
        while not self._frames:
            if self._closed:
                raise OutboxClosed
            self._taker = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._leave)
        return self._frames.popleft()

    def _leave(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._taker = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        taker, self._taker = self._taker, None
        if taker is not None:
            trio.lowlevel.reschedule(taker)

    def sent(self, frame: bytes) -> None:
        """The frame taken last has been handed to the system."""
        self.unsent_bytes -= len(frame)
        if self._left:
            self._left.unpark_all()

    async def drained(self) -> None:
        """Wait until everything queued has been sent (bounded by the caller)."""
        while self.unsent_bytes and not self._closed:
            await self._left.park()

    def close(self) -> None:
        """Drop what waits and wake everybody. Idempotent."""
        self._closed = True
        self._frames.clear()
        self._wake()
        self._left.unpark_all()

    def _queue(self, frame: bytes) -> None:
        self._frames.append(frame)
        self.unsent_bytes += len(frame)
        self._wake()
