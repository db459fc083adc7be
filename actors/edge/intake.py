"""Bytes of a peer on their way in: plain small messages are taken out here, all else is the library's.

The library takes a message through a parser of some forty steps, a channel and a task of its own: half of
what a small request costs. Most frames are the plain case: one whole masked message, text or binary, without
extensions. Such a frame is cut out of the bytes here. Whatever is not that case is handed on byte for
byte, in its place in the order: control frames, fragments, large messages, and everything that might be
wrong, so that there is one judge of it. After a close frame, a fault or the end the library reads alone.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

import attrs
import trio

from ..counted_stream import CountedStream

PLAIN_BYTES_MAX: Final = 64 * 1024
"""Larger messages go through the library, which takes them in pieces and leaves the loop turns between."""
HEAD_END: Final = b"\r\n\r\n"

CONTINUED: Final = frozenset((0x00, 0x80))
BEGUN: Final = frozenset((0x01, 0x02))
TEXT, BINARY, PING, PONG = 0x81, 0x82, 0x89, 0x8A
FINAL = MASKED = 0x80
CONTROL_BYTES_MAX: Final = 6 + 125
_PASSING: Final = CONTINUED | BEGUN | {TEXT, BINARY, PING, PONG}
"""First bytes of frames after which the connection goes on; all others end it, as a close does."""


class Reading(Enum):
    """Who reads the stream."""

    LIBRARY = "library"
    NOBODY = "nobody"
    NEXT = "next"


@attrs.define(eq=False)
class Intake(trio.abc.Stream):
    """The stream as the library's tasks see it, and ``next`` for the plain messages.

    Three may read. The library until the request's head is whole, and after ``release``; nobody while the
    request is judged; ``next``, which has one caller, from ``take_over`` on. Owner: a ``Link``.
    """

    stream: CountedStream
    piece_bytes: int
    reads: Reading = attrs.field(default=Reading.LIBRARY, init=False)
    _tail: bytes | None = attrs.field(default=b"", init=False, repr=False)
    """Last bytes of the request's head, in which its end is looked for; None: it was found."""
    _buffer: bytes = attrs.field(default=b"", init=False, repr=False)
    _at: int = attrs.field(default=0, init=False, repr=False)
    """What of the buffer is done with."""
    _passing: int = attrs.field(default=0, init=False)
    """Bytes of the frame at hand that still go to the library."""
    _within: bool = attrs.field(default=False, init=False)
    """Whether a message in several frames has begun and not ended."""
    _comes: bool = attrs.field(default=False, init=False)
    """Whether the library has the next message as soon as what is passing has passed."""
    _handed: bytearray = attrs.field(factory=bytearray, init=False, repr=False)
    _broken: bool = attrs.field(default=False, init=False)
    _reading: bool = attrs.field(default=False, init=False)
    """Whether ``next`` waits for bytes at this moment; a stream has one receiver."""
    _is_closed: Callable[[], bool] = attrs.field(default=lambda: False, init=False, repr=False)
    _given: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)
    _taken: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)

    # -- the library's side ------------------------------------------------------------------------

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """What is the library's, in order. Raises: as the stream's."""
        while True:
            if self._handed:
                data, self._handed = self._handed, bytearray()
                self._taken.unpark_all()
                return data
            if self.reads is Reading.LIBRARY and not self._reading:
                return await self._read_alone(max_bytes)
            await self._given.park()

    async def _read_alone(self, max_bytes: int | None) -> bytes | bytearray:
        if self._at < len(self._buffer):
            data, self._buffer, self._at = self._buffer[self._at :], b"", 0
            return data
        if self._broken:
            raise trio.BrokenResourceError("the stream failed before")
        data = bytes(await self.stream.receive_some(max_bytes))
        return data if self._tail is None else self._cut_head(data)

    def _cut_head(self, data: bytes) -> bytes:
        """The request's head is the library's; what follows it waits until the request is judged."""
        assert self._tail is not None
        seen = self._tail + data
        end = seen.find(HEAD_END)
        if end < 0:
            self._tail = seen[-len(HEAD_END) + 1 :]
            return data
        size = end + len(HEAD_END) - len(self._tail)
        self._tail, self._buffer, self.reads = None, data[size:], Reading.NOBODY
        return data[:size]

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As the stream's. When it fails the library stops reading: nobody may wait for it, or go on."""
        try:
            await self.stream.send_all(data)
        except trio.BrokenResourceError:
            self.release()
            await trio.aclose_forcefully(self.stream)
            raise
        except trio.ClosedResourceError:
            self.release()
            raise

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        self.release()
        await self.stream.aclose()

    # -- ours ----------------------------------------------------------------------------------------

    def take_over(self, is_closed: Callable[[], bool]) -> None:
        """The request was accepted: ``next`` reads. If its head was unusual, the library goes on reading.

        ``is_closed``: whether the library has closed, as it does over a message that is too large.
        """
        self._is_closed = is_closed
        if self.reads is Reading.NOBODY:
            self.reads = Reading.NEXT

    def release(self) -> None:
        """Let the library read alone from here on: it judges what comes, and closes."""
        self.reads = Reading.LIBRARY
        self._given.unpark_all()
        self._taken.unpark_all()

    async def next(self) -> str | bytes | None:
        """The next plain message; None: the library has the next one, or knows why there is none.

        Cancellation: nothing is lost, a later ``next`` goes on.
        """
        waited = False
        while self.reads is Reading.NEXT:
            if self._passing:
                await (self._pass_on() if self._at < len(self._buffer) else self._more())
                if self._is_closed():
                    self.release()
            elif self._comes:
                self._comes = False
                return None
            else:
                message = self._plain()
                if message is not None:
                    if not waited:  # a peer that sends without end must not keep the loop
                        await trio.lowlevel.cancel_shielded_checkpoint()
                    return message
                if self.reads is Reading.NEXT and not self._passing:
                    await self._more()
                    waited = True
        return None

    def _plain(self) -> str | bytes | None:
        """Cut the next frame out of the buffer if it is whole and plain, else see to what becomes of it."""
        buffer, at = self._buffer, self._at
        if at + 2 > len(buffer):
            return None
        opening, second = buffer[at], buffer[at + 1]
        if second < MASKED or opening not in _PASSING:
            self.release()
            return None
        size, begin = second - MASKED, at + 6
        if size > 125:
            begin += 2 if size == 126 else 8
            if begin > len(buffer):
                return None
            size = int.from_bytes(buffer[at + 2 : begin - 4], "big")
        end = begin + size
        if (opening != TEXT and opening != BINARY) or self._within or size > PLAIN_BYTES_MAX:
            self._sort(opening, end - at)
            return None
        if size < 126 < second - MASKED + 1:  # a long form for a short length: a fault
            self.release()
            return None
        if end > len(buffer):
            return None
        data = unmasked(buffer[begin:end], buffer[begin - 4 : begin])
        try:
            message = data.decode() if opening == TEXT else data
        except UnicodeDecodeError:
            self.release()
            return None
        self._at = end
        return message

    def _sort(self, opening: int, size: int) -> None:
        """A frame of ``size`` bytes in all that is not plain: it passes, or is a fault."""
        if opening in (PING, PONG):
            fault = size > CONTROL_BYTES_MAX
        else:
            fault = (opening in CONTINUED) != self._within
            self._within = opening < FINAL
            self._comes = not self._within
        if fault:
            self.release()
        else:
            self._passing = size

    async def _pass_on(self) -> None:
        piece = self._buffer[self._at : self._at + self._passing]
        self._handed += piece
        self._at += len(piece)
        self._passing -= len(piece)
        self._given.unpark_all()
        while self._handed and self.reads is Reading.NEXT:  # it may be busy with a pong nobody reads
            await self._taken.park()

    async def _more(self) -> None:
        data: bytes | bytearray = b""
        if self._at == len(self._buffer):
            self._buffer, self._at = b"", 0  # nobody keeps what is done with for as long as a peer is silent
        self._reading = True
        try:
            data = await self.stream.receive_some(self.piece_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._broken = True
        finally:
            self._reading = False
            if self.reads is not Reading.NEXT:  # released meanwhile: the library waits for its turn
                self._given.unpark_all()
        if not data:
            self.release()
        elif not self._buffer:
            self._buffer = bytes(data)
        else:
            self._buffer, self._at = self._buffer[self._at :] + data, 0


def unmasked(data: bytes, key: bytes) -> bytes:
    """The payload of a frame from a client (RFC 6455, 5.3), as one number: 1 us for 200 bytes."""
    size = len(data)
    mask = int.from_bytes((key * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ mask).to_bytes(size, "big")
