"""JSON values at the edge: what MessagePack may carry that JSON cannot, and text that cannot be encoded.

Everything walks with an explicit stack: nesting in a frame is the peer's choice (SPEC 1.2.2).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

import msgspec

from ..json_codec import to_utf8_text
from ..json_value import JSON

_INT64 = range(-(2**63), 2**64)
"""What MessagePack can carry. JSON has no such bound."""
_LARGEST = sys.float_info.max


def json_defect(value: object) -> str | None:
    """Why a decoded MessagePack value is not JSON, or None if it is.

    Messages of ours inside are walked too. Refused: raw bytes, extension types, timestamps, keys that
    are not text, non-finite numbers.
    """
    stack: list[object] = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is str or kind is int or kind is bool or node is None:
            continue
        if isinstance(node, dict):
            for key in node:
                if type(key) is not str:
                    return "a key that is not text"
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, msgspec.Struct):
            stack.extend(getattr(node, name) for name in node.__struct_fields__)
        elif isinstance(node, float):
            if not math.isfinite(node):
                return "a number that is not finite"
        else:
            return f"a value of type {kind.__name__}"
    return None


def encodable(value: JSON, *, int64: bool = False) -> JSON:
    """A copy in which every lone surrogate is U+FFFD (SPEC 0), keys included.

    Args: int64: integers that do not fit MessagePack become floats, as in languages that have no others.
    """
    root: list[JSON] = [value]
    stack: list[list[JSON] | dict[str, JSON]] = [root]
    while stack:
        node = stack.pop()
        slots: Iterable[tuple[int | str, JSON]]
        if isinstance(node, dict):
            slots = tuple(node.items())
            if not all(key.isascii() for key in node):
                node.clear()
                node.update((to_utf8_text(str(key)), member) for key, member in slots)
                slots = tuple(node.items())
        else:
            slots = enumerate(node)
        for slot, member in slots:
            changed = _scalar(member, int64=int64)
            if isinstance(changed, (dict, list)):
                changed = changed.copy()
                stack.append(changed)
            if changed is not member:
                node[slot] = changed  # type: ignore[index]  # the slot came from this node
    return root[0]


def _scalar(value: JSON, *, int64: bool) -> JSON:
    if isinstance(value, str):
        return to_utf8_text(value)
    if int64 and type(value) is int and value not in _INT64:
        try:
            return float(value)
        except OverflowError:
            return _LARGEST if value > 0 else -_LARGEST
    return value
