"""Frames that hold very much: decoded in small steps to the same message, or refused undecoded."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_query.protocol.json_codec import deep_equal
from session_query.protocol.wire import gentle
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, SERVER_CODECS, Encoding, FrameError
from session_query.protocol.wire.gentle import decode_gently, unpack_slowly
from session_query.protocol.wire.limits import FRAME_VALUES, REQUEST_VALUES
from support.wire_samples import CLIENT_SAMPLES
from support.wire_values import json_values

APPEND: dict[str, Any] = {"type": "append", "id": 1, "session_id": "s", "from_seq": 0}
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def framed(fields: Any, encoding: Encoding) -> str | bytes:
    return json.dumps(fields) if encoding == "json" else msgspec.msgpack.encode(fields)


def gently(frame: str | bytes, encoding: Encoding) -> m.ClientMessage:
    return decode_gently(SERVER_CODECS[encoding], frame)


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Next to nothing counts as very much, so that every way is gone."""
    monkeypatch.setattr(gentle, "STEP_VALUES", 2)


@both_encodings
@pytest.mark.usefixtures("heavy")
@pytest.mark.parametrize("message", CLIENT_SAMPLES.values(), ids=lambda s: type(s).__name__)
def test_every_message_is_the_same(message: m.Message, encoding: Encoding) -> None:
    data = SERVER_CODECS[encoding].encode(message)
    assert gently(data.decode() if encoding == "json" else data, encoding) == message


@both_encodings
@pytest.mark.usefixtures("heavy")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(json_values, max_size=6), session=json_values)
def test_what_is_published_is_the_same(encoding: Encoding, events: Any, session: Any) -> None:
    for fields in (
        {"type": "append", "id": 1, "session_id": "s", "from_seq": 0, "events": events},
        {"type": "attach", "id": 1, "session": session, "events": events},
        {"type": "attach", "id": 1, "session": session, "events": None},
        {"type": "attach", "id": 1, "session": session},
    ):
        frame = framed(fields, encoding)
        message, usual = gently(frame, encoding), SERVER_CODECS[encoding].decode(frame)
        assert type(message) is type(usual)
        for name in message.__struct_fields__:
            assert deep_equal(getattr(message, name), getattr(usual, name))


@given(json_values)
def test_unpacking_value_by_value_gives_the_value(value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    assert deep_equal(unpack_slowly(data), msgspec.msgpack.decode(data))
    for broken in (data[:-1], data + b"\xc0"):
        with pytest.raises((ValueError, msgspec.DecodeError)):
            unpack_slowly(broken)


@pytest.mark.parametrize("count", [3, 15, 16, 65_535, 65_536])
def test_containers_of_every_size_are_unpacked(count: int) -> None:
    for value in (list(range(count)), {str(n): n for n in range(count)}):
        assert unpack_slowly(msgspec.msgpack.encode(value)) == value


WRONG: list[tuple[str, Any]] = [
    ("a field missing", {"type": "append", "id": 1, "session_id": "s", "events": [[]] * 9}),
    (
        "a field too much",
        {"type": "append", "id": 1, "session_id": "s", "from_seq": 0, "events": [], "x": [1] * 9},
    ),
    ("no list", {"type": "append", "id": 1, "session_id": "s", "from_seq": 0, "events": {"a": [1] * 9}}),
    ("a wrong type", {"type": "attach", "id": 1, "session": {}, "events": [1] * 9, "session_id": 5}),
]


@both_encodings
@pytest.mark.usefixtures("heavy")
@pytest.mark.parametrize("fields", [case[1] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_no_message_is_told_with_its_id(fields: Any, encoding: Encoding) -> None:
    with pytest.raises(FrameError) as caught:
        gently(framed(fields, encoding), encoding)
    assert (caught.value.code, caught.value.id) == ("BAD_FRAME", 1)


@pytest.mark.usefixtures("heavy")
def test_what_only_the_slow_decoder_takes_is_taken() -> None:
    deep = "[" * 5_000 + "]" * 5_000
    frame = '{"type":"append","id":4.0,"session_id":"s","from_seq":0,"events":[' + deep + ',"\\ud800",[1,2]]}'
    message = gently(frame, "json")
    assert isinstance(message, m.Append)
    assert (message.id, message.events[1:]) == (4, ["\ud800", [1, 2]])


@pytest.mark.usefixtures("heavy")
@pytest.mark.parametrize(
    "event",
    [b"\xc4\x01x", {1: 2}, float("nan"), msgspec.msgpack.Ext(3, b"x"), [b"x"] * 9_000, {(1, 2): [0] * 9}],
)
def test_packed_values_that_are_no_json_are_refused(event: Any) -> None:
    fields = {"type": "append", "id": 1, "session_id": "s", "from_seq": 0, "events": [[1, 2, 3], event]}
    with pytest.raises(FrameError) as caught:
        gently(msgspec.msgpack.encode(fields), "msgpack")
    assert (caught.value.code, caught.value.id) == ("BAD_FRAME", 1)


@both_encodings
@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"type": "call", "id": 1, "tool": "t", "arguments": [0] * (REQUEST_VALUES + 9)}, True),
        ({"type": "call", "id": 1, "tool": "t", "arguments": ["0"] * 125_000}, False),
        ({"type": "cancel", "id": 1, "reason": "[{," * 500_000}, False),
        (APPEND | {"events": [[0] * 200_000]}, False),
        (APPEND | {"events": [0] * (FRAME_VALUES + 9)}, True),
        (APPEND | {"events": [[]] * 500_001}, True),
    ],
    ids=["call", "many ids", "text alone", "one event", "values", "containers"],
)
def test_too_much_is_refused_undecoded(fields: Any, refused: bool, encoding: Encoding) -> None:
    frame = framed(fields, encoding)
    if not refused:
        assert gently(frame, encoding).id == 1  # type: ignore[union-attr]
        return
    with pytest.raises(FrameError) as caught:
        gently(frame, encoding)
    assert (caught.value.code, caught.value.id) == ("TOO_LARGE", 1)


@both_encodings
def test_no_step_holds_more_than_a_step(encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed to a decoder written in C at once is small, however large the frame is."""
    handed: list[int] = []
    usual = gentle.decode_json

    def decode_json(data: bytes) -> Any:
        handed.append(len(data))
        return usual(data)

    monkeypatch.setattr(gentle, "decode_json", decode_json)
    events = [{"n": n, "of": [0] * 10} for n in range(20_000)] + [[0] * 100_000]
    frame = framed({"type": "append", "id": 1, "session_id": "s", "from_seq": 0, "events": events}, encoding)
    message = gently(frame, encoding)
    assert isinstance(message, m.Append)
    assert message.events == events
    if encoding == "json":
        assert len(handed) == 20_000, "each event by itself, the large one by no C at all"
        assert max(handed) < 100
