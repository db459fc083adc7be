"""Frames in, messages out: the size bound, and decoding without holding up the loop for long."""

from __future__ import annotations

from typing import Final

import attrs
import trio

from ...protocol.wire import messages as m
from ...protocol.wire.codec import Codec, Frame
from ...protocol.wire.containers import heaviest
from ...protocol.wire.gentle import STEP_VALUES, decode_gently
from .link import Link

THREAD_BYTES: Final = 64 * 1024
"""Frames above this are looked at before they are decoded in the event loop."""
LOOK_CHARS: Final = 1024 * 1024
"""Frames above this are not even looked at there: that takes some ms, and their text a few more."""


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
        """On the loop only what is plainly light; all else in a thread, in steps that leave it turns."""
        if isinstance(frame, str) and len(frame) <= LOOK_CHARS and heaviest(frame).values <= STEP_VALUES:
            message = self.codec.decode_quickly(frame)
            if message is not None:
                return message
        return await trio.to_thread.run_sync(
            decode_gently, self.codec, frame, self.frame_containers, limiter=self.slow_decoder
        )

    def _too_large(self, text: str) -> bool:
        """The library counts characters; text of few bytes each can be four times as long."""
        return 4 * len(text) > self.frame_bytes < len(text.encode("utf-8", "surrogatepass"))
