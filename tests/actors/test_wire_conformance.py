"""RFC 6455 as a foreign client sees it: fragments, control frames, close codes, UTF-8. Byte by byte."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from support.raw_websocket import BINARY, CLOSE, CONTINUATION, HANDSHAKE, PING, PONG, TEXT, RawPeer, frame
from support.wire_edge import Edge, open_edge

Clock = trio.testing.MockClock
TOOLS = msgspec.json.encode({"type": "tools", "id": 1})


@asynccontextmanager
async def raw_peer(edge: Edge, *, hello: bool = True) -> AsyncIterator[RawPeer]:
    ours, theirs = trio.testing.memory_stream_pair()
    edge.nursery.start_soon(edge.server.serve_stream, theirs)
    peer = RawPeer(ours)
    assert (await peer.handshake()).startswith(b"HTTP/1.1 101")
    if hello:
        assert (await peer.hello())["type"] == "welcome"
    yield peer
    await trio.aclose_forcefully(ours)


async def test_the_handshake_is_the_one_of_the_standard() -> None:
    async with open_edge() as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        head = (await RawPeer(ours).handshake()).lower()
        assert b"sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=" in head
        assert b"sec-websocket-protocol: session-query.v1.json" in head
        assert b"sec-websocket-extensions" not in head
        await ours.aclose()


@pytest.mark.parametrize(
    "request_text",
    [
        HANDSHAKE.replace("Version: 13", "Version: 8"),
        HANDSHAKE.replace("Upgrade: websocket\r\n", ""),
        HANDSHAKE.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
        HANDSHAKE.replace("GET / ", "POST / "),
    ],
    ids=["version", "upgrade", "key", "method"],
)
async def test_a_broken_handshake_is_refused(request_text: str, autojump_clock: Clock) -> None:
    async with open_edge() as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        try:
            head = await peer.handshake(request_text)
        except EOFError:
            head = b"closed"
        assert not head.startswith(b"HTTP/1.1 101"), head
        await ours.aclose()


async def test_a_fragmented_message_is_one_message() -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        pieces = [TOOLS[:5], TOOLS[5:5], TOOLS[5:9], TOOLS[9:]]
        for n, piece in enumerate(pieces):
            await peer.stream.send_all(frame(TEXT if n == 0 else CONTINUATION, piece, fin=n == 3))
            await peer.stream.send_all(frame(PING, b"between"))  # control frames may stand between fragments
        seen = [await peer.next_frame() for _ in range(5)]
        assert [payload for opcode, payload in seen if opcode == PONG] == [b"between"] * 4
        answers = [msgspec.json.decode(payload) for opcode, payload in seen if opcode == TEXT]
        assert [answer["type"] for answer in answers] == ["tools"]


async def test_a_frame_may_arrive_byte_by_byte() -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        for byte in frame(TEXT, TOOLS):
            await peer.stream.send_all(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()
        assert (await peer.hear())["type"] == "tools"


async def test_many_frames_may_arrive_at_once() -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        many = b"".join(frame(TEXT, msgspec.json.encode({"type": "tools", "id": n})) for n in range(50))
        await peer.stream.send_all(many)
        assert sorted([(await peer.hear())["id"] for _ in range(50)]) == list(range(50))


async def test_a_code_point_may_be_cut_by_a_fragment() -> None:
    message = msgspec.json.encode({"type": "cancel", "id": 1, "reason": "héllo 你好 𝄞"})
    async with open_edge() as edge, raw_peer(edge) as peer:
        for cut in range(1, len(message)):
            await peer.stream.send_all(
                frame(TEXT, message[:cut], fin=False) + frame(CONTINUATION, message[cut:])
            )
        await peer.stream.send_all(frame(TEXT, TOOLS))
        assert (await peer.hear())["type"] == "tools"


@pytest.mark.parametrize("length", [0, 1, 125])
async def test_pings_are_answered_with_their_payload(length: int) -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(PING, b"p" * length))
        assert await peer.next_frame() == (PONG, b"p" * length)


async def test_unasked_pongs_are_ignored() -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(PONG, b"nobody asked") + frame(TEXT, TOOLS))
        assert (await peer.hear())["type"] == "tools"


PROTOCOL_ERRORS = {
    "unmasked": frame(TEXT, TOOLS, masked=False),
    "reserved bit": frame(TEXT, TOOLS, rsv=4),
    "reserved data opcode": frame(3, TOOLS),
    "reserved control opcode": frame(11, b""),
    "long ping": frame(PING, b"p" * 126),
    "fragmented ping": frame(PING, b"p", fin=False),
    "continuation of nothing": frame(CONTINUATION, TOOLS),
    "text inside a fragmented text": frame(TEXT, b"{", fin=False) + frame(TEXT, TOOLS),
    "close with half a code": frame(CLOSE, b"\x03"),
    "close with a reserved code": frame(CLOSE, (1005).to_bytes(2, "big")),
    "close with a code below 1000": frame(CLOSE, (999).to_bytes(2, "big")),
}


@pytest.mark.parametrize("name", PROTOCOL_ERRORS)
async def test_protocol_errors_close_with_1002(name: str, autojump_clock: Clock) -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(PROTOCOL_ERRORS[name])
        code, _ = await peer.end()
        assert code == 1002
        await edge.settled()


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\xaf",
        b'{"type":"tools","id":1}\xfe',
        b"\xe4\xbd",
    ],
)
async def test_text_that_is_no_utf8_closes_with_1007(payload: bytes, autojump_clock: Clock) -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(TEXT, payload))
        code, _ = await peer.end()
        assert code == 1007


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999])
async def test_a_close_is_answered_with_its_code(code: int, autojump_clock: Clock) -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(CLOSE, code.to_bytes(2, "big") + "tschüß".encode()))
        assert (await peer.end())[0] == code


async def test_a_close_without_a_code_is_a_close(autojump_clock: Clock) -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(CLOSE))
        assert (await peer.end())[0] in (1000, 1005)


async def test_binary_on_a_text_connection_is_a_bad_frame() -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(BINARY, TOOLS))
        assert (await peer.hear())["code"] == "BAD_FRAME"
        await peer.stream.send_all(frame(TEXT, TOOLS))
        assert (await peer.hear())["type"] == "tools"


async def test_an_empty_message_is_a_bad_frame() -> None:
    async with open_edge() as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(TEXT))
        assert (await peer.hear())["code"] == "BAD_FRAME"


async def test_a_ping_after_our_close_breaks_nothing(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_edge(bad_frames_max=1) as edge, raw_peer(edge) as peer:
        await peer.stream.send_all(frame(TEXT, b"x") * 2)
        await trio.testing.wait_all_tasks_blocked()  # the close frame is out
        await peer.stream.send_all(frame(PING, b"still there?"))
        assert await peer.end() == (1002, "too many bad frames")
        await edge.settled()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("seed", range(6))
async def test_random_bytes_end_connections_and_nothing_else(
    seed: int, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(seed)
    async with open_edge(close_s=0.1) as edge, raw_peer(edge) as bystander:
        for _ in range(25):
            async with raw_peer(edge, hello=rng.random() < 0.7) as peer:
                for _ in range(rng.randint(1, 5)):
                    payload = rng.choice(
                        [TOOLS, rng.randbytes(rng.randint(0, 200)), b'{"type":"cancel","id":1}']
                    )
                    data = frame(
                        rng.choice([TEXT, TEXT, BINARY, CONTINUATION, PING, PONG, CLOSE, rng.randrange(16)]),
                        payload,
                        fin=rng.random() < 0.9,
                        masked=rng.random() < 0.9,
                        rsv=rng.choice([0, 0, 0, 0, 1, 2, 4]),
                    )
                    if rng.random() < 0.2:
                        data = data[: rng.randint(0, len(data))]
                    try:
                        await peer.stream.send_all(data)
                    except trio.BrokenResourceError:
                        break
        await bystander.stream.send_all(frame(TEXT, TOOLS))
        assert (await bystander.hear())["type"] == "tools"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
