"""Counting the arrays and objects of a frame without decoding it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.wire.containers import frame_id, holds_more, may_hold_more

texts = st.text() | st.sampled_from(['"', "\\", '\\"[', "[" * 9, "}{", "漢字", "\u0080\x9f"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(texts, inner, max_size=20),
    max_leaves=60,
)


def counted(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(counted, value.values()))
    return 1 + sum(map(counted, value)) if isinstance(value, list) else 0


@given(values)
def test_the_count_is_exact(value: Any) -> None:
    number = counted(value)
    for frame in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False, indent=1),
        msgspec.msgpack.encode(value),
    ):
        assert not holds_more(frame, number)
        assert number == 0 or holds_more(frame, number - 1)
        assert number == 0 or may_hold_more(frame, number - 1), "the quick look never overlooks"


def test_brackets_inside_of_texts_are_none() -> None:
    value = {"text": '["[{' * 100 + "\\", "漢": "漢字" * 1000}
    assert may_hold_more(json.dumps(value), 1)
    assert not holds_more(json.dumps(value), 1)
    assert may_hold_more(msgspec.msgpack.encode(value), 1)
    assert not holds_more(msgspec.msgpack.encode(value), 1)


def test_large_texts_bytes_and_extensions_are_stepped_over() -> None:
    body = b"\x90" * 70_000
    for size in (31, 255, 65_535, 70_000):
        text = msgspec.msgpack.encode(
            [body[:size].decode("latin-1"), body[:size], msgspec.msgpack.Ext(5, body[:size])]
        )
        assert not holds_more(text, 1)
        assert holds_more(text, 0)


@pytest.mark.parametrize(
    "frame",
    [
        '"' + '\\"' * 500_000,
        '"\\' * 500_000,
        '"' * 500_001,
        "[" * 1000 + '"' + "\\" * 500_001,
        b"\xdb\xff\xff\xff\xff",
        b"\xc1" * 9,
    ],
    ids=lambda frame: str(frame[:9]),
)
def test_hostile_frames_are_gone_through_once(frame: str | bytes) -> None:
    assert not holds_more(frame, 1000)


def test_counting_stops_when_it_knows() -> None:
    assert holds_more(b"\x90" * 2_000_000, 10)


@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
def test_the_id_is_read_without_the_rest(encode: Any) -> None:
    def framed(value: Any) -> str | bytes:
        data: bytes = encode(value)
        return data.decode() if encode is msgspec.json.encode else data

    assert frame_id(framed({"type": "call", "arguments": [[]] * 1000, "id": 5})) == 5
    assert frame_id(framed({"type": "call"})) is None
    assert frame_id(framed({"id": "x"})) is None
    assert frame_id(framed([])) is None
    assert frame_id("[" * 100_000) is None
    assert frame_id(b"\x91" * 100_000) is None
