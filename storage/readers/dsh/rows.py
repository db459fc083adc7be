"""Packed rows: a run of streamed deltas in one line (SPEC 1.8.4), expanded before anything is numbered."""

from __future__ import annotations

from itertools import accumulate
from typing import Final, cast

import msgspec

from ....protocol.json_value import JSON, is_safe_integer, whole

_PAYLOADS: Final = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
_ENVELOPE: Final = frozenset(("type", "seq0", "time0", "seq", "time", "data"))
_SHARED: Final = frozenset(("turn", "step", "index", "dt"))


class Row(msgspec.Struct, frozen=True):
    """The members of a row: the ``data`` of each, its time behind the first one's, the largest of these."""

    members: list[JSON]
    gaps: list[int]
    reach: int


def is_row(kind: JSON) -> bool:
    return isinstance(kind, str) and kind in _PAYLOADS


def expand_row(obj: dict[str, JSON]) -> Row:
    """Expand one row. Hand-kept logs write ``seq`` and ``time`` for ``seq0`` and ``time0``, or neither.

    Raises: ValueError: the row is malformed; the message says how.
    """
    kind = str(obj["type"])
    data = obj.get("data")
    if obj.keys() - _ENVELOPE or not isinstance(data, dict):
        raise ValueError("packed row with a foreign envelope")
    payload = data.get(_PAYLOADS[kind])
    gaps = data.get("dt")
    extra = {"id", "name"} if kind == "tool-call-chunks" else set()
    if data.keys() - _SHARED - {_PAYLOADS[kind]} - extra:
        raise ValueError("packed row with foreign members")
    if not isinstance(payload, list) or len(payload) < 3 or set(map(type, payload)) != {str}:
        raise ValueError("packed row without three deltas")
    if not isinstance(gaps, list) or len(gaps) != len(payload) - 1:
        raise ValueError("packed row whose gaps do not fit its deltas")
    steps = gaps if set(map(type, gaps)) == {int} else [whole(gap) for gap in gaps]
    if set(map(type, steps)) != {int}:
        raise ValueError("packed row with a gap that is no number")
    sums = list(accumulate(cast(list[int], steps), initial=0))
    if not (is_safe_integer(max(sums)) and is_safe_integer(min(sums))):
        raise ValueError("packed row whose times leave the safe range")
    return Row(_members(kind, data, payload), sums, max(sums, key=abs))


def _members(kind: str, data: dict[str, JSON], payload: list[JSON]) -> list[JSON]:
    turn, step, index = data.get("turn"), data.get("step"), data.get("index")
    if kind != "tool-call-chunks":
        delta = "text-delta" if kind == "text-chunks" else "reasoning-delta"
        return [
            {"turn": turn, "step": step, "chunk": {"type": delta, "index": index, "text": item}}
            for item in payload
        ]
    call: dict[str, JSON] = {"type": "tool-call-delta", "index": index, "id": data.get("id")}
    if "name" in data:
        call["name"] = data["name"]
    return [{"turn": turn, "step": step, "chunk": {**call, "argumentsDelta": item}} for item in payload]
