"""Snippets: a short window of a document around its match (SPEC 6.7, 16.1.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from .whitespace import WS, collapse, excess

SNIPPET_CHARS = 240
_ELLIPSIS = "…"

Span: TypeAlias = tuple[int, int, int]
"""(start, end, word): a token's place in the text, and which query word it answers."""


def snippet(text: str, span_start: int | None, limit: int = SNIPPET_CHARS) -> str:
    """Return at most ``limit`` code points of ``text`` with whitespace collapsed, around ``span_start``.

    Args:
        span_start: where the first highlighted span begins in ``text``; None when there is none.
        limit: at least 1.
    Only a neighbourhood of the span is looked at, so a snippet costs the same in a text of any length.
    Source: SPEC 6.7.
    """
    before = _kept_before(text, span_start or 0, limit + 1)
    after = _kept_after(text, span_start or 0, limit + 2, bool(before))
    if not after:
        before = before.rstrip(" ")
    return _window(before + after, len(before), limit)


def whole_snippet(text: str, limit: int = SNIPPET_CHARS) -> str | None:
    """Return the snippet of a text that fits into ``limit`` whole, wherever its span is; None if it does not.

    Asked first: then nobody needs to look for the span, which takes longer. The best hits are short ones.
    A text of more than twice ``limit`` is not looked at: few have so much whitespace, and ``snippet`` copes.
    """
    if len(text) > 2 * limit:
        return None
    kept = collapse(text)
    return kept if len(kept) <= limit else None


def _kept_before(text: str, start: int, need: int) -> str:
    """Return the last ``need`` collapsed characters before ``start``, all of them if there are fewer.

    Dropping more of the left side moves every position of the window by the same amount and can
    neither fit the text into the limit nor reach its beginning, so the result is the same.
    """
    size = 2 * need
    while True:
        begin = max(0, start - size)
        part = text[begin:start]
        kept = collapse(part)
        if kept and part[-1] in WS:
            kept += " "
        if begin == 0 or len(kept) >= need:
            return kept[-need:]
        size *= 2


def _kept_after(text: str, start: int, need: int, spaced: bool) -> str:
    """Return the first ``need`` collapsed characters from ``start`` on, all of them if there are fewer.

    A run that ``start`` stands in the middle of has given its one space to the left side already;
    ``spaced`` says that there is a left side.
    """
    size = 2 * need
    while True:
        part = text[start : start + size]
        kept = collapse(part)
        if kept and spaced and part[0] in WS and text[start - 1] not in WS:
            kept = " " + kept
        if start + size >= len(text):
            return kept
        if len(kept) >= need:
            return kept[:need]
        size *= 2


def _window(kept: str, h: int, limit: int) -> str:
    n = len(kept)
    if n <= limit:
        return kept
    if limit == 1:
        return _ELLIPSIS
    h = min(h, n - 1)
    start = max(0, h - limit // 3)
    lead = 1 if start > 0 else 0
    trail = 1
    room = limit - lead - trail
    if room < 1:
        start, trail, room = h, 0, limit - lead
    elif h >= start + room:
        start = h - room + 1
    end = min(n, start + room)
    if end == n:
        trail, room = 0, limit - lead
        start = max(0, n - room)
    return (_ELLIPSIS if lead else "") + kept[start:end] + (_ELLIPSIS if trail else "")


def best_window_start(text: str, spans: Sequence[Span], limit: int = SNIPPET_CHARS) -> int | None:
    """Return the ``span_start`` whose snippet shows most distinct query words; None without spans.

    Args: spans: in ascending order of start. Ties go to the earliest span.
    Source: SPEC 16.1.5.
    """
    if not spans:
        return None
    places = _collapsed_places(text, spans, limit)
    best, best_count = 0, 0
    words: Counter[int] = Counter()
    first = last = 0
    for anchor, (begin, _) in enumerate(places):
        low, high = _visible(begin, limit)
        while last < len(places) and places[last][1] <= high:
            words[spans[last][2]] += 1
            last += 1
        while first < last and places[first][0] < low:
            word = spans[first][2]
            words[word] -= 1
            if not words[word]:
                del words[word]
            first += 1
        if len(words) > best_count:
            best, best_count = anchor, len(words)
    return spans[best][0]


def _visible(begin: int, limit: int) -> tuple[int, int]:
    """Return which collapsed characters a window anchored at ``begin`` shows in the middle of a text."""
    low = max(0, begin - limit // 3)
    return low, low + max(limit - 2, 1)


def _collapsed_places(text: str, spans: Sequence[Span], limit: int) -> list[tuple[int, int]]:
    """Map raw spans to collapsed positions, relative to some point left of every window.

    A gap of more than eight windows is taken as it is: nothing beyond it can be shown together.
    """
    places: list[tuple[int, int]] = []
    origin = max(0, spans[0][0] - 8 * limit)
    at, shift = origin, 0
    for start, end, _ in spans:
        if at < start <= at + 8 * limit:
            shift += excess(text[at:start])
        at = max(at, end)
        places.append((start - origin - shift, end - origin - shift))
    return places
