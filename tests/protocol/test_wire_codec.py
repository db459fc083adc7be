"""Frames to messages and back: every message, both encodings, and what hostile frames do."""

from __future__ import annotations

import json
import random

import msgspec
import pytest

from session_query.protocol.json_codec import deep_equal
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import (
    CLIENT_CODECS,
    ENCODINGS,
    SERVER_CODECS,
    Codec,
    Encoding,
    FrameError,
    choose_encoding,
)
from session_query.protocol.wire.codes import WireCode, WireError
from support.wire_samples import CLIENT_SAMPLES, SERVER_SAMPLES, hostile_value, mutilated

SAMPLES = [*CLIENT_SAMPLES.values(), *SERVER_SAMPLES.values()]
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def receiver(message: m.Message, encoding: Encoding) -> Codec:
    return (SERVER_CODECS if type(message) in CLIENT_SAMPLES else CLIENT_CODECS)[encoding]


def as_frame(data: bytes, encoding: Encoding) -> str | bytes:
    return data.decode() if encoding == "json" else data


def frame_of(value: object, encoding: Encoding = "json") -> str | bytes:
    return json.dumps(value) if encoding == "json" else msgspec.msgpack.encode(value)


def refused(frame: str | bytes, encoding: Encoding = "json") -> FrameError:
    with pytest.raises(FrameError) as caught:
        SERVER_CODECS[encoding].decode(frame)
    return caught.value


def test_the_samples_cover_every_message() -> None:
    assert set(CLIENT_SAMPLES) == set(m.CLIENT_MESSAGES)
    assert set(SERVER_SAMPLES) == set(m.SERVER_MESSAGES)


@both_encodings
@pytest.mark.parametrize("message", SAMPLES, ids=lambda s: type(s).__name__)
def test_every_message_survives_the_wire(message: m.Message, encoding: Encoding) -> None:
    codec = receiver(message, encoding)
    frame = as_frame(codec.encode(message), encoding)
    assert codec.decode(frame) == message
    assert codec.decode_slowly(frame) == message


@both_encodings
@pytest.mark.parametrize("message", SAMPLES, ids=lambda s: type(s).__name__)
def test_unknown_fields_are_refused_everywhere(message: m.Message, encoding: Encoding) -> None:
    codec = receiver(message, encoding)
    fields = msgspec.to_builtins(message) | {"surplus": 1}
    with pytest.raises(FrameError) as caught:
        codec.decode(frame_of(fields, encoding))
    assert caught.value.code is WireCode.BAD_FRAME


def test_null_and_absent_are_one_for_optional_fields() -> None:
    codec = SERVER_CODECS["json"]
    given = codec.decode('{"type":"attach","id":1,"session":{},"events":null}')
    assert given == codec.decode('{"type":"attach","id":1,"session":{}}')


@both_encodings
def test_a_frame_of_the_other_kind_is_refused(encoding: Encoding) -> None:
    other: Encoding = "msgpack" if encoding == "json" else "json"
    frame = as_frame(SERVER_CODECS[other].encode(CLIENT_SAMPLES[m.Detach]), other)
    assert refused(frame, encoding).code is WireCode.BAD_FRAME


