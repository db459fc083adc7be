"""Reading JSON with comments by position: where each member of an object begins and ends.

Nothing recurses: nested values are skipped by counting brackets.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from .....protocol.json_codec import JsonError, decode_json
from .....protocol.json_value import JSON
from .edits import EditRefused

_BLANK: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\r\n]*|/\*[\s\S]*?\*/)*")
_STRING: Final = re.compile(r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"')
_SCALAR: Final = re.compile(r"[^\s,\]}/]+")
_TOKEN: Final = re.compile(
    r'(?P<string>"[^"\\]*(?:\\[\s\S][^"\\]*)*")|(?P<comment>//[^\r\n]*|/\*[\s\S]*?\*/)|[{}\[\],]'
)


@attrs.frozen
class Member:
    """One member of an object, by offsets. ``comma`` is where the comma behind it stands, if there is one."""

    key: str
    start: int
    value_start: int
    value_end: int
    comma: int | None


@attrs.frozen
class Object:
    """An object from its opening brace to behind its closing one."""

    start: int
    end: int
    members: tuple[Member, ...]

    def find(self, key: str) -> int | None:
        """The index of the member called ``key``; of several, the last one counts, as for every parser."""
        found = [index for index, member in enumerate(self.members) if member.key == key]
        return found[-1] if found else None


def skip_blank(text: str, at: int) -> int:
    """The first position from ``at`` on that is neither whitespace nor comment."""
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def scan_object(text: str, at: int) -> Object | None:
    """The object that begins at ``at``; None if another value does. Raises: EditRefused: not well-formed."""
    if text[at : at + 1] != "{":
        return None
    start, at = at, skip_blank(text, at + 1)
    members: list[Member] = []
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        if key is None:
            raise EditRefused(f"no JSON: a key is missing at line {_line(text, at)}")
        colon = skip_blank(text, key.end())
        if text[colon : colon + 1] != ":":
            raise EditRefused(f"no JSON: a colon is missing at line {_line(text, colon)}")
        value = skip_blank(text, colon + 1)
        end = value_end(text, value)
        after = skip_blank(text, end)
        comma = after if text[after : after + 1] == "," else None
        members.append(Member(_key(key[0]), at, value, end, comma))
        if comma is None and text[after : after + 1] != "}":
            raise EditRefused(f"no JSON: a comma is missing at line {_line(text, after)}")
        at = after if comma is None else skip_blank(text, comma + 1)
    return Object(start, at + 1, tuple(members))


def value_end(text: str, at: int) -> int:
    """Behind the value that begins at ``at``. Raises: EditRefused: there is none, or it does not end."""
    if text[at : at + 1] == '"':
        string = _STRING.match(text, at)
        if string is None:
            raise EditRefused(f"no JSON: a text does not end, line {_line(text, at)}")
        return string.end()
    if text[at : at + 1] not in ("{", "["):
        scalar = _SCALAR.match(text, at)
        if scalar is None:
            raise EditRefused(f"no JSON: a value is missing at line {_line(text, at)}")
        return scalar.end()
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return token.end()
    raise EditRefused(f"no JSON: what begins at line {_line(text, at)} does not end")


def plain_value(text: str) -> JSON:
    """The value of a whole text, its comments and trailing commas left out; an empty text is an empty object.

    Raises: EditRefused: it is no JSON even then.
    """
    pieces: list[str] = []
    at, comma = 0, None
    for token in _TOKEN.finditer(text):
        between = text[at : token.start()]
        pieces.append(between)
        if between.strip() or token["string"] is not None:
            comma = None
        if token["comment"] is not None:
            pieces.append(" ")
        else:
            if token[0] in ("}", "]") and comma is not None:
                pieces[comma] = " "  # a trailing one
            pieces.append(token[0])
            comma = len(pieces) - 1 if token[0] == "," else None
        at = token.end()
    pieces.append(text[at:])
    plain = "".join(pieces).lstrip("\ufeff")
    if not plain.strip():
        return {}
    try:
        return decode_json(plain)
    except JsonError as exc:
        raise EditRefused(f"no JSON: {exc}") from exc


def _key(quoted: str) -> str:
    try:
        key = decode_json(quoted)
    except JsonError as exc:
        raise EditRefused(f"no JSON: the key {quoted[:40]} is none") from exc
    return str(key)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
