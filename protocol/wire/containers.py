"""How many arrays and objects a frame holds, counted before anything is made of it.

Three bytes of JSON (``[],``) become some sixty of memory, one byte of MessagePack as many, and decoding holds
everything else up. So a frame has a bound on its containers beside the one on its bytes. The count is exact:
brackets inside of texts are none, and a MessagePack frame of text alone has none, whatever its bytes.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from .codec import Frame

_TEXTS: Final = re.compile(r'"(?:[^"\\]++|\\.?+)*+(?:"|\Z)', re.DOTALL)
"""JSON texts, one that never ends included: each character is looked at once, whatever a frame holds."""
_CONTAINER_BYTES: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4}
"""Texts, bytes and extensions: how many bytes of length follow the first one."""
_FIXED: Final = {
    0xC0: 1, 0xC1: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9,
    0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18,
    0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5,
}  # fmt: skip
"""All others above 0xBF: how many bytes they take, the members of containers not counted."""


class _Head(msgspec.Struct):
    id: int | None = None


def may_hold_more(frame: Frame, limit: int) -> bool:
    """Whether a frame could hold more than ``limit`` containers. Some ms for 16 MB."""
    if isinstance(frame, str):
        return frame.count("[") + frame.count("{") > limit
    return len(frame) - len(frame.translate(None, _CONTAINER_BYTES)) > limit


def holds_more(frame: Frame, limit: int) -> bool:
    """Whether a frame holds more than ``limit`` containers. Linear; seconds for 16 MB of MessagePack."""
    if isinstance(frame, str):
        return may_hold_more(_TEXTS.sub("", frame), limit)
    return _count(frame, limit) > limit


def frame_id(frame: Frame) -> int | None:
    """The ``id`` of a frame that is not decoded, where that can be read without making its other fields."""
    try:
        head = msgspec.json.decode(frame, type=_Head) if isinstance(frame, str) else _packed_head(frame)
    except (msgspec.MsgspecError, RecursionError, UnicodeError, ValueError):
        return None
    return head.id


def _packed_head(frame: bytes) -> _Head:
    return msgspec.msgpack.decode(frame, type=_Head)


def _count(frame: bytes, limit: int) -> int:
    """Containers of a MessagePack frame, value by value; stops above ``limit``."""
    at = count = 0
    while at < len(frame) and count <= limit:
        first = frame[at]
        if first < 0x80 or first >= 0xE0:
            at += 1
        elif first < 0xA0:
            count += 1
            at += 1
        elif first < 0xC0:
            at += 1 + (first & 0x1F)
        elif first in _SIZED:
            start = at + 1 + _SIZED[first]
            is_extension = 0xC7 <= first <= 0xC9
            at = start + int.from_bytes(frame[at + 1 : start], "big") + is_extension
        else:
            count += first >= 0xDC
            at += _FIXED[first]
    return count
