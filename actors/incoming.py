"""Frames in, messages out: the size bound, and decoding without holding up the loop for long."""

from __future__ import annotations

from typing import Final

import attrs
import trio

from ..protocol.wire import messages as m
from ..protocol.wire.codec import Codec, Frame, FrameError
from ..protocol.wire.codes import WireCode
from ..protocol.wire.containers import frame_id, holds_more, may_hold_more
from .link import Link

THREAD_BYTES: Final = 64 * 1024
"""Frames above this leave the event loop when they need the slow decoder (some 5 MB/s of Python)."""


class FrameTooLarge(Exception):
    """The peer sent a frame above the announced bound."""


@attrs.frozen(eq=False)
class Incoming:
    """Messages of one peer, in order. ``slow_decoder`` is shared by all connections of the server."""

    link: Link
    codec: Codec[m.ClientMessage]
    frame_bytes: int
    frame_containers: int
    slow_decoder: trio.CapacityLimiter

    async def next(self) -> m.ClientMessage:
        """The next message.

        Raises: LinkClosed; FrameTooLarge; FrameError for a frame that is no message (it has been taken).
        """
        frame = await self.link.receive()
        if isinstance(frame, str) and self._too_large(frame):
            raise FrameTooLarge
        if len(frame) <= THREAD_BYTES:
            return self.codec.decode(frame)
        return await self._decode_large(frame)

    async def _decode_large(self, frame: Frame) -> m.ClientMessage:
        if may_hold_more(frame, self.frame_containers):
            await trio.to_thread.run_sync(self._check_containers, frame, limiter=self.slow_decoder)
        if self.codec.encoding == "json":
            message = self.codec.decode_quickly(frame)
            if message is not None:
                return message
        return await trio.to_thread.run_sync(self.codec.decode, frame, limiter=self.slow_decoder)

    def _check_containers(self, frame: Frame) -> None:
        """Refuse, undecoded, what would be far larger in memory than it is on the wire."""
        if holds_more(frame, self.frame_containers):
            limit = f"a frame may hold {self.frame_containers} arrays and objects"
            raise FrameError(WireCode.TOO_LARGE, limit, frame_id(frame))

    def _too_large(self, text: str) -> bool:
        """The library counts characters; text of few bytes each can be four times as long."""
        return 4 * len(text) > self.frame_bytes < len(text.encode("utf-8", "surrogatepass"))
