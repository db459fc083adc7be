"""Decoding JSON of any depth (SPEC 1.2.2): msgspec where it can, an iterative parser where it cannot.

msgspec recurses (about 1,000 levels), refuses lone surrogates, and forgets the sign of ``-0``. The
parser here has no such limits and is some twenty times slower; ordinary records never reach it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from json import JSONDecodeError, decoder
from typing import Final

import msgspec

from .json_value import JSON

_decode: Final = msgspec.json.Decoder().decode
_scan_string: Final[Callable[[str, int, bool], tuple[str, int]]] = decoder.scanstring  # type: ignore[attr-defined]  # the stub leaves it out

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LITERALS: Final[tuple[tuple[str, JSON], ...]] = (("true", True), ("false", False), ("null", None))

MAYBE_NEGATIVE_ZERO: Final = re.compile(
    rb"-(?:0(?:\.0+)?(?:[eE][+-]?[0-9]+)?(?=[,\]}\s]|$)|[0-9.]+[eE]-[0-9]{2,}|0\.0{200})"
)
"""Bytes that may hold a negative zero, underflow included; false alarms only cost the slow parser."""


class JsonError(ValueError):
    """The bytes are not one JSON value, or a number in them is not lossless (SPEC 1.2.2)."""


def decode_json(data: bytes | bytearray | memoryview | str, *, strict: bool = False) -> JSON:
    """Decode one JSON value, however deep.

    Integers of any size stay integers; of duplicate keys the last value wins, at the first one's
    place; lone surrogates in escapes (or as WTF-8 bytes) are kept as lone code points.

    Args: strict: also refuse negative zero, which no event payload may hold.
    Raises: JsonError: malformed text, bad UTF-8, a number outside the double range, or an integer of
        more digits than Python converts (about 4,300).
    """
    try:
        value: JSON = _decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _decode_slowly(data, strict=strict)
    if strict and MAYBE_NEGATIVE_ZERO.search(data.encode() if isinstance(data, str) else data):
        return _decode_slowly(data, strict=True)
    return value


def decode_json_slowly(data: bytes | bytearray | memoryview | str) -> JSON:
    """As ``decode_json``, value by value: beside an event loop in another thread, whose turns it never takes.

    Some 2 us a value. Raises: JsonError.
    """
    return _decode_slowly(data, strict=False)


def _decode_slowly(data: bytes | bytearray | memoryview | str, *, strict: bool) -> JSON:
    if isinstance(data, str):
        return _Parser(data, strict=strict).parse()
    try:
        text = bytes(data).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as exc:
        raise JsonError(f"bad UTF-8 at byte {exc.start}") from None
    return _Parser(text, strict=strict).parse()


class _Parser:
    """One pass over a text with an explicit stack of open containers."""

    def __init__(self, text: str, *, strict: bool) -> None:
        self._text = text
        self._strict = strict
        self._pos = 0
        self._stack: list[list[JSON] | dict[str, JSON]] = []
        self._keys: list[str] = []

    def parse(self) -> JSON:
        self._skip_space()
        while True:
            opened = self._open()
            if opened:
                continue
            value = self._scalar_or_empty()
            while True:
                self._skip_space()
                if not self._stack:
                    if self._pos != len(self._text):
                        raise self._error("text after the value")
                    return value
                self._put(value)
                if self._next_member():
                    break
                value = self._close()

    def _open(self) -> bool:
        """Enter a container that has members; empty ones count as scalars."""
        char = self._peek()
        if char not in "[{" or not char:
            return False
        start = self._pos
        self._pos += 1
        self._skip_space()
        if self._peek() == ("]" if char == "[" else "}"):
            self._pos = start
            return False
        if char == "[":
            self._stack.append([])
        else:
            self._stack.append({})
            self._key()
        return True

    def _scalar_or_empty(self) -> JSON:
        char = self._peek()
        if char == '"':
            return self._string()
        if char in "[{" and char:
            self._pos += 1
            self._skip_space()
            self._pos += 1
            return [] if char == "[" else {}
        for word, value in _LITERALS:
            if self._text.startswith(word, self._pos):
                self._pos += len(word)
                return value
        return self._number()

    def _put(self, value: JSON) -> None:
        top = self._stack[-1]
        if isinstance(top, list):
            top.append(value)
        else:
            top[self._keys.pop()] = value

    def _next_member(self) -> bool:
        """Step over a comma and, in an object, the next key."""
        if self._peek() != ",":
            return False
        self._pos += 1
        self._skip_space()
        if isinstance(self._stack[-1], dict):
            self._key()
        return True

    def _close(self) -> JSON:
        top = self._stack.pop()
        if self._peek() != ("]" if isinstance(top, list) else "}"):
            raise self._error("a comma or the end of the container expected")
        self._pos += 1
        return top

    def _key(self) -> None:
        if self._peek() != '"':
            raise self._error("a key expected")
        self._keys.append(self._string())
        self._skip_space()
        if self._peek() != ":":
            raise self._error("a colon expected")
        self._pos += 1
        self._skip_space()

    def _string(self) -> str:
        try:
            value, self._pos = _scan_string(self._text, self._pos + 1, True)
        except JSONDecodeError as exc:
            raise JsonError(f"bad string: {exc.msg} at character {exc.pos}") from None
        return value

    def _number(self) -> JSON:
        match = _NUMBER.match(self._text, self._pos)
        if match is None:
            raise self._error("a value expected")
        digits = match.group()
        try:
            value = float(digits) if match.group(1) or match.group(2) else int(digits)
        except ValueError:
            raise self._error("number out of range") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error("number out of range")
        if self._strict and value == 0 and digits[0] == "-":
            raise self._error("negative zero")
        self._pos = match.end()
        return value

    def _peek(self) -> str:
        return self._text[self._pos : self._pos + 1]

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._pos)
        self._pos = match.end() if match else self._pos

    def _error(self, what: str) -> JsonError:
        return JsonError(f"{what} at character {self._pos}")
