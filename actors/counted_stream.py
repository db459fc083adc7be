"""A byte stream that knows what went through it and when: how server and client judge the other side.

Liveness is judged by bytes, not by messages: a peer in the middle of a large frame is alive, and a peer that
accepts bytes reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
import trio

SEND_PIECE_BYTES: Final = 32 * 1024
"""A send is cut into pieces so that a slow but living peer shows progress (32 KiB in 30 s is 1 KB/s)."""
RECEIVE_BYTES_FIRST: Final = 16 * 1024
"""What is asked for at first; four times as much after so much came, up to what the reader takes, else less.

A socket is read into as many bytes as are asked for, and what did not come is given back as a hole that the
next read of as many does not fit into. With 256 KiB each time, 90 connections left the heap of a service
1.5 MiB longer every 10 s (50 runtimes appending), with the same 29 MiB in use.
"""
FAREWELL_S: Final = 1.0
CLOSE_FRAME: Final = 0x88


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
    _asks_bytes: int = attrs.field(default=RECEIVE_BYTES_FIRST, init=False, repr=False)
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
        asked = self._asks_bytes if max_bytes is None else min(max_bytes, self._asks_bytes)
        try:
            data = await self.stream.receive_some(asked)
        finally:
            if not data:
                self.ended.set()
        self._asks_bytes = max(RECEIVE_BYTES_FIRST, 4 * asked if len(data) == asked else asked // 4)
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
