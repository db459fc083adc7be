"""Values that hold very much: encoded in small steps to the same bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings

from session_query.protocol.wire import gentle_encode
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import CLIENT_CODECS, ENCODINGS, SERVER_CODECS, Encoding
from session_query.protocol.wire.gentle_encode import encode_gently
from support.wire_values import json_values

both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def gently(value: Any, encoding: Encoding) -> bytes:
    return encode_gently(SERVER_CODECS[encoding], m.Value(id=7, value=value))


def plainly(value: Any, encoding: Encoding) -> bytes:
    return SERVER_CODECS[encoding].encode(m.Value(id=7, value=value))


@both_encodings
@pytest.mark.parametrize("step", [0, 1, 2, 5, 1_000])
@settings(max_examples=60)
@given(value=json_values)
def test_the_bytes_are_the_encoders(encoding: Encoding, step: int, value: Any) -> None:
    before, gentle_encode.STEP_VALUES = gentle_encode.STEP_VALUES, step  # type: ignore[misc]
    try:
        assert gently(value, encoding) == plainly(value, encoding)
    finally:
        gentle_encode.STEP_VALUES = before  # type: ignore[misc]


@both_encodings
@pytest.mark.parametrize("size", [15, 16, 65_535, 65_536])
def test_lists_and_mappings_of_every_form_of_length(encoding: Encoding, size: int) -> None:
    big = ["x" * 300] * size
    value = {"events": big, "names": {str(key): big[: key % 3] for key in range(size)}}
    assert gently(value, encoding) == plainly(value, encoding)


@both_encodings
def test_a_large_answer_is_encoded_in_steps(encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    events = [{"seq": seq, "data": {"text": "é" * rng.randrange(900)}} for seq in range(20_000)]
    value = {"header": {"id": "s"}, "events": events, "title": None}
    form = gentle_encode._FORMS[encoding]
    pieces = list(gentle_encode._pieces(form, value))
    assert len(pieces) > 20
    assert max(map(len, pieces)) < 8_000_000
    assert CLIENT_CODECS[encoding].decode(
        gently(value, encoding) if encoding == "msgpack" else gently(value, encoding).decode()
    ) == m.Value(id=7, value=value)


@both_encodings
def test_lone_surrogates_come_as_from_the_careful_encoder(encoding: Encoding) -> None:
    value = {"events": [{"text": "a\ud800b"}] * 30_000}
    assert gently(value, encoding) == plainly(value, encoding)
    assert "�".encode() in gently(value, encoding)


def test_depth_costs_no_more_than_the_careful_encoder() -> None:
    value: Any = ["x"] * 30_000
    for _ in range(5_000):
        value = [value]
    assert gently(value, "json") == plainly(value, "json")
