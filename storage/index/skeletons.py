"""Skeletons: all events of a session without their data, in runs as they were appended.

A run is a text of its own among the text copies, so that idle time packs the runs of many sessions together:
of real logs 36 KB, and 78 when each was packed alone. Its number there comes before those of all documents:
``_BEFORE_ALL + (sid << 32 | seq)`` with the seq of its first event.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final, cast

from msgspec import UNSET, UnsetType

from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from .bodies import Bodies, BodyRun
from .door import Skeleton

_BEFORE_ALL: Final = -(1 << 62)
_SEQ_BITS: Final = 32
"""A seq is an event's place in its log (SPEC 1.3.1): no log has 4,000,000,000."""


def _number(sid: int, seq: int) -> int:
    return _BEFORE_ALL + (sid << _SEQ_BITS) + seq


def put_skeleton(bodies: Bodies, sid: int, run: Sequence[Skeleton]) -> None:
    """Store a run of events that follows everything stored of the session."""
    if run:
        text = _encode(run)
        bodies.insert([BodyRun(_number(sid, run[0].seq), len(text), [text])])


def cut_skeleton(bodies: Bodies, sid: int, from_seq: int) -> bool:
    """Remove the events from ``from_seq`` on. True if there were any."""
    first, last = _number(sid, from_seq), _number(sid + 1, 0) - 1
    changed = next(bodies.between(first, last), None) is not None
    kept: list[Skeleton] = []
    for number, text in bodies.between(_number(sid, 0), first - 1):
        run = _decode(text)
        if run[-1].seq >= from_seq:
            first, kept = number, [event for event in run if event.seq < from_seq]
    bodies.cut(first, last)
    put_skeleton(bodies, sid, kept)
    return changed or bool(kept)


def read_skeleton(bodies: Bodies, sid: int) -> list[Skeleton]:
    """All events, ascending."""
    found: list[Skeleton] = []
    for _, text in bodies.between(_number(sid, 0), _number(sid + 1, 0) - 1):
        found += _decode(text)
    return found


def _encode(run: Sequence[Skeleton]) -> str:
    """Columns instead of rows, and steps instead of values: alike ones stand together and pack to little.

    The usual operation and the usual kind of source, a single earlier event, have columns of their own.
    """
    names: list[JSON] = list(dict.fromkeys(event.type for event in run))
    number = {name: at for at, name in enumerate(names)}
    seqs = _steps([event.seq for event in run])
    appended: list[int] = []
    single: list[int] = []
    back: list[JSON] = []
    ops: list[JSON] = []
    sources: list[JSON] = []
    for at, event in enumerate(run):
        op, source = event.surface_op, event.source_event_seqs
        if op == "append":
            appended.append(at)
        elif op is not UNSET:
            ops.append([at, op])
        if isinstance(source, list) and len(source) == 1 and type(source[0]) is int:
            single.append(at)
            back.append(event.seq - source[0])
        elif source is not UNSET:
            sources.append([at, source])
    value: list[JSON] = [
        names, [number[event.type] for event in run], seqs[:1] if set(seqs[1:]) == {1} else seqs,
        _steps([event.time for event in run]), _steps(appended), ops, _steps(single), back, sources,
    ]  # fmt: skip
    return encode_json(value).decode()


def _decode(text: str) -> list[Skeleton]:
    names, kinds, seqs, times, appended, ops, single, back, sources = cast(
        list[list[JSON]], decode_json(text.encode())
    )
    every = _sums(seqs if len(seqs) == len(kinds) else [*seqs, *(1 for _ in kinds[1:])])
    op_at: dict[int, JSON | UnsetType] = dict.fromkeys(_sums(appended), "append")
    op_at.update(_by_place(ops))
    sources_at = _by_place(sources)
    for at, step in zip(_sums(single), cast(list[int], back), strict=True):
        sources_at[at] = [every[at] - step]
    return [
        Skeleton(
            seq=seq,
            type=cast(str, names[cast(int, kind)]),
            time=time,
            surface_op=op_at.get(at, UNSET),
            source_event_seqs=sources_at.get(at, UNSET),
        )
        for at, (kind, seq, time) in enumerate(zip(kinds, every, _sums(times), strict=True))
    ]


def _by_place(pairs: list[JSON]) -> dict[int, JSON | UnsetType]:
    return {cast(int, at): value for at, value in cast(list[list[JSON]], pairs)}


def _steps(values: Sequence[int]) -> list[JSON]:
    return [later - before for before, later in pairwise((0, *values))]


def _sums(steps: list[JSON]) -> list[int]:
    return list(accumulate(cast(list[int], steps)))
