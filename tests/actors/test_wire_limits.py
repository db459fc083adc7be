"""Peers that are slow, silent, huge or rude: each costs itself its connection and nobody else anything."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Encoding
from support.raw_websocket import CLOSE, CONTINUATION, PING, PONG, TEXT, RawPeer, frame
from support.wire_edge import Edge, event, header, open_edge
from support.wire_fake import FakeService
from support.wire_samples import CLIENT_SAMPLES, mutilated

Clock = trio.testing.MockClock


def ask(request_id: int, do: str = "", **wish: Any) -> dict[str, Any]:
    arguments = {"do": do, **wish}
    return {"type": "call", "id": request_id, "tool": "read", "arguments": arguments, "workspace": "/w"}


@asynccontextmanager
async def narrow_peer(edge: Edge) -> AsyncIterator[RawPeer]:
    """A peer whose line holds nothing: what it does not read, the server cannot send."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    edge.nursery.start_soon(edge.server.serve_stream, theirs)
    peer = RawPeer(ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.handshake)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.hello)
    yield peer
    await trio.aclose_forcefully(ours)


@asynccontextmanager
async def watched(**settings: Any) -> AsyncIterator[Edge]:
    async with open_edge(**settings) as edge, trio.open_nursery() as watching:
        watching.start_soon(edge.server.watch)
        yield edge
        watching.cancel_scope.cancel()


# ---------------------------------------------------------------- slow readers


async def test_a_peer_that_stops_reading_is_cut_off_after_a_while(autojump_clock: Clock) -> None:
    async with watched(stall_s=30.0, keepalive_s=1e6) as edge, narrow_peer(edge) as peer:
        before = trio.current_time()
        await peer.say(ask(1, "big", n=10))
        await edge.settled()
        assert 30 <= trio.current_time() - before <= 34
        assert edge.server.state.ends == {"slow reader": 1}


async def test_a_slow_but_reading_peer_stays(autojump_clock: Clock) -> None:
    async with watched(stall_s=30.0, keepalive_s=1e6) as edge, narrow_peer(edge) as peer:
        await peer.say(ask(1, "big", n=1_200_000))
        seen = b""
        for _ in range(40):
            await trio.sleep(20)
            seen += await peer.stream.receive_some(40_000)
        assert len(edge.server.connections) == 1
        assert len(seen) > 500_000


async def test_asking_without_reading_ends_by_bytes(autojump_clock: Clock) -> None:
    """Answers wait for room; the small refusals of a flood do not, and end it at twice the bound."""
    settings = {"unsent_bytes": 20_000, "in_flight": 4, "stall_s": 1e6, "keepalive_s": 1e6}
    async with watched(**settings) as edge, narrow_peer(edge) as peer, edge.peer() as bystander:
        for n in range(4):
            await peer.say(ask(n, "big", n=100_000))
        for n in range(4, 2000):
            try:
                await peer.say(ask(n))
            except trio.BrokenResourceError:
                break
        else:
            pytest.fail("nobody stopped the flood")
        assert isinstance(await bystander.ask(m.ToolsRequest(id=1)), m.Tools)
        await trio.sleep(60)
        assert edge.server.state.ends == {"slow reader": 1}


async def test_answers_of_a_slow_reader_wait_unencoded() -> None:
    service = FakeService()
    async with (
        open_edge(service, unsent_bytes=1000, part_bytes=1000, stall_s=1e6) as edge,
        narrow_peer(edge) as peer,
    ):
        for n in range(20):
            await peer.say(ask(n, "big", n=1000))
        await trio.testing.wait_all_tasks_blocked()
        connection = next(iter(edge.server.connections.values()))
        assert service.running == 0
        assert connection._outbox.unsent_bytes <= 3 * 1000
        assert len(connection._running) == 20, "unsent answers hold their places in flight"
        got = [await peer.hear() for _ in range(60)]
        assert {answer["id"] for answer in got} == set(range(20))