@both_encodings
@pytest.mark.parametrize(
    ("fields", "code", "frame_id"),
    [
        ({"type": "dance", "id": 3}, WireCode.UNKNOWN_MESSAGE, 3),
        ({"type": "welcome", "id": 3}, WireCode.UNKNOWN_MESSAGE, 3),
        ({"type": 5, "id": 3}, WireCode.BAD_FRAME, 3),
        ({"id": 3}, WireCode.BAD_FRAME, 3),
        ({"type": "detach", "id": 3}, WireCode.BAD_FRAME, 3),
        ({"type": "detach", "id": 3, "session_id": 4}, WireCode.BAD_FRAME, 3),
        ({"type": "detach", "id": -1, "session_id": "s"}, WireCode.BAD_FRAME, None),
        ({"type": "detach", "id": 2**53, "session_id": "s"}, WireCode.BAD_FRAME, None),
        ({"type": "detach", "id": True, "session_id": "s"}, WireCode.BAD_FRAME, None),
        ({"type": "detach", "id": "3", "session_id": "s"}, WireCode.BAD_FRAME, None),
        ({"type": "detach", "id": 1.5, "session_id": "s"}, WireCode.BAD_FRAME, None),
        ({"type": "call", "id": 3, "tool": "t", "arguments": {}, "deadline_ms": 0}, WireCode.BAD_FRAME, 3),
        ({"type": "append", "id": 3, "session_id": "s", "from_seq": -1, "events": []}, WireCode.BAD_FRAME, 3),
        ({"type": "append", "id": 3, "session_id": "s", "from_seq": 0, "events": {}}, WireCode.BAD_FRAME, 3),
        ([], WireCode.BAD_FRAME, None),
        (None, WireCode.BAD_FRAME, None),
        ("hello", WireCode.BAD_FRAME, None),
    ],
)
def test_defects_are_told_with_the_id_they_belong_to(
    fields: object, code: WireCode, frame_id: int | None, encoding: Encoding
) -> None:
    error = refused(frame_of(fields, encoding), encoding)
    assert (error.code, error.id) == (code, frame_id)


def test_a_whole_float_counts_as_an_integer() -> None:
    message = SERVER_CODECS["json"].decode(
        '{"type":"append","id":4.0,"session_id":"s","from_seq":2e1,"events":[]}'
    )
    assert message == m.Append(id=4, session_id="s", from_seq=20, events=[])


@pytest.mark.parametrize("depth", [100, 5_000, 100_000])
def test_json_frames_nest_as_deep_as_they_like(depth: int) -> None:
    frame = '{"type":"cancel","id":1,"reason":' + "[" * depth + "7" + "]" * depth + "}"
    message = SERVER_CODECS["json"].decode(frame)
    assert isinstance(message, m.Cancel)
    assert SERVER_CODECS["json"].encode(message).decode() == frame


@pytest.mark.parametrize(
    "bomb", ["[" * 100_000, '{"type":' * 50_000, '{"type":"cancel","id":1,"reason":' + "[{}," * 50_000]
)
def test_an_unclosed_nesting_bomb_is_a_bad_frame(bomb: str) -> None:
    assert refused(bomb).code is WireCode.BAD_FRAME


def test_a_msgpack_nesting_bomb_is_a_bad_frame() -> None:
    fields = msgspec.msgpack.encode({"type": "cancel", "id": 1})
    bomb = b"\x83" + fields[1:] + b"\xa6reason" + b"\x91" * 100_000 + b"\x01"
    assert refused(bomb, "msgpack").code is WireCode.BAD_FRAME
    assert refused(b"\x91" * 100_000, "msgpack").code is WireCode.BAD_FRAME
    assert refused(b"\xdd\xff\xff\xff\xff", "msgpack").code is WireCode.BAD_FRAME


def test_a_value_too_deep_for_msgpack_is_told_so_and_fits_json() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    message = m.Value(id=1, value=deep)  # type: ignore[arg-type]
    with pytest.raises(WireError) as caught:
        CLIENT_CODECS["msgpack"].encode(message)
    assert caught.value.code is WireCode.TOO_LARGE
    assert CLIENT_CODECS["json"].encode(message).count(b"[") == 5_001


def test_lone_surrogates_come_in_and_leave_as_replacement_characters() -> None:
    codec = SERVER_CODECS["json"]
    message = codec.decode(r'{"type":"cancel","id":1,"reason":{"a\udc00":["\ud800x","😀"]}}')
    assert isinstance(message, m.Cancel)
    assert message.reason == {"a\udc00": ["\ud800x", "😀"]}
    for encoding in ENCODINGS:
        error = m.Error(
            code="X", message="\ud800", id=1, abort=m.Abort(kind="cancelled", reason=message.reason)
        )
        frame = as_frame(CLIENT_CODECS[encoding].encode(error), encoding)
        answer = CLIENT_CODECS[encoding].decode(frame)
        assert isinstance(answer, m.Error)
        assert answer.abort is not None
        assert (answer.message, answer.abort.reason) == ("\ufffd", {"a\ufffd": ["\ufffdx", "😀"]})


