"""Decoding a frame that holds very much beside an event loop, without holding that up.

A decoder written in C keeps the interpreter to itself until it has ended, also in a thread: 0.2 to 0.65 s for
a frame of 15 MB. So an ``append`` is taken apart first (a scan: some 10 ms), and its events are decoded one
by one; between them everybody else has a turn. One event that holds very much itself is decoded value by
value in Python. Other requests that hold very much are refused before this (``REQUEST_VALUES``).
"""

from __future__ import annotations

from typing import Final, TypeAlias, cast

import msgspec

from ..json_codec import JsonError, decode_json
from ..json_decode import decode_json_slowly
from ..json_value import JSON
from .codec import Codec, Frame, FrameError, detail
from .codes import WireCode
from .containers import Weight, head_of, heaviest, is_container, step_over, weigh
from .limits import FRAME_CONTAINERS, FRAME_VALUES, REQUEST_VALUES
from .messages import Append, Attach, ClientMessage, Count, Id

STEP_VALUES: Final = 20_000
"""What one call into C may make: some 10 ms."""


class _Append(msgspec.Struct, tag="append", forbid_unknown_fields=True):
    id: Id
    session_id: str
    from_seq: Count
    events: list[msgspec.Raw]


class _Attach(msgspec.Struct, tag="attach", forbid_unknown_fields=True):
    id: Id
    session: msgspec.Raw
    events: list[msgspec.Raw] | None = None


_Apart: TypeAlias = _Append | _Attach
_json: Final = msgspec.json.Decoder(_Apart)
_msgpack: Final = msgspec.msgpack.Decoder(_Apart)


def decode_gently(
    codec: Codec[ClientMessage], frame: Frame, max_containers: int = FRAME_CONTAINERS
) -> ClientMessage:
    """As ``codec.decode``, in steps of a few milliseconds; for a thread.

    Raises: FrameError: BAD_FRAME, UNKNOWN_MESSAGE; TOO_LARGE for a frame that holds too much, undecoded.
    """
    if isinstance(frame, str) != (codec.encoding == "json"):
        return codec.decode(frame)  # which says what is wrong with it
    bounds = Weight(max_containers, FRAME_VALUES)
    weight = heaviest(frame)
    if weight.containers > bounds.containers or weight.values > REQUEST_VALUES:
        weight = weigh(frame, bounds)
    if weight.containers > bounds.containers:
        raise _too_large(frame, f"a frame may hold {bounds.containers} arrays and objects")
    if weight.values > bounds.values:
        raise _too_large(frame, f"a frame may hold {bounds.values} values")
    if weight.values <= STEP_VALUES:
        return codec.decode(frame)
    if head_of(frame)[1] in ("append", "attach"):
        return _taken_apart(codec, frame)
    if weight.values > REQUEST_VALUES:
        raise _too_large(frame, f"a request that publishes nothing may hold {REQUEST_VALUES} values")
    return codec.decode(frame)


def _too_large(frame: Frame, why: str) -> FrameError:
    return FrameError(WireCode.TOO_LARGE, why, head_of(frame)[0])


def _taken_apart(codec: Codec[ClientMessage], frame: Frame) -> ClientMessage:
    """An ``append`` or ``attach``, its events decoded one by one."""
    text = isinstance(frame, str)
    try:
        apart = _json.decode(frame) if isinstance(frame, str) else _msgpack.decode(frame)
        events = None if apart.events is None else [_value(raw, text=text) for raw in apart.events]
        if isinstance(apart, _Append):
            return codec.checked(Append(apart.id, apart.session_id, apart.from_seq, events or []))
        return codec.checked(Attach(apart.id, _value(apart.session, text=text), events))
    except (msgspec.MsgspecError, JsonError, RecursionError, UnicodeError, ValueError, TypeError) as exc:
        if isinstance(frame, str):  # very deep, a lone surrogate, 4.0 for 4: or no message at all
            return codec.decode_slowly(frame, value_by_value=True)
        raise FrameError(WireCode.BAD_FRAME, f"not msgpack: {detail(exc)}", head_of(frame)[0]) from None


def _value(raw: msgspec.Raw, *, text: bool) -> JSON:
    data = bytes(raw)
    enough = Weight(STEP_VALUES, STEP_VALUES)
    heavy = len(data) > STEP_VALUES and _holds_more(data.decode() if text else data, enough)
    if heavy:
        return decode_json_slowly(data) if text else unpack_slowly(data)
    return in_one_call(data, text=text)


def in_one_call(data: bytes, *, text: bool) -> JSON:
    """One value by a decoder in C. Nobody else runs meanwhile, so it holds ``STEP_VALUES`` at most."""
    return decode_json(data) if text else cast("JSON", msgspec.msgpack.decode(data))


def _holds_more(frame: Frame, bounds: Weight) -> bool:
    return heaviest(frame).values > bounds.values and weigh(frame, bounds).values > bounds.values


def unpack_slowly(data: bytes) -> JSON:
    """One MessagePack value, value by value. What is no JSON in it is left to whoever checks the message.

    Raises: ValueError, TypeError, msgspec.DecodeError: not one MessagePack value.
    """
    at, members, missing, is_map = 0, list[object](), 1, False
    outer: list[tuple[list[object], int, bool]] = []
    while True:
        while not missing:
            if not outer:
                if at != len(data):
                    raise ValueError("bytes after the value")
                return cast("JSON", members[0])
            value = dict(zip(members[::2], members[1::2], strict=True)) if is_map else members
            members, missing, is_map = outer.pop()
            members.append(value)
            missing -= 1
        if at >= len(data):
            raise ValueError("the data ends inside a value")
        end = step_over(data, at)
        if is_container(data[at]):
            outer.append((members, missing, is_map))
            members, (missing, is_map) = [], _members(data, at, end)
        else:
            members.append(msgspec.msgpack.decode(data[at:end]))
            missing -= 1
        at = end


def _members(data: bytes, at: int, end: int) -> tuple[int, bool]:
    """How many values follow the head of a container, and whether they are keys and values by turns."""
    first = data[at]
    is_map = first < 0x90 or first >= 0xDE
    count = first & 0x0F if first < 0xA0 else int.from_bytes(data[at + 1 : end], "big")
    return (2 * count if is_map else count), is_map
