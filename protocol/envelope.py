"""Events in and out of JSON (SPEC 1.2), and logs as numbered lists of them (SPEC 1.3).

The envelope is strict; ``surfaceOp`` and ``sourceEventSeqs`` are kept as found and judged by the surface
fold, so that one bad replacement does not hide every other event of the log (SPEC 8.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from .event import Event
from .json_codec import decode_json, deep_copy, encode_json, lossless_defect
from .json_decode import MAYBE_NEGATIVE_ZERO, JsonError
from .json_value import JSON, is_safe_integer, whole

KEYS: Final = frozenset(("type", "seq", "time", "data", "ignorable", "surfaceOp", "sourceEventSeqs"))

_decode: Final = msgspec.json.Decoder(Event).decode
_encode: Final = msgspec.json.Encoder().encode


class EventError(ValueError):
    """An event envelope breaks a rule of SPEC 1.2, or its payload is no lossless JSON."""


def event_from_json(value: JSON, *, default_seq: int | None = None) -> Event:
    """Validate an event record (camelCase keys). The event shares its payload with ``value``.

    Args: default_seq: the seq of a record that carries none.
    Raises: EventError: not an object; a payload that is not lossless; then missing, unknown or invalid
        keys in the order of SPEC 1.2.
    """
    if not isinstance(value, dict):
        raise EventError("the event is no object")
    if defect := lossless_defect(value):
        raise EventError(f"the event holds {defect}")
    if unknown := value.keys() - KEYS:
        raise EventError(f"the event has the unknown key {min(unknown)!r}")
    type_ = value.get("type")
    if not isinstance(type_, str) or not type_:
        raise EventError("type is no non-empty text")
    seq = whole(value.get("seq", default_seq))
    if not is_safe_integer(seq) or seq < 0:
        raise EventError("seq is no safe integer of at least 0")
    time = whole(value.get("time"))
    if not is_safe_integer(time):
        raise EventError("time is no safe integer")
    if "data" not in value:
        raise EventError("data is missing")
    if "ignorable" in value and value["ignorable"] is not True:
        raise EventError("ignorable is not true")
    return Event(
        type=type_,
        seq=seq,
        time=time,
        data=value["data"],
        surface_op=value.get("surfaceOp", UNSET),
        source_event_seqs=value.get("sourceEventSeqs", UNSET),
        ignorable=True if "ignorable" in value else UNSET,
    )


def decode_event(line: bytes) -> Event:
    """Decode and validate one event, in one pass when nothing about it is unusual.

    Raises: EventError: as ``event_from_json``, or for bytes that are no JSON.
    """
    try:
        event = _decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return _decode_slowly(line)
    if (
        0 <= event.seq <= _SAFE
        and -_SAFE <= event.time <= _SAFE
        and event.ignorable is not False
        and event.type
        and not MAYBE_NEGATIVE_ZERO.search(line)
    ):
        return event
    return _decode_slowly(line)


_SAFE: Final = 2**53 - 1


def _decode_slowly(line: bytes) -> Event:
    try:
        value = decode_json(line, strict=True)
    except JsonError as exc:
        raise EventError(str(exc)) from exc
    return event_from_json(value)


def event_to_json(event: Event) -> dict[str, JSON]:
    """The event as a record with camelCase keys in their usual order; shares the payload."""
    record: dict[str, JSON] = {"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}
    if event.surface_op is not UNSET:
        record["surfaceOp"] = event.surface_op
    if event.source_event_seqs is not UNSET:
        record["sourceEventSeqs"] = event.source_event_seqs
    if event.ignorable is not UNSET:
        record["ignorable"] = event.ignorable
    return record


def encode_event(event: Event) -> bytes:
    """One event as compact JSON, payloads of any depth and lone surrogates included."""
    try:
        return _encode(event)
    except (RecursionError, UnicodeEncodeError):
        return encode_json(event_to_json(event))


def detach(event: Event) -> Event:
    """A copy that shares no mutable part with ``event`` (SPEC 0, 1.2.3)."""
    return Event(
        type=event.type,
        seq=event.seq,
        time=event.time,
        data=deep_copy(event.data),
        surface_op=deep_copy(event.surface_op),
        source_event_seqs=deep_copy(event.source_event_seqs),
        ignorable=event.ignorable,
    )


def first_gap(events: Sequence[Event], *, start: int = 0) -> int | None:
    """The first index whose event does not carry the seq ``start + index``; None if all do (SPEC 1.3.1).

    With ``start`` the stored length it judges an append batch, which is refused whole (SPEC 1.3.2).
    """
    for index, event in enumerate(events):
        if event.seq != start + index:
            return index
    return None


END_SEED: Final = "session/end-seed"


def with_seed_marker(seed: Sequence[Event], *, time: int) -> list[Event]:
    """The seed and its one ``session/end-seed`` event, unless it already ends in one (SPEC 1.3.3).

    An empty seed is one, too; a session without a seed is not to come here. ``time`` is the marker's.
    """
    events = list(seed)
    if not events or events[-1].type != END_SEED:
        events.append(Event(type=END_SEED, seq=len(events), time=time, data={}))
    return events


def may_fork_at(events: Sequence[Event], boundary: int) -> bool:
    """True if a fork may copy the events 0..``boundary``: it must not end inside a turn (SPEC 1.3.4)."""
    if not 0 <= boundary < len(events):
        return False
    for index in range(boundary, -1, -1):
        if events[index].type in ("turn/start", "turn/end"):
            return events[index].type == "turn/end"
    return True