def test_long_integers_pass_in_json_and_become_floats_in_msgpack() -> None:
    value = [10**40, -(10**400), 2**64 - 1, -(2**63)]
    text = CLIENT_CODECS["json"].encode(m.Value(id=1, value=value)).decode()
    assert CLIENT_CODECS["json"].decode(text) == m.Value(id=1, value=value)
    packed = CLIENT_CODECS["msgpack"].decode(CLIENT_CODECS["msgpack"].encode(m.Value(id=1, value=value)))
    assert packed == m.Value(id=1, value=[1e40, -1.7976931348623157e308, 2**64 - 1, -(2**63)])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "0x1", "01", "1" * 5000])
def test_numbers_that_are_not_json_are_bad_frames(number: str) -> None:
    assert refused(f'{{"type":"cancel","id":1,"reason":{number}}}').code is WireCode.BAD_FRAME


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        b"raw",
        {1: 2},
        {None: 1},
        {"a": [b""]},
        msgspec.msgpack.Ext(5, b"x"),
        {"x": {2.5: 1}},
    ],
)
def test_msgpack_carries_json_values_only(value: object) -> None:
    for fields in (
        {"type": "cancel", "id": 9, "reason": value},
        {"type": "query", "id": 9, "method": "m", "params": [value]},
    ):
        error = refused(msgspec.msgpack.encode(fields), "msgpack")
        assert (error.code, error.id) == (WireCode.BAD_FRAME, 9)


def test_a_defect_does_not_quote_the_peer_at_length() -> None:
    error = refused(json.dumps({"type": "detach", "id": 1, "session_id": "s", "x" * 100_000: 1}))
    assert len(error.message) < 300


@both_encodings
def test_mutilated_frames_decode_or_are_refused_with_a_code(encoding: Encoding) -> None:
    rng = random.Random(20310)
    seen: set[str] = set()
    for _ in range(4_000):
        message = rng.choice(SAMPLES)
        codec = receiver(message, encoding)
        data = mutilated(codec.encode(message), rng)
        try:
            frame = data.decode() if encoding == "json" else data
        except UnicodeDecodeError:
            continue  # not a text frame: the transport refuses it
        try:
            seen.add(type(codec.decode(frame)).__name__)
        except FrameError as error:
            seen.add(error.code)
    assert {"BAD_FRAME", "Call"} <= seen
    assert seen <= {"BAD_FRAME", "UNKNOWN_MESSAGE"} | {type(sample).__name__ for sample in SAMPLES}


@both_encodings
def test_hostile_values_survive_or_are_refused(encoding: Encoding) -> None:
    rng = random.Random(7)
    codec = CLIENT_CODECS[encoding]
    for _ in range(1_000):
        value = hostile_value(rng)
        again = codec.decode(as_frame(codec.encode(m.Value(id=1, value=value)), encoding))
        assert isinstance(again, m.Value)
        if "\\ud" not in json.dumps(value) and encoding == "json":
            assert deep_equal(again.value, value)


def test_the_fast_and_the_slow_way_agree() -> None:
    rng = random.Random(99)
    codec = SERVER_CODECS["json"]
    compared = 0
    for _ in range(6_000):
        data = mutilated(codec.encode(rng.choice(list(CLIENT_SAMPLES.values()))), rng)
        try:
            frame = data.decode()
        except UnicodeDecodeError:
            continue
        quick = codec.decode_quickly(frame)
        if quick is not None:
            assert codec.decode_slowly(frame) == quick
            compared += 1
    assert compared > 50


@pytest.mark.parametrize(
    ("offered", "encoding"),
    [
        ((), "json"),
        (("session-query.v1.json",), "json"),
        (("session-query.v1.msgpack", "session-query.v1.json"), "msgpack"),
        (("session-query.v2.json", "session-query.v1.msgpack"), "msgpack"),
        (("chat",), None),
        (("session-query.v2.json",), None),
    ],
)
def test_the_subprotocol_picks_the_encoding(offered: tuple[str, ...], encoding: str | None) -> None:
    assert choose_encoding(offered) == encoding
