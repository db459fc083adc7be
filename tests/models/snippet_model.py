"""SPEC 6.7 character by character, over the whole text."""

from __future__ import annotations

_WS = {*range(0x09, 0x0E), 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B)} | {
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
    0xFEFF,
}


def slow_snippet(text: str, span_start: int | None, m: int) -> str:
    kept: list[str] = []
    h = 0
    for index, char in enumerate(text):
        is_space = ord(char) in _WS
        if span_start == index:
            # the span's first character stands behind the space that the run before it turns into
            h = len(kept)
        if is_space and (not kept or kept[-1] == " "):
            continue
        kept.append(" " if is_space else char)
    if kept and kept[-1] == " ":
        kept.pop()
    shown = "".join(kept)
    n = len(shown)
    if n <= m:
        return shown
    if m == 1:
        return "…"
    h = min(h, n - 1)
    start = max(0, h - m // 3)
    lead = 1 if start > 0 else 0
    trail = 1
    room = m - lead - trail
    if room < 1:
        start, trail = h, 0
        room = m - lead
    elif h >= start + room:
        start = h - room + 1
    end = min(n, start + room)
    if end == n:
        trail = 0
        room = m - lead
        start = max(0, n - room)
        end = n
    return "…" * lead + shown[start:end] + "…" * trail
