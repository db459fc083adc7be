"""Encoding JSON of any depth: compact for storage and the wire, indented for people (SPEC 1.2.2, 10.11.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from .json_value import JSON

_encode: Final = msgspec.json.Encoder().encode
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

INDENT: Final = "  "
_INDENT_FREE_BYTES: Final = 4096
"""A value this small cannot need more indentation than the budget, whatever its shape."""
_INDENT_BUDGET: Final = 16 * 1024 * 1024
"""Indentation above this is no help to anyone: 100 KB of nested brackets would print 10 GB of spaces."""
_INDENT_DEPTH: Final = 64
"""Above the budget, containers deeper than this are written on one line."""


def to_utf8_text(text: str) -> str:
    """``text`` with each lone surrogate replaced by U+FFFD, so that it can be encoded (SPEC 0)."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def to_utf8(text: str) -> bytes:
    """``text`` as UTF-8, lone surrogates as U+FFFD; never raises."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def encode_json(value: JSON) -> bytes:
    """Compact JSON, key order kept, non-ASCII kept; lone surrogates as escapes, so nothing is lost.

    ``value`` must be lossless JSON (see ``lossless_defect``): nothing is checked here.
    """
    try:
        return _encode(value)
    except (RecursionError, UnicodeEncodeError):
        return "".join(_pieces(value, _escaped_scalar, None)).encode()


def pretty_json(value: JSON) -> str:
    """JSON for reading: two spaces of indent, key order and non-ASCII kept, lone surrogates as U+FFFD.

    A value whose indentation alone would exceed 16 MB has its containers below depth 64 on one line.
    """
    try:
        compact = _encode(value)
        if len(compact) <= _INDENT_FREE_BYTES or indent_chars(value) <= _INDENT_BUDGET:
            return msgspec.json.format(compact, indent=len(INDENT)).decode()
    except (RecursionError, UnicodeEncodeError):
        pass  # too deep for msgspec, or a lone surrogate: the iterative writer takes it
    depth = None if indent_chars(value) <= _INDENT_BUDGET else _INDENT_DEPTH
    return "".join(_pieces(value, _replaced_scalar, -1 if depth is None else depth))


def indent_chars(value: JSON) -> int:
    """How many characters of indentation ``value`` needs when every member has its own line."""
    total, stack = 0, [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, (list, dict)) and node:
            total += len(INDENT) * ((depth + 1) * len(node) + depth)
            members = node if isinstance(node, list) else node.values()
            stack.extend((member, depth + 1) for member in members if isinstance(member, (list, dict)))
    return total


def _escaped_scalar(value: JSON) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:  # only a string gets here
        return _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", _quoted(str(value)))


def _quoted(text: str) -> str:
    """Encode around the surrogates, which stay as they are."""
    clean = iter(_SURROGATE.split(text))
    lone = iter(_SURROGATE.findall(text))
    parts = [_encode(next(clean)).decode()[1:-1]]
    for piece in clean:
        parts += (next(lone), _encode(piece).decode()[1:-1])
    return '"' + "".join(parts) + '"'


def _replaced_scalar(value: JSON) -> str:
    return _encode(to_utf8_text(value) if isinstance(value, str) else value).decode()


_Level = tuple[Iterator[tuple[str | None, JSON]], str]


def _members(node: list[JSON] | dict[str, JSON]) -> _Level:
    if isinstance(node, list):
        return ((None, member) for member in node), "]"
    return ((key, member) for key, member in node.items()), "}"


def _pieces(value: JSON, scalar: Callable[[JSON], str], indent_depth: int | None) -> Iterator[str]:
    """Write ``value`` piece by piece. ``indent_depth``: None compact, -1 all indented, else that deep."""

    def line(depth: int) -> str:
        if indent_depth is None or 0 <= indent_depth < depth:
            return ""
        return "\n" + INDENT * depth

    colon = ":" if indent_depth is None else ": "
    stack: list[_Level] = []
    first = True
    root: _Level = (iter(((None, value),)), "")
    stack.append(root)
    while stack:
        members, closer = stack[-1]
        depth = len(stack) - 1
        item = next(members, None)
        if item is None:
            stack.pop()
            if closer:
                yield line(depth - 1) if _breaks(line(depth)) else ""
                yield closer
            first = False
            continue
        key, node = item
        if depth:
            yield ("" if first else ",") + line(depth)
            if key is not None:
                yield scalar(key) + colon
        if isinstance(node, (list, dict)) and node:
            stack.append(_members(node))
            yield "[" if isinstance(node, list) else "{"
            first = True
        else:
            yield scalar(node)
            first = False


def _breaks(line: str) -> bool:
    return line != ""
