"""Counting the arrays and objects of a frame without decoding it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_query.protocol.wire import containers
from session_query.protocol.wire.containers import Weight, head_of, heaviest, weigh

ENDLESS = Weight(10**12, 10**12)

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


def holds(frame: str | bytes) -> int:
    """How many arrays and objects a frame holds, as counted."""
    return weigh(frame, ENDLESS).containers


@pytest.fixture(params=[1, 2, 7, containers.STEP], ids=lambda step: f"step-{step}")
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame is looked at piece by piece, wherever the pieces end."""
    monkeypatch.setattr(containers, "STEP", request.param)


@pytest.mark.usefixtures("step")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values)
def test_the_count_is_exact(value: Any) -> None:
    number = counted(value)
    for frame in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False, indent=1),
        msgspec.msgpack.encode(value),
    ):
        assert holds(frame) == number
        assert heaviest(frame).containers >= number, "the quick look never overlooks"
        assert heaviest(frame).values >= weigh(frame, ENDLESS).values >= number


def test_values_are_what_decoding_takes_its_time_for() -> None:
    for value, number in (([1] * 1000, 1000), ({str(n): 1 for n in range(1000)}, 1000), ("," * 1000, 0)):
        assert weigh(json.dumps(value), ENDLESS).values == number
    assert weigh(msgspec.msgpack.encode([1] * 1000), ENDLESS).values == 1001
    assert weigh(msgspec.msgpack.encode("," * 1000), ENDLESS).values == 1


@pytest.mark.usefixtures("step")
def test_brackets_inside_of_texts_are_none() -> None:
    value = {"text": '["[{' * 100 + "\\", "漢": "漢字" * 1000}
    assert heaviest(json.dumps(value)).containers > 1
    assert holds(json.dumps(value)) == 1
    assert heaviest(msgspec.msgpack.encode(value)).containers > 1
    assert holds(msgspec.msgpack.encode(value)) == 1


def test_large_texts_bytes_and_extensions_are_stepped_over() -> None:
    body = b"\x90" * 70_000
    for size in (31, 255, 65_535, 70_000):
        text = msgspec.msgpack.encode(
            [body[:size].decode("latin-1"), body[:size], msgspec.msgpack.Ext(5, body[:size])]
        )
        assert weigh(text, ENDLESS) == Weight(1, 4)


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
    assert holds(frame) <= 1000


def test_counting_stops_when_it_knows() -> None:
    for frame in (b"\x90" * 2_000_000, "[" * 2_000_000):
        assert 10 < weigh(frame, Weight(10, 10)).containers <= max(11, containers.STEP)


@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
def test_the_id_is_read_without_the_rest(encode: Any) -> None:
    def framed(value: Any) -> str | bytes:
        data: bytes = encode(value)
        return data.decode() if encode is msgspec.json.encode else data

    assert head_of(framed({"type": "call", "arguments": [[]] * 1000, "id": 5})) == (5, "call")
    assert head_of(framed({"type": "call"})) == (None, "call")
    for nothing in (framed({"id": "x"}), framed([]), "[" * 100_000, b"\x91" * 100_000):
        assert head_of(nothing) == (None, None)