async def test_progress_is_left_out_for_a_slow_reader() -> None:
    async with (
        open_edge(unsent_bytes=1000, progress_every_s=1e-9, stall_s=1e6) as edge,
        narrow_peer(edge) as peer,
    ):
        await peer.say({**ask(1, "count", n=5000), "follow": True})
        await trio.testing.wait_all_tasks_blocked()
        connection = next(iter(edge.server.connections.values()))
        assert connection._outbox.unsent_bytes < 2000
        kinds = []
        while not kinds or kinds[-1] != "result":
            kinds.append((await peer.hear())["type"])
        assert 1 < len(kinds) < 50


# ---------------------------------------------------------------- frames


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_frame_above_the_bound_closes_with_1009(encoding: Encoding) -> None:
    async with open_edge(frame_bytes=100_000) as edge:
        async with edge.peer(encoding) as peer:
            await peer.ask(m.Attach(id=1, session=header()))
            fits = await peer.ask(m.Append(id=2, session_id="s1", from_seq=0, events=[event("x" * 90_000)]))
            assert fits.through_seq == 0
            await peer.send(m.Append(id=3, session_id="s1", from_seq=1, events=[event("x" * 110_000)]))
            assert (await peer.closed())[0] == 1009
        await edge.settled()
        assert edge.server.state.ends == {"frame too large": 1}


async def test_the_bound_is_in_bytes_of_utf8() -> None:
    async with open_edge(frame_bytes=100_000) as edge, edge.peer() as peer:
        await peer.ask(m.Attach(id=1, session=header()))
        await peer.send(m.Append(id=2, session_id="s1", from_seq=0, events=[event("你" * 40_000)]))
        assert await peer.closed() == (1009, "a frame may have 100000 bytes")


async def test_a_hundred_megabytes_cost_no_hundred_megabytes() -> None:
    async with open_edge(frame_bytes=1_000_000, close_s=0.1) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        head = bytes([0x81, 0x80 | 127]) + (100 * 2**20).to_bytes(8, "big") + b"\0\0\0\0"
        await ours.send_all(head)
        sent = 0
        try:
            while sent < 100 * 2**20:
                await ours.send_all(b"x" * 65_536)
                sent += 65_536
                await trio.testing.wait_all_tasks_blocked()
        except trio.BrokenResourceError:
            pass
        assert 1_000_000 < sent < 8_000_000
        assert (await peer.end())[0] == 1009


async def test_endless_fragments_are_one_message_and_bounded() -> None:
    async with open_edge(frame_bytes=100_000, close_s=0.1) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        await ours.send_all(frame(TEXT, b'{"type":"cancel","id":1,"reason":"', fin=False))
        for _ in range(200):
            try:
                await ours.send_all(frame(CONTINUATION, b"x" * 1000, fin=False))
            except trio.BrokenResourceError:
                break
        assert (await peer.end())[0] == 1009


async def test_bad_frames_are_answered_up_to_a_point() -> None:
    async with open_edge(bad_frames_max=3) as edge, edge.peer() as peer:
        for _ in range(3):
            await peer.send_raw("{")
            assert (await peer.receive()).code == "BAD_FRAME"
        assert isinstance(await peer.ask(m.ToolsRequest(id=1)), m.Tools)
        await peer.send_raw("{")
        assert (await peer.receive()).code == "BAD_FRAME"
        assert await peer.closed() == (1002, "too many bad frames")


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 500_000,
        '{"type":"append","id":1,"session_id":"s1","from_seq":0,"events":[' + "[" * 200_000,
        '{"type":"cancel","id":1,"reason":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
        '{"type":"call","id":1,"tool":"read","workspace":"/w","arguments":'
        + "[" * 100_000
        + "]" * 100_000
        + "}",
    ],
    ids=["brackets", "open-append", "objects", "arguments"],
)
async def test_nesting_bombs_are_bad_frames_or_work(bomb: str) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send_raw(bomb)
        await peer.send(m.ToolsRequest(id=2))
        answers = [await peer.receive()]
        while answers[-1].id != 2:
            answers.append(await peer.receive())
        assert {answer.code for answer in answers[:-1] if isinstance(answer, m.Error)} <= {
            "BAD_FRAME",
            "TOO_LARGE",
            "INTERNAL",
        }


