"""Answers too large for one frame: cutting them into parts and putting parts together."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, cast

import attrs

from ..json_value import JSON
from .codes import WireCode, WireError
from .messages import Part

ANSWER_BYTES_MAX: Final = 1024 * 1024 * 1024
"""What a client puts together at most, unless told otherwise: a server gone mad must not fill its memory."""


def split_answer(request_id: int, data: bytes, size: int, *, text: bool) -> list[Part]:
    """Cut an encoded answer into parts of at most ``size`` bytes (at least 4), text between code points."""
    cuts = [0]
    while cuts[-1] < len(data):
        end = min(cuts[-1] + size, len(data))
        while text and end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        cuts.append(end)
    return [
        Part(
            id=request_id,
            n=n,
            last=end == len(data),
            data=data[start:end].decode() if text else cast("JSON", data[start:end]),
        )
        for n, (start, end) in enumerate(pairwise(cuts))
    ]


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
