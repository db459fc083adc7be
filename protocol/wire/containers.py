"""How much a frame holds, counted before anything is made of it.

Three bytes of JSON (``[],``) become some sixty of memory, one byte of MessagePack as many, and decoding holds
everything else up. So a frame has bounds on what it holds beside the one on its bytes. The count of arrays
and objects is exact: brackets inside of texts are none, and a MessagePack frame of text alone has none,
whatever its bytes. ``values`` counts arrays, objects and the commas between members (MessagePack: every value
and key), which is what decoding takes its time for.

Counting goes in steps of a few milliseconds: no call into C holds the interpreter for longer, so that a
thread may do it beside an event loop.
"""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from .codec import Frame

STEP: Final = 256 * 1024
"""Characters looked at in one call: some 3 ms at most."""
_CONTAINER_BYTES: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4}
"""Texts, bytes and extensions: how many bytes of length follow the first one."""
_FIXED: Final = {
    0xC0: 1, 0xC1: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9,
    0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18,
    0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5,
}  # fmt: skip
"""All others above 0xBF: how many bytes they take, the members of containers not counted."""


@attrs.frozen
class Weight:
    """What a frame holds. ``values`` includes ``containers``."""

    containers: int
    values: int


class _Head(msgspec.Struct):
    id: int | None = None
    type: str | None = None


def heaviest(frame: Frame) -> Weight:
    """What a frame holds at most: brackets and commas inside of texts are counted, too. Fast."""
    if isinstance(frame, str):
        return _marks(frame)
    containers = sum(
        len(piece) - len(piece.translate(None, _CONTAINER_BYTES))
        for piece in (frame[at : at + STEP] for at in range(0, len(frame), STEP))
    )
    return Weight(containers, len(frame))


def weigh(frame: Frame, enough: Weight) -> Weight:
    """What a frame holds, exactly up to ``enough``: counting may stop as soon as either is exceeded.

    Linear; for 16 MB some 0.3 s of JSON, and of MessagePack as long as a million values take.
    """
    return _weigh_text(frame, enough) if isinstance(frame, str) else _weigh_packed(frame, enough)


def head_of(frame: Frame) -> tuple[int | None, str | None]:
    """(``id``, ``type``) of a frame that is not decoded, where they can be read without the other fields."""
    try:
        head = msgspec.json.decode(frame, type=_Head) if isinstance(frame, str) else _packed_head(frame)
    except (msgspec.MsgspecError, RecursionError, UnicodeError, ValueError):
        return None, None
    return head.id, head.type


def step_over(frame: bytes, at: int) -> int:
    """Where the MessagePack value at ``at`` ends; for an array or object, where its first member starts."""
    first = frame[at]
    if first < 0xA0 or first >= 0xE0:
        return at + 1
    if first < 0xC0:
        return at + 1 + (first & 0x1F)
    if first in _SIZED:
        start = at + 1 + _SIZED[first]
        is_extension = 0xC7 <= first <= 0xC9
        return start + int.from_bytes(frame[at + 1 : start], "big") + is_extension
    return at + _FIXED[first]


def is_container(first: int) -> bool:
    """Whether a MessagePack value with this first byte is an array or an object."""
    return 0x80 <= first < 0xA0 or 0xDC <= first < 0xE0


def _packed_head(frame: bytes) -> _Head:
    return msgspec.msgpack.decode(frame, type=_Head)


def _marks(text: str) -> Weight:
    containers = commas = 0
    for at in range(0, len(text), STEP):
        piece = text[at : at + STEP]
        containers += piece.count("[") + piece.count("{")
        commas += piece.count(",")
    return Weight(containers, containers + commas)


def _weigh_text(text: str, enough: Weight) -> Weight:
    """Without escapes a text's quotes open and close by turns; a backslash elsewhere is no JSON anyway."""
    containers = values = at = 0
    inside = False
    while at < len(text) and containers <= enough.containers and values <= enough.values:
        piece = text[at : at + STEP]
        if (len(piece) - len(piece.rstrip("\\"))) % 2:
            piece = text[at : at + STEP + 1]  # not between a backslash and what it escapes
        pieces = piece.replace("\\\\", "").replace('\\"', "").split('"')
        found = _marks("".join(pieces[inside::2]))
        containers, values = containers + found.containers, values + found.values
        inside ^= len(pieces) % 2 == 0
        at += len(piece)
    return Weight(containers, values)


def _weigh_packed(frame: bytes, enough: Weight) -> Weight:
    at = containers = values = 0
    while at < len(frame) and containers <= enough.containers and values <= enough.values:
        containers += is_container(frame[at])
        values += 1
        at = step_over(frame, at)
    return Weight(containers, values)