async def test_msgpack_bombs_are_refused() -> None:
    async with open_edge() as edge, edge.peer("msgpack") as peer:
        for bomb, code in (
            (b"\x91" * 200_000, "TOO_LARGE"),
            (b"\x91" * 100_000, "BAD_FRAME"),
            (b"\x81\xa1a" * 100_000, "TOO_LARGE"),
            (b"\x81\xa1a" * 50_000, "BAD_FRAME"),
            (b"\xdd\xff\xff\xff\xff", "BAD_FRAME"),
            (b"\xdf\xff\xff\xff\xff" * 3, "BAD_FRAME"),
        ):
            assert (await peer.ask_raw(bomb)).code == code


async def test_ten_thousand_pings_are_ten_thousand_pongs() -> None:
    async with open_edge() as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        await ours.send_all(b"".join(frame(PING, n.to_bytes(4, "big")) for n in range(10_000)))
        await ours.send_all(frame(TEXT, msgspec.json.encode({"type": "tools", "id": 1})))
        pongs = 0
        while (got := await peer.next_frame())[0] == PONG:
            assert got[1] == pongs.to_bytes(4, "big")
            pongs += 1
        assert pongs >= 9_000, "the answer may overtake a few"
        await ours.aclose()


# ---------------------------------------------------------------- silence


