"""A peer's large frame is its own affair: the others are answered while it is looked at, decoded or refused.

Told by order, not by time: another peer is answered between the frame's coming and its answer, it is decoded
in another thread, and no single call into a decoder written in C makes more than a few thousand values.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import msgspec
import pytest
import trio

from session_query.actors.edge import connection, incoming
from session_query.protocol.json_value import JSON
from session_query.protocol.wire import gentle
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Codec, Encoding, Frame
from session_query.protocol.wire.containers import Weight, weigh
from session_query.protocol.wire.limits import FRAME_BYTES
from support.wire_edge import Edge, header, open_edge


@attrs.define
class Others:
    """``answered``: how often so far; ``before``: when the large frame began to be decoded, in ``thread``.

    ``steps``: what each call into C made of it, in values.
    """

    answered: int = 0
    before: int | None = None
    thread: int | None = None
    steps: list[int] = attrs.field(factory=list)


@asynccontextmanager
async def asking_on(edge: Edge, others: Others) -> AsyncIterator[None]:
    """Another peer asks again as soon as it is answered."""
    ended = trio.Event()
    async with edge.peer(hello="read") as peer, trio.open_nursery() as nursery:

        async def ask_on() -> None:
            while not ended.is_set():
                await peer.ask(m.Query(id=1, method="health"))
                others.answered += 1

        nursery.start_soon(ask_on)
        yield
        ended.set()


def publishing(events: list[Any], encoding: Encoding) -> str | bytes:
    fields = {"type": "append", "id": 9, "session_id": "s1", "from_seq": 0, "events": events}
    return json.dumps(fields) if encoding == "json" else msgspec.msgpack.encode(fields)


def calling(arguments: Any, encoding: Encoding) -> str | bytes:
    fields = {"type": "call", "id": 9, "tool": "read", "workspace": "/w", "arguments": arguments}
    return json.dumps(fields) if encoding == "json" else msgspec.msgpack.encode(fields)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Others:
    """Notes when and where a large frame is decoded."""
    others, usual, in_one_call = Others(), incoming.decode_gently, gentle.in_one_call
    decode = Codec.decode

    def decode_gently(*args: Any) -> m.ClientMessage:
        others.before, others.thread = others.answered, threading.get_ident()
        return usual(*args)

    def step(data: bytes, *, text: bool) -> Any:
        others.steps.append(values_in(data.decode() if text else data))
        return in_one_call(data, text=text)

    def whole(codec: Codec[Any], frame: Frame) -> Any:
        if others.thread == threading.get_ident():
            others.steps.append(values_in(frame))
        return decode(codec, frame)

    monkeypatch.setattr(incoming, "decode_gently", decode_gently)
    monkeypatch.setattr(gentle, "in_one_call", step)
    monkeypatch.setattr(Codec, "decode", whole)
    return others


def values_in(frame: Frame) -> int:
    return weigh(frame, Weight(1 << 30, 1 << 30)).values


EVENT = {
    "type": "x",
    "time": 1,
    "data": {"words": ["one", "two", "three"], "more": {"a": 1, "b": 2, "c": [3]}},
}
FRAMES: dict[str, Any] = {
    "many small events": (publishing, [EVENT] * 20_000, "appended"),
    "one event of many values": (publishing, [EVENT | {"data": [{"a": 1}] * 60_000}], "appended"),
    "one event of many keys": (
        publishing,
        [EVENT | {"data": {str(n): n for n in range(300_000)}}],
        "appended",
    ),
    "a call of many keys": (calling, {str(n): n for n in range(400_000)}, "TOO_LARGE"),
    "a call of many numbers": (calling, list(range(1_000_000)), "TOO_LARGE"),
}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", FRAMES)
async def test_others_are_answered_while_a_large_frame_is_decoded(
    name: str, encoding: Encoding, others: Others
) -> None:
    make, held, told = FRAMES[name]
    frame = make(held, encoding)
    assert len(frame) < FRAME_BYTES
    async with open_edge() as edge, edge.peer(encoding) as peer, asking_on(edge, others):
        await peer.ask(m.Attach(id=1, session=header()))
        answer = await peer.ask_raw(frame)
        answered = others.answered
    assert (answer.code if isinstance(answer, m.Error) else m.tag_of(type(answer))) == told
    assert others.before is not None
    assert others.thread != threading.get_ident(), "not in the event loop's thread"
    assert answered > others.before
    assert max(others.steps, default=0) <= gentle.STEP_VALUES


async def test_a_large_frame_of_text_alone_needs_no_thread(others: Others) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        answer = await peer.ask_raw(calling({"text": "x, y [z] and more words" * 4_000}, "json"))
        assert isinstance(answer, m.Result)
        assert others.before is None


LARGE_ANSWERS: dict[str, JSON] = {
    "many events": {"header": {"id": "s"}, "events": [dict(EVENT, seq=seq) for seq in range(30_000)]},
    "one event of many values": {"events": [EVENT | {"data": [{"a": n} for n in range(90_000)]}]},
}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", LARGE_ANSWERS)
async def test_others_are_answered_while_a_large_answer_is_encoded(
    name: str, encoding: Encoding, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, usual, began = threading.get_ident(), connection.encode_gently, list[int]()
    by_msgspec, sizes = Codec.encode_quickly, list[int]()

    def encode(codec: Codec[Any], answer: Any) -> bytes:
        assert threading.get_ident() != loop
        began.append(others.answered)
        return usual(codec, answer)

    def in_the_loop(codec: Codec[Any], message: m.Message) -> bytes | None:
        data = by_msgspec(codec, message)
        if threading.get_ident() == loop and not isinstance(message, m.Part):
            sizes.append(len(data or b""))
        return data

    monkeypatch.setattr(connection, "encode_gently", encode)
    monkeypatch.setattr(Codec, "encode_quickly", in_the_loop)
    async with open_edge() as edge, edge.peer(encoding, hello="read") as peer, asking_on(edge, others):
        edge.service.values["read_session"] = LARGE_ANSWERS[name]
        answer = await peer.ask(m.Query(id=3, method="read_session", params={"session_id": "s1"}))
        answered = others.answered
    assert answer == m.Value(id=3, value=LARGE_ANSWERS[name])
    assert len(began) == 1
    assert answered > began[0]
    assert max(sizes) < 10_000
