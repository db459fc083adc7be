"""Skeletons: all events of a session without their data, in compressed runs as they were appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from msgspec import UNSET, UnsetType

from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from ..sqlite import Connection
from ..text_codec import TextCodec
from .door import Skeleton


def put_skeleton(connection: Connection, codec: TextCodec, sid: int, run: Sequence[Skeleton]) -> None:
    """Store a run of events that follows everything stored of the session."""
    if run:
        connection.execute(
            "INSERT INTO skeleton VALUES(?, ?, ?)", (sid, run[0].seq, codec.pack_bytes(_encode(run)))
        )


def cut_skeleton(connection: Connection, codec: TextCodec, sid: int, from_seq: int) -> bool:
    """Remove the events from ``from_seq`` on. True if there were any."""
    row = connection.execute(
        "SELECT seq, rows FROM skeleton WHERE sid = ? AND seq < ? ORDER BY seq DESC LIMIT 1", (sid, from_seq)
    ).fetchone()
    changed = connection.execute("DELETE FROM skeleton WHERE sid = ? AND seq >= ?", (sid, from_seq)).rowcount
    if row is not None:
        run = _decode(codec.unpack_bytes(row[1]))
        kept = [event for event in run if event.seq < from_seq]
        if len(kept) < len(run):
            connection.execute("DELETE FROM skeleton WHERE sid = ? AND seq = ?", (sid, row[0]))
            put_skeleton(connection, codec, sid, kept)
            return True
    return changed > 0


def read_skeleton(connection: Connection, codec: TextCodec, sid: int) -> list[Skeleton]:
    """All events, ascending."""
    found: list[Skeleton] = []
    for (blob,) in connection.execute(
        "SELECT rows FROM skeleton WHERE sid = ? ORDER BY seq", (sid,)
    ).fetchall():
        found += _decode(codec.unpack_bytes(blob))
    return found


def _encode(run: Sequence[Skeleton]) -> bytes:
    """Columns instead of rows: alike values stand together and compress to almost nothing."""
    ops: JSON = [[at, event.surface_op] for at, event in enumerate(run) if event.surface_op is not UNSET]
    sources: JSON = [
        [at, event.source_event_seqs] for at, event in enumerate(run) if event.source_event_seqs is not UNSET
    ]
    names: list[JSON] = list(dict.fromkeys(event.type for event in run))
    number = {name: at for at, name in enumerate(names)}
    times = [event.time for event in run]
    seqs = [event.seq for event in run]
    return encode_json(
        [names, [number[event.type] for event in run], _deltas(seqs), _deltas(times), ops, sources]
    )


def _decode(data: bytes) -> list[Skeleton]:
    names, types, seqs, times, ops, sources = cast(list[list[JSON]], decode_json(data))
    op_at = _by_place(ops)
    sources_at = _by_place(sources)
    return [
        Skeleton(
            seq=seq,
            type=cast(str, names[cast(int, kind)]),
            time=time,
            surface_op=op_at.get(at, UNSET),
            source_event_seqs=sources_at.get(at, UNSET),
        )
        for at, (kind, seq, time) in enumerate(zip(types, _sums(seqs), _sums(times), strict=True))
    ]


def _by_place(pairs: list[JSON]) -> dict[int, JSON | UnsetType]:
    return {cast(int, at): value for at, value in cast(list[list[JSON]], pairs)}


def _deltas(values: Sequence[int]) -> list[JSON]:
    return [value - before for before, value in zip((0, *values), values, strict=False)]


def _sums(deltas: list[JSON]) -> list[int]:
    total = 0
    found = []
    for delta in cast(list[int], deltas):
        total += delta
        found.append(total)
    return found
