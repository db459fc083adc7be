"""Previews of texts too long to show: head, tail, and a notice of what is missing (SPEC 12.1.5)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

_GAP = "\n\n"


@attrs.frozen(kw_only=True)
class Preview:
    """``text`` is the whole replacement; ``omitted_bytes`` counts bytes that are truly absent from it."""

    text: str
    omitted_bytes: int


def make_preview(data: bytes, limit_bytes: int, notice: Callable[[int], str]) -> Preview | None:
    """Return a replacement of at most ``limit_bytes`` for ``data``, or None if the notice does not fit.

    Args:
        data: valid UTF-8, longer than ``limit_bytes``.
        notice: makes the closing notice from the omitted byte count; larger counts make no shorter text.
    The head gets the ceiling half of what the notice leaves, the tail the floor half; both are cut
    between code points and joined directly.
    """
    budget = limit_bytes - len(notice(len(data)).encode()) - len(_GAP)
    if budget < 0:
        return None
    head = data[: cut_before(data, (budget + 1) // 2)]
    tail = data[cut_after(data, len(data) - budget // 2) :]
    omitted = len(data) - len(head) - len(tail)
    return Preview(text=f"{head.decode()}{tail.decode()}{_GAP}{notice(omitted)}", omitted_bytes=omitted)


def cut_before(data: bytes, at: int) -> int:
    """Return the last code-point border at or before byte ``at``."""
    while 0 < at < len(data) and _continues(data[at]):
        at -= 1
    return at


def cut_after(data: bytes, at: int) -> int:
    """Return the first code-point border at or after byte ``at``."""
    while 0 < at < len(data) and _continues(data[at]):
        at += 1
    return at


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80
