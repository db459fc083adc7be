"""Packed rows: a run of streamed deltas in one line (SPEC 1.8.4), expanded before anything is numbered."""

from __future__ import annotations

from typing import Final

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
    if (
        not isinstance(payload, list)
        or len(payload) < 3
        or not all(isinstance(item, str) for item in payload)
    ):
        raise ValueError("packed row without three deltas")
    if not isinstance(gaps, list) or len(gaps) != len(payload) - 1:
        raise ValueError("packed row whose gaps do not fit its deltas")
    steps = [whole(gap) for gap in gaps]
    behind, sums = 0, [0]
    for step in steps:
        if not is_safe_integer(step):
            raise ValueError("packed row with a gap that is no number")
        behind += step
        sums.append(behind)
    if not all(is_safe_integer(total) for total in sums):
        raise ValueError("packed row whose times leave the safe range")
    return Row([_member(kind, data, item) for item in payload], sums, max(sums, key=abs))


def _member(kind: str, data: dict[str, JSON], item: JSON) -> JSON:
    chunk: dict[str, JSON]
    if kind == "tool-call-chunks":
        chunk = {"type": "tool-call-delta", "index": data.get("index"), "id": data.get("id")}
        if "name" in data:
            chunk["name"] = data["name"]
        chunk["argumentsDelta"] = item
    else:
        delta = "text-delta" if kind == "text-chunks" else "reasoning-delta"
        chunk = {"type": delta, "index": data.get("index"), "text": item}
    return {"turn": data.get("turn"), "step": data.get("step"), "chunk": chunk}
