"""JSON in and out, and the rules for JSON values: comparison, copies, losslessness (SPEC 1.2.2).

Nothing here recurses on the depth of a value: 100,000 nested arrays are as welcome as a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar, cast

import msgspec

from .json_decode import JsonError, decode_json
from .json_encode import encode_json, indent_chars, pretty_json, to_utf8, to_utf8_text
from .json_value import JSON

__all__ = [
    "JsonError",
    "canonical_json",
    "decode_json",
    "deep_copy",
    "deep_equal",
    "encode_json",
    "indent_chars",
    "lossless_defect",
    "pretty_json",
    "to_utf8",
    "to_utf8_text",
]

_V = TypeVar("_V")

_LONGEST_INTEGER_BITS = 14_000
"""Python refuses to print integers of more than 4,300 digits (about 14,280 bits)."""


def deep_equal(a: JSON, b: JSON) -> bool:
    """Equal as JSON: key order does not matter, 4 equals 4.0, a boolean equals no number."""
    stack: list[tuple[JSON, JSON]] = [(a, b)]
    while stack:
        left, right = stack.pop()
        if left is right:
            continue
        if isinstance(left, dict):
            if not isinstance(right, dict) or left.keys() != right.keys():
                return False
            stack.extend((member, right[key]) for key, member in left.items())
        elif isinstance(left, list):
            if not isinstance(right, list) or len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif isinstance(right, (dict, list)) or isinstance(left, bool) or isinstance(right, bool):
            return False  # equal booleans are identical
        elif left != right:
            return False
    return True


def deep_copy(value: _V) -> _V:
    """A copy that shares no container with ``value``."""
    if not isinstance(value, (list, dict)):
        return value
    root = value.copy()
    stack: list[object] = [root]
    while stack:
        node = stack.pop()
        slots: Iterable[tuple[object, object]] = ()
        if isinstance(node, dict):
            slots = node.items()  # keys that are there may be given other values meanwhile
        elif isinstance(node, list):
            slots = enumerate(node)
        for slot, member in slots:
            if isinstance(member, (list, dict)):
                copied = member.copy()
                node[slot] = copied  # type: ignore[index]  # ``node`` is the list or dict just walked
                stack.append(copied)
    return root  # type: ignore[return-value]  # a copy has its original's type


_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_MAYBE_WHOLE_FLOAT = re.compile(rb"[0-9](?:\.0(?![0-9])|[eE])")


def canonical_json(value: JSON) -> bytes:
    """One byte string for each class of equal values: sorted keys, whole floats as integers."""
    try:
        data = _encode_sorted(value)
    except (RecursionError, UnicodeEncodeError):
        return _canonical_slowly(value)
    return _canonical_slowly(value) if _MAYBE_WHOLE_FLOAT.search(data) else data


def _canonical_slowly(value: JSON) -> bytes:
    root: list[JSON] = [deep_copy(value)]
    stack: list[JSON] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            ordered = sorted(node.items())
            node.clear()
            node.update((key, _one_number(member)) for key, member in ordered)
            stack.extend(node.values())
        elif isinstance(node, list):
            node[:] = [_one_number(member) for member in node]
            stack.extend(node)
    return encode_json(root[0])


def _one_number(value: JSON) -> JSON:
    return int(value) if type(value) is float and value.is_integer() else value


def lossless_defect(value: object) -> str | None:
    """Why ``value`` is not lossless JSON, or None if it is (SPEC 1.2.2).

    Refused: non-finite numbers, negative zero, integers too long to print, keys that are not text,
    cycles, and anything that is no plain JSON type (a subclass counts as none).
    """
    return None if _is_plain(value) else _defect(value)


_PLAIN_WALK_MAX = 10_000
"""Containers that are walked without remembering which: a cycle ends here, and so does a very large value."""


def _is_plain(value: object) -> bool:
    """Whether a value is lossless at first sight: a third of the price of looking closely."""
    stack: list[object] = [(value,)]
    left = _PLAIN_WALK_MAX
    while stack:
        node = stack.pop()
        left -= 1
        if left < 0:
            return False
        members: Iterable[object]
        if type(node) is dict:
            for key in node:
                if type(key) is not str:
                    return False
            members = node.values()
        else:
            members = cast("Iterable[object]", node)
        for member in members:
            kind = type(member)
            if kind is dict or kind is list:
                stack.append(member)
            elif kind is int:
                if not -_SMALL < member < _SMALL:  # type: ignore[operator]  # an int
                    return False
            elif kind is not str and kind is not bool and member is not None:
                return False
    return True


_SMALL = 1 << 63


def _defect(value: object) -> str | None:
    path: set[int] = set()
    stack: list[tuple[object, bool]] = [(value, False)]
    while stack:
        node, leaving = stack.pop()
        kind = type(node)
        if leaving:
            path.discard(id(node))
        elif kind is dict or kind is list:
            if id(node) in path:
                return "a cycle"
            path.add(id(node))
            stack.append((node, True))
            if isinstance(node, dict) and not all(type(key) is str for key in node):
                return "a key that is not text"
            for member in node.values() if isinstance(node, dict) else cast("list[object]", node):
                if type(member) is dict or type(member) is list:
                    stack.append((member, False))
                elif defect := _scalar_defect(member):
                    return defect
        elif defect := _scalar_defect(node):
            return defect
    return None


def _scalar_defect(value: object) -> str | None:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return None
    if kind is int:
        assert isinstance(value, int)
        return "an integer too long" if value.bit_length() > _LONGEST_INTEGER_BITS else None
    if kind is float:
        assert isinstance(value, float)
        if value - value != 0:
            return "a number that is not finite"
        return "a negative zero" if value == 0 and str(value)[0] == "-" else None
    return f"a value of type {kind.__name__}"
