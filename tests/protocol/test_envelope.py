"""SPEC 1.2 and 1.3: the event envelope, contiguity, seeds and forks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from session_query.protocol.envelope import (
    EventError,
    decode_event,
    detach,
    encode_event,
    event_from_json,
    event_to_json,
    first_gap,
    may_fork_at,
    with_seed_marker,
)
from session_query.protocol.event import Event
from session_query.protocol.json_codec import decode_json, encode_json
from session_query.protocol.json_value import JSON
from support.events import event, replace, user
from support.json_values import json_values, nested_dict

GOOD: dict[str, JSON] = {"type": "x/y", "seq": 0, "time": -5, "data": {"a": [1]}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", None),
        ("type", 1),
        ("type", ""),
        ("seq", None),
        ("seq", -1),
        ("seq", 0.5),
        ("seq", True),
        ("seq", "0"),
        ("seq", 2**53),
        ("time", None),
        ("time", 0.5),
        ("time", False),
        ("time", 2**53),
        ("time", -(2**53)),
        ("time", "1"),
        ("ignorable", False),
        ("ignorable", None),
        ("ignorable", 1),
        ("ignorable", "true"),
        ("extra", 1),
        ("surface_op", "append"),
        ("Type", "x"),
        ("", None),
    ],
)
def test_each_rule_refuses(key: str, value: JSON) -> None:
    record = {**GOOD, key: value}
    with pytest.raises(EventError):
        event_from_json(record)
    with pytest.raises(EventError):
        decode_event(encode_json(record))


@pytest.mark.parametrize("key", ["type", "seq", "time", "data"])
def test_required_keys(key: str) -> None:
    record = {k: v for k, v in GOOD.items() if k != key}
    with pytest.raises(EventError):
        event_from_json(record)
    with pytest.raises(EventError):
        decode_event(encode_json(record))


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_an_event_is_an_object(value: JSON) -> None:
    with pytest.raises(EventError):
        event_from_json(value)
    with pytest.raises(EventError):
        decode_event(encode_json(value))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"type":"x","seq":0,"time":0,"data":NaN}',
        b'{"type":"x","seq":0,"time":0,"data":[-0]}',
        b'{"type":"x","seq":-0,"time":0,"data":1}',
        b'{"type":"x","seq":0,"time":0,"data":-0.0}',
        b'{"type":"x","seq":0,"time":0,"data":1e999}',
        b'{"type":"x","seq":0,"time":0,"data":1} x',
    ],
)
def test_bytes_that_are_no_lossless_json(line: bytes) -> None:
    with pytest.raises(EventError):
        decode_event(line)


@pytest.mark.parametrize("data", [float("inf"), -0.0, (1,), {1: 2}, b"x"])
def test_payloads_must_be_lossless(data: object) -> None:
    with pytest.raises(EventError, match="the event holds"):
        event_from_json({**GOOD, "data": data})  # type: ignore[dict-item]  # hostile on purpose


def test_payload_cycles_are_refused() -> None:
    loop: list[JSON] = []
    loop.append(loop)
    with pytest.raises(EventError, match="cycle"):
        event_from_json({**GOOD, "data": loop})


def test_whole_floats_count_as_integers_and_time_may_be_negative() -> None:
    for made in (
        event_from_json({**GOOD, "seq": 4.0, "time": -7.0}),
        decode_event(b'{"type":"x/y","seq":4.0,"time":-7e0,"data":{"a":[1]}}'),
    ):
        assert (made.seq, made.time) == (4, -7)
        assert type(made.seq) is type(made.time) is int


@pytest.mark.parametrize("odd", [None, [], {"op": "x"}, "prepend", 7])
def test_surface_keys_are_kept_as_found(odd: JSON) -> None:
    record: dict[str, JSON] = {**GOOD, "surfaceOp": odd, "sourceEventSeqs": odd, "ignorable": True}
    for made in (event_from_json(record), decode_event(encode_json(record))):
        assert made.surface_op == odd
        assert made.source_event_seqs == odd
        assert made.ignorable is True
        assert event_to_json(made) == record


def test_a_missing_seq_may_be_given() -> None:
    record = {k: v for k, v in GOOD.items() if k != "seq"}
    assert event_from_json(record, default_seq=7).seq == 7
    assert event_from_json(GOOD, default_seq=7).seq == 0


def test_key_order_and_omissions() -> None:
    made = event_from_json(
        {"ignorable": True, "data": None, "time": 1, "seq": 0, "type": "x", "surfaceOp": "append"}
    )
    assert list(event_to_json(made)) == ["type", "seq", "time", "data", "surfaceOp", "ignorable"]
    assert (
        encode_event(made)
        == b'{"type":"x","seq":0,"time":1,"data":null,"surfaceOp":"append","ignorable":true}'
    )
    assert made.source_event_seqs is UNSET


@given(json_values, st.integers(0, 2**53 - 1), st.integers(-(2**53) + 1, 2**53 - 1))
@settings(max_examples=100)
def test_encode_then_decode_gives_the_same_event(data: JSON, seq: int, time: int) -> None:
    made = Event(type="x/y", seq=seq, time=time, data=data, surface_op=data)
    again = decode_event(encode_event(made))
    assert repr(again) == repr(made)
    assert repr(event_from_json(decode_json(encode_event(made)))) == repr(made)


def test_depth_is_no_limit() -> None:
    made = event("x/y", 0, nested_dict(20_000))
    line = encode_event(made)
    assert encode_event(decode_event(line)) == line
    assert encode_event(detach(made)) == line


def test_a_detached_event_shares_nothing() -> None:
    data: dict[str, JSON] = {"a": [1]}
    sources: list[JSON] = [0]
    made = user(3, op=replace(0, 1), sources=sources)
    made = Event(
        type=made.type, seq=3, time=0, data=data, surface_op=made.surface_op, source_event_seqs=sources
    )
    copied = detach(made)
    assert copied == made
    data["a"] = [2]
    sources.append(1)
    assert copied.data == {"a": [1]}
    assert copied.source_event_seqs == [0]
    assert detach(event("x", 0)).surface_op is UNSET


@pytest.mark.parametrize(
    ("seqs", "start", "gap"),
    [
        ([], 0, None),
        ([0, 1, 2], 0, None),
        ([1], 0, 0),
        ([0, 2], 0, 1),
        ([0, 0], 0, 1),
        ([5, 6], 5, None),
        ([5, 7], 5, 1),
        ([4], 5, 0),
    ],
)
def test_contiguity(seqs: list[int], start: int, gap: int | None) -> None:
    assert first_gap([event("x", seq) for seq in seqs], start=start) == gap


def test_a_seed_gets_one_marker_right_after_it() -> None:
    seeded = with_seed_marker([user(0)], time=99)
    assert [(e.type, e.seq) for e in seeded] == [("user/message", 0), ("session/end-seed", 1)]
    assert (seeded[1].time, seeded[1].data) == (99, {})
    assert with_seed_marker(seeded, time=100) == seeded
    assert [(e.type, e.seq) for e in with_seed_marker([], time=1)] == [("session/end-seed", 0)]


@pytest.mark.parametrize(
    ("boundary", "allowed"),
    [(-1, False), (0, True), (1, False), (2, False), (3, True), (4, True), (5, False), (6, False)],
)
def test_a_fork_does_not_end_inside_a_turn(boundary: int, allowed: bool) -> None:
    types = ["user/message", "turn/start", "x/y", "turn/end", "x/y", "turn/start"]
    assert may_fork_at([event(t, i) for i, t in enumerate(types)], boundary) is allowed
