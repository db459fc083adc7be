"""Bounds between us and a peer: what waits to be sent, how long, and what a connection has heard.

The rules. Large answers wait for room in the outbox, in their own request's task, so they cost the peer its
own in-flight slots and us no memory. Small frames never wait; if they pile up to twice the bound, the peer
asks without reading and is cut off. Whether a peer reads at all is judged by bytes it accepts, whether it
lives by bytes it sends, not by messages: a peer in the middle of a large frame is alive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import attrs
import trio

SEND_PIECE_BYTES: Final = 32 * 1024
"""A send is cut into pieces so that a slow but living peer shows progress (32 KiB in 30 s is 1 KB/s)."""


FAREWELL_S: Final = 1.0
CLOSE_FRAME: Final = 0x88


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


@attrs.define(eq=False)
class CountedStream(trio.abc.Stream):
    """A byte stream that remembers when it last heard and last sent, and what it may still hear.

    ``budget_bytes``: receiving more breaks the stream; None lifts the bound (after authentication).
    ``farewell``: asked for last bytes when the stream is closed in good order; see ``Link``.
    """

    stream: trio.abc.Stream
    budget_bytes: int | None = None
    farewell: Callable[[], bytes] | None = attrs.field(default=None, init=False, repr=False)
    sent_opening: int = attrs.field(default=0, init=False)
    """First byte of the last send: every send is whole frames, so this tells a close frame."""
    received_bytes: int = attrs.field(default=0, init=False)
    sent_bytes: int = attrs.field(default=0, init=False)
    heard_at: float = attrs.field(factory=trio.current_time, init=False)
    moved_at: float = attrs.field(factory=trio.current_time, init=False)
    sending: bool = attrs.field(default=False, init=False)
    broken: bool = attrs.field(default=False, init=False)
    _closing: trio.Lock = attrs.field(factory=trio.Lock, init=False, repr=False)
    _turns: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)
    """The library's reading task (pongs, the close) and our writer send through here, frame after frame."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As the stream's, after what is being sent. Nothing of ours goes out behind a close frame.

        A send that does not finish leaves unknown bytes on the wire: ``broken``.
        Raises: as the stream's; ClosedResourceError behind a close frame.
        """
        while self.sending:
            await self._turns.park()
        if self.sent_opening == CLOSE_FRAME:
            raise trio.ClosedResourceError("the close frame has been sent")
        self.sending, self.moved_at = True, trio.current_time()
        self.sent_opening = data[0] if data else 0
        finished = False
        try:
            if len(data) <= SEND_PIECE_BYTES:
                await self.stream.send_all(data)
                self.sent_bytes += len(data)
            else:
                with memoryview(data) as whole:
                    for start in range(0, len(whole), SEND_PIECE_BYTES):
                        await self._send(whole[start : start + SEND_PIECE_BYTES])
            finished = True
        finally:
            self.sending = False
            self.broken = self.broken or not finished
            if self._turns:
                self._turns.unpark()

    async def _send(self, piece: bytes | bytearray | memoryview) -> None:
        await self.stream.send_all(piece)
        self.sent_bytes += len(piece)
        self.moved_at = trio.current_time()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data: bytes | bytearray = b""
        try:
            data = await self.stream.receive_some(max_bytes)
        finally:
            if not data:
                self.ended.set()
        self.received_bytes += len(data)
        self.heard_at = trio.current_time()
        if self.budget_bytes is not None and self.received_bytes > self.budget_bytes:
            self.broken = True
            self.ended.set()
            raise trio.BrokenResourceError("more bytes than an unknown peer may send")
        return data

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        try:
            with trio.move_on_after(FAREWELL_S, shield=True):
                async with self._closing:  # two may close at once: the reading task and the link
                    await self._say_farewell()
        finally:
            await self.stream.aclose()

    async def _say_farewell(self) -> None:
        ask, self.farewell = self.farewell, None
        last = ask() if ask is not None and not (self.broken or self.sending) else b""
        if last:
            try:
                await self.stream.send_all(last)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.broken = True  # nobody is left to hear it

    def stalled_s(self, now: float) -> float:
        """How long a running send has made no progress; 0 when nothing is being sent."""
        return now - self.moved_at if self.sending else 0.0
