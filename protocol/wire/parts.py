"""Answers too large for one frame: cutting them into parts and putting parts together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import attrs

from ..json_value import JSON
from .codes import WireCode, WireError
from .messages import Part

ANSWER_BYTES_MAX: Final = 1024 * 1024 * 1024
"""What a client puts together at most, unless told otherwise: a server gone mad must not fill its memory."""


def split_answer(request_id: int, data: bytes, size: int, *, text: bool) -> Iterator[Part]:
    """Cut an encoded answer into parts of at most ``size`` bytes (at least 4), text between code points.

    One part at a time: a large answer exists encoded once, not twice.
    """
    start, n = 0, 0
    while start < len(data):
        end = min(start + size, len(data))
        while text and end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        piece = data[start:end]
        part = piece.decode() if text else cast("JSON", piece)
        yield Part(id=request_id, n=n, last=end == len(data), data=part)
        start, n = end, n + 1


@attrs.define(eq=False)
class Assembly:
    """Parts of one answer, in order. Owner: the client's core."""

    text: bool
    bytes_max: int = ANSWER_BYTES_MAX
    _pieces: list[str | bytes] = attrs.field(factory=list, init=False)
    _size: int = attrs.field(default=0, init=False)

    def add(self, part: Part) -> str | bytes | None:
        """Take the next part; the whole frame after the last one, else None.

        Raises: WireError: BAD_FRAME (out of order, or data of the wrong type), TOO_LARGE.
        """
        data = cast("object", part.data)
        if (
            part.n != len(self._pieces)
            or not isinstance(data, (str, bytes))
            or isinstance(data, str) != self.text
        ):
            raise WireError(WireCode.BAD_FRAME, f"part {part.n} of answer {part.id} does not fit")
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self.bytes_max:
            raise WireError(WireCode.TOO_LARGE, f"answer {part.id} has more than {self.bytes_max} bytes")
        if not part.last:
            return None
        if self.text:
            return "".join(cast("list[str]", self._pieces))
        return b"".join(cast("list[bytes]", self._pieces))