async def test_a_dead_peer_is_noticed(autojump_clock: Clock) -> None:
    """Half open: the peer's machine has gone without a word, and no pong ever comes."""
    async with watched(keepalive_s=20.0, keepalive_timeout_s=60.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        await peer.say({"type": "attach", "id": 1, "session": header()})
        assert (await peer.hear())["type"] == "attached"
        before = trio.current_time()
        await edge.settled()
        assert 80 <= trio.current_time() - before <= 90
        assert edge.server.state.ends == {"keepalive timeout": 1}
        assert edge.service.sessions["s1"].token_id is None
        frames = [await peer.next_frame(), await peer.next_frame()]
        assert [opcode for opcode, _ in frames] == [PING, CLOSE]


async def test_a_busy_peer_that_answers_late_survives(autojump_clock: Clock) -> None:
    async with watched(keepalive_s=20.0, keepalive_timeout_s=60.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        for _ in range(5):
            await trio.sleep(
                75
            )  # its event loop is stuck: longer than the interval, shorter than the patience
            opcode, payload = await peer.next_frame()
            assert opcode == PING
            await ours.send_all(frame(PONG, payload))
        assert len(edge.server.connections) == 1
        await ours.aclose()


async def test_a_peer_in_the_middle_of_a_large_frame_is_alive(autojump_clock: Clock) -> None:
    async with watched(keepalive_s=20.0, keepalive_timeout_s=60.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        data = frame(TEXT, msgspec.json.encode({"type": "cancel", "id": 1, "reason": "x" * 600}))
        for byte in data:
            await ours.send_all(bytes([byte]))
            await trio.sleep(15)
        await peer.say({"type": "tools", "id": 1})
        assert (await peer.hear())["type"] == "tools"
        await ours.aclose()


async def test_a_pause_of_our_own_is_not_the_peers_silence() -> None:
    """The loop was blocked for minutes; the pong lies in the socket and has not been looked at yet."""
    async with open_edge(keepalive_s=20.0, keepalive_timeout_s=60.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        connection = next(iter(edge.server.connections.values()))
        now = trio.current_time()
        connection.watch(now + 25, edge.nursery)
        opcode, payload = await peer.next_frame()
        assert opcode == PING
        connection.watch(now + 500, edge.nursery)
        await ours.send_all(frame(PONG, payload))
        await trio.testing.wait_all_tasks_blocked()
        connection.link.stream.heard_at = now + 500
        connection.watch(now + 501, edge.nursery)
        connection.watch(now + 502, edge.nursery)
        await peer.say({"type": "tools", "id": 1})
        assert (await peer.hear())["type"] == "tools"
        await ours.aclose()


async def test_a_talking_peer_is_never_pinged(autojump_clock: Clock) -> None:
    async with watched(keepalive_s=20.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        for n in range(20):
            await trio.sleep(15)
            await peer.say({"type": "tools", "id": n})
            assert (await peer.next_frame())[0] == TEXT
        await ours.aclose()


# ---------------------------------------------------------------- sudden ends


async def test_a_client_killed_in_the_middle_of_a_frame() -> None:
    async with open_edge() as edge:
        async with edge.peer() as peer:
            await peer.ask(m.Attach(id=1, session=header()))
            await peer.send(m.Call(id=2, tool="read", arguments={"do": "wait"}, workspace="/w"))
            await trio.testing.wait_all_tasks_blocked()
            whole = frame(TEXT, b'{"type":"detach","id":3,"session_id":"s1"}')
            await peer.stream.send_all(whole[:20])
            await trio.aclose_forcefully(peer.stream)
        await edge.settled()
        assert edge.server.state.ends == {"lost": 1}
        assert edge.service.sessions["s1"].token_id is None
        assert edge.service.running == 0


async def test_a_send_that_is_cancelled_ends_the_connection_without_a_close_frame(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Unknown bytes are on the wire after it: a close frame would be read as part of the answer."""
    async with open_edge(close_s=1.0) as edge, narrow_peer(edge) as peer:
        await peer.say(ask(1, "big", n=50_000))
        await peer.stream.receive_some(10)  # the server is now inside a send
        connection = next(iter(edge.server.connections.values()))
        connection.end(1008, "test")
        await edge.settled()
        assert connection.link.stream.broken
        rest = await peer.stream.receive_some(1_000_000)
        assert rest == b"" or bytes([0x88]) not in rest[-10:]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_hundred_connections_come_and_go_and_leave_nothing() -> None:
    async with open_edge() as edge:
        async with trio.open_nursery() as nursery:

            async def visit(n: int) -> None:
                async with edge.peer("json" if n % 2 else "msgpack", hello="run") as peer:
                    await peer.ask(m.Attach(id=1, session=header(f"s{n}")))
                    await peer.send(m.Call(id=2, tool="read", arguments={"do": "wait"}, workspace="/w"))
                    if n % 3 == 0:
                        await trio.aclose_forcefully(peer.stream)

            for n in range(100):
                nursery.start_soon(visit, n)
        await edge.settled()
        assert edge.service.running == 0
        assert not any(stored.token_id for stored in edge.service.sessions.values())
        assert edge.server.state.unauthenticated == {}


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_mutilated_messages_are_answered_or_refused_and_nothing_crashes(
    encoding: Encoding, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(4711)
    samples = [message for kind, message in CLIENT_SAMPLES.items() if kind is not m.Hello]
    async with (
        open_edge(bad_frames_max=10_000, in_flight=1000) as edge,
        edge.peer(encoding, hello="op") as peer,
    ):
        codes: Counter[str] = Counter()
        for _ in range(600):
            data = mutilated(peer.codec.encode(rng.choice(samples)), rng)
            try:
                await peer.send_raw(data.decode() if encoding == "json" else data)
            except UnicodeDecodeError:
                continue
        await peer.send(m.ToolsRequest(id=999_999))
        while (answer := await peer.receive()).id != 999_999:
            codes[answer.code if isinstance(answer, m.Error) else type(answer).__name__] += 1
        assert codes["BAD_FRAME"] > 100
        assert sum(codes.values()) > 300
        assert "INTERNAL" not in codes
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
