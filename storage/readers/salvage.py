"""What can still be had from a line that is not one JSON value.

Three kinds of damage make nearly all bad lines of real logs: a *splice* (a cut record and the next
whole one behind it), a *junction* (two whole records without a line feed between) and a *NUL run*
around a record. The rule, which the count of physical records follows too (README.md, "Counting"):

1. NULs and blanks at both ends are nothing. What is left is read value by value from its start.
2. Where no object can be read, the search goes on at each later ``{"``; the first from which whole
   objects reach the end of the line is taken. If there is none, the first from which whole objects
   reach another ``{"`` is. A ``{"`` behind ``:`` or ``[``, or behind a comma that follows ``}``, is passed
   by: it is a value inside the cut record, which would be served as a record it never was.
3. Each object read so is one record; each stretch passed over is one lost record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

from ...protocol.json_value import JSON
from .decode import LENIENT, clean, decode_record, lenient_text

_FILL: Final = "\x00 \t\r\n\ufeff"
_EFFORT: Final = 16
"""Characters parsed per character of a line before the rest is given up: nested stubs are quadratic."""
_TRIES_MAX: Final = 20_000
_LOOK_BACK: Final = 64


@attrs.frozen
class Piece:
    """A stretch of a damaged line, in bytes from its start: an object, or None for what is lost."""

    start: int
    end: int
    obj: dict[str, JSON] | None


_Span: TypeAlias = tuple[int, int, "dict[str, JSON] | None"]


def salvage(raw: bytes) -> list[Piece]:
    """Split a damaged line into whole objects and lost stretches, in order; empty if it is only fill."""
    stripped = raw.strip(b"\x00 \t\r\n")
    if not stripped:
        return []
    if len(stripped) < len(raw):
        try:
            value = decode_record(stripped)
        except ValueError:
            value = None
        if isinstance(value, dict):
            start = raw.index(stripped)
            return [Piece(start, start + len(stripped), value)]
    text = lenient_text(raw)
    return _in_bytes(text, _Scan(text).spans())


def whole_prefix(raw: bytes) -> list[Piece]:
    """The whole objects a torn last line starts with, then one lost piece for the rest, if any."""
    text = lenient_text(raw)
    scan = _Scan(text)
    at = scan.skip(0)
    spans = scan.run(at)
    if spans:
        at = scan.skip(spans[-1][1])
    if at < len(text):
        spans.append((at, len(text), None))
    return _in_bytes(text, spans)


def values_of(text: str) -> Iterator[JSON]:
    """The values of a text that holds one behind the other, over as many lines as they like.

    Raises: ValueError: what comes next is no whole value.
    """
    at = _after(text, 0)
    while at < len(text):
        try:
            value, at = LENIENT.raw_decode(text, at)
        except RecursionError as exc:
            raise ValueError("nested too deep") from exc
        yield clean(value)
        at = _after(text, at)


def _after(text: str, at: int) -> int:
    while at < len(text) and text[at] in _FILL:
        at += 1
    return at


def _in_bytes(text: str, spans: list[_Span]) -> list[Piece]:
    pieces: list[Piece] = []
    chars, size = 0, 0
    for start, end, obj in spans:
        first = size + len(text[chars:start].encode("utf-8", "surrogateescape"))
        last = first + len(text[start:end].encode("utf-8", "surrogateescape"))
        pieces.append(Piece(first, last, obj))
        chars, size = end, last
    return pieces


class _Scan:
    """One pass over one damaged line, with a bound on the work done for it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._effort = _EFFORT * len(text) + 65536
        self._tries = _TRIES_MAX

    def spans(self) -> list[_Span]:
        spans: list[_Span] = []
        at = self.skip(0)
        while at < len(self._text):
            run = self.run(at)
            if not run:
                found = self._next_start(at)
                spans.append((at, found, None))
                at = found
                continue
            spans += run
            at = self.skip(run[-1][1])
        return spans

    def skip(self, at: int) -> int:
        return _after(self._text, at)

    def run(self, at: int) -> list[_Span]:
        """Whole objects directly behind each other from ``at``."""
        run: list[_Span] = []
        while at < len(self._text) and (span := self._object(at)) is not None:
            run.append(span)
            at = self.skip(span[1])
        return run

    def _object(self, at: int) -> _Span | None:
        if self._text[at] != "{" or self._effort <= 0 or self._tries <= 0:
            return None
        self._tries -= 1
        try:
            value, end = LENIENT.raw_decode(self._text, at)
        except RecursionError:
            self._effort -= len(self._text) - at
            return None
        except ValueError as exc:
            self._effort -= max(getattr(exc, "pos", len(self._text)) - at, 1)
            return None
        self._effort -= end - at
        clean(value)
        return at, end, value

    def _next_start(self, at: int) -> int:
        """The later ``{"`` to go on from, or the end of the line."""
        second_best = len(self._text)
        found = self._text.find('{"', at + 1)
        while found >= 0 and self._effort > 0 and self._tries > 0:
            run = [] if self._is_member(found) else self.run(found)
            if run:
                end = self.skip(run[-1][1])
                if end >= len(self._text):
                    return found
                if second_best == len(self._text) and self._text.startswith('{"', end):
                    second_best = found
            found = self._text.find('{"', found + 1)
        return second_best

    def _is_member(self, at: int) -> bool:
        """True if an object may stand at ``at`` as a value of the cut record before it."""
        before = self._text[max(0, at - _LOOK_BACK) : at].rstrip(" \t")
        if before.endswith(","):
            return before[:-1].rstrip(" \t").endswith("}")
        return before.endswith((":", "["))
