"""Taking plain messages out of the bytes changes nothing: what arrives, in which order, and how it ends."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio_websocket as ws

from session_query.actors.counted_stream import CountedStream
from session_query.actors.edge.intake import PLAIN_BYTES_MAX, Intake, Reading, unmasked
from session_query.actors.edge.link import Link, LinkClosed, open_link
from session_query.actors.edge.server_config import ServerConfig
from support.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    HANDSHAKE,
    PING,
    PONG,
    TEXT,
    RawPeer,
    frame,
)
from support.wire_edge import TOKENS

BOUND = 200_000
CONFIG = ServerConfig(
    tokens=TOKENS,
    frame_bytes=BOUND,
    close_s=0.1,
)


@attrs.define(eq=False)
class Heard:
    """What one side came to: messages, the close as its own side sees it, frames the peer got."""

    messages: list[str | bytes] = attrs.field(factory=list)
    code: int | None = None
    reason: str = ""
    frames: list[tuple[int, bytes]] = attrs.field(factory=list)


async def _send(stream: trio.abc.Stream, pieces: list[bytes]) -> None:
    try:
        for piece in pieces:
            await stream.send_all(piece)
            await trio.testing.wait_all_tasks_blocked()
        if isinstance(stream, trio.StapledStream):
            await stream.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


MemoryStream = trio.StapledStream[trio.abc.SendStream, trio.abc.ReceiveStream]


async def _frames(peer: RawPeer, heard: Heard) -> None:
    try:
        while True:
            heard.frames.append(await peer.next_frame())
    except EOFError:
        return


async def _through_link(pieces: list[bytes]) -> Heard:
    """The pieces, sent after the handshake (the first with it), as a ``Link`` takes them."""
    heard = Heard()
    ours, theirs = trio.testing.memory_stream_pair()

    async def serve() -> None:
        async with open_link(CountedStream(theirs), CONFIG) as link:
            try:
                while True:
                    heard.messages.append(await link.receive())
            except LinkClosed as closed:
                heard.code, heard.reason = closed.code, closed.reason

    await _talk(serve, ours, pieces, heard)
    return heard


async def _through_library(pieces: list[bytes]) -> Heard:
    """The same bytes through the library alone."""
    heard = Heard()
    ours, theirs = trio.testing.memory_stream_pair()

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            stream = CountedStream(theirs)
            request = await ws.wrap_server_stream(
                nursery, stream, max_message_size=BOUND, receive_buffer_size=CONFIG.receive_buffer_bytes
            )
            socket = await request.accept()
            try:
                while True:
                    message = await socket.get_message()
                    heard.messages.append(message if isinstance(message, str) else bytes(message))
            except ws.ConnectionClosed as closed:
                reason = closed.reason
                heard.code = 1006 if reason is None else reason.code
                heard.reason = "" if reason is None else reason.reason or ""
            nursery.cancel_scope.cancel()
        await trio.aclose_forcefully(theirs)

    await _talk(serve, ours, pieces, heard)
    return heard


async def _talk(
    serve: Callable[[], Awaitable[None]], ours: MemoryStream, pieces: list[bytes], heard: Heard
) -> None:
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            peer = RawPeer(ours)
            first, *rest = pieces or [b""]
            await peer.handshake()
            nursery.start_soon(_frames, peer, heard)
            await _send(ours, [first, *rest])


def _frame(rng: random.Random) -> bytes:
    """A frame, mostly good; sometimes with one of the faults there are."""
    size = rng.choice([0, 1, 5, 125, 126, 300, 70_000, PLAIN_BYTES_MAX, PLAIN_BYTES_MAX + 1])
    if size > 300 and rng.random() < 0.7:
        size = rng.randrange(60)
    kind = rng.choices(
        [TEXT, BINARY, CONTINUATION, PING, PONG, CLOSE, rng.randrange(16)], [8, 4, 4, 3, 1, 0.3, 0.2]
    )[0]
    text = "".join(rng.choices("abc é你𝄞\n", k=size)) if kind in (TEXT, CONTINUATION) else ""
    payload = text.encode()[:size] if text and rng.random() < 0.05 else text.encode() or rng.randbytes(size)
    if kind == TEXT and not text:
        payload = b""
    if kind in (PING, PONG, CLOSE):
        payload = payload[: rng.choice([0, 5, 125, 125, 130])] if kind != CLOSE else b"\x03\xe8bye"
    return frame(
        kind, payload, fin=rng.random() < 0.75 or kind in (PING, PONG, CLOSE),
        masked=rng.random() < 0.99, rsv=0 if rng.random() < 0.99 else rng.choice([1, 2, 4]),
    )  # fmt: skip


def _cut(data: bytes, rng: random.Random) -> list[bytes]:
    """The bytes in pieces of any size, down to single ones near the beginning."""
    pieces, at = [], 0
    while at < len(data):
        size = rng.choice([1, 2, 3, 7, 50, 1_000, 100_000])
        if len(pieces) > 60:
            size = max(size, 20_000)
        pieces.append(data[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("seed", range(60))
async def test_any_frames_in_any_pieces_come_as_from_the_library_alone(seed: int) -> None:
    rng = random.Random(seed)
    data = b"".join(_frame(rng) for _ in range(rng.randint(1, 12)))
    if rng.random() < 0.2:
        data = data[: rng.randrange(len(data) + 1)]
    pieces = _cut(data, rng)
    ours, library = await _through_link(pieces), await _through_library(pieces)
    assert ours.messages == library.messages
    assert ours.code == library.code
    assert [one for one in ours.frames if one[0] == PONG] == [one for one in library.frames if one[0] == PONG]


def test_the_frames_drawn_reach_every_kind_of_end_and_of_message() -> None:
    """Else the test above would prove little."""
    kinds = set()
    for seed in range(60):
        rng = random.Random(seed)
        for _ in range(rng.randint(1, 12)):
            kinds.add(_frame(rng)[0])
    assert {0x81, 0x82, 0x01, 0x02, 0x00, 0x80, 0x89, 0x8A, 0x88} <= kinds


@asynccontextmanager
async def _link() -> AsyncIterator[tuple[Link, RawPeer]]:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        peer = RawPeer(ours)
        nursery.start_soon(peer.handshake)
        async with open_link(CountedStream(theirs), CONFIG) as link:
            yield link, peer


async def test_a_message_sent_with_the_request_is_not_lost() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        bird = frame(TEXT, b"bird")
        nursery.start_soon(ours.send_all, HANDSHAKE.encode() + frame(TEXT, b"early") + bird[:3])
        async with open_link(CountedStream(theirs), CONFIG) as link:
            assert await link.receive() == "early"
            nursery.start_soon(ours.send_all, bird[3:])
            assert await link.receive() == "bird"


@pytest.mark.parametrize("long_form", [126, 127])
async def test_a_length_in_a_form_too_long_is_a_fault(long_form: int) -> None:
    async with _link() as (link, peer):
        size = (5).to_bytes(2 if long_form == 126 else 8, "big")
        await peer.stream.send_all(bytes([0x81, 0x80 | long_form]) + size + b"\0\0\0\0" + b"hello")
        with pytest.raises(LinkClosed) as closed:
            await link.receive()
        assert closed.value.code == 1002


async def test_a_cancelled_receive_loses_nothing() -> None:
    messages = [b"one", b"two", b"x" * 70_000, b"three", b"four"]
    data = b"".join(frame(TEXT, message) for message in messages[:2])
    data += frame(TEXT, b"begun ", fin=False) + frame(PING, b"?") + frame(CONTINUATION, b"ended")
    data += b"".join(frame(TEXT, message) for message in messages[2:])
    wanted = ["one", "two", "begun ended", "x" * 70_000, "three", "four"]
    async with _link() as (link, peer), trio.open_nursery() as nursery:

        async def drip() -> None:
            for at in range(0, len(data), 997):
                await peer.stream.send_all(data[at : at + 997])
                await trio.lowlevel.checkpoint()

        nursery.start_soon(drip)
        got: list[str | bytes] = []
        turns = 0
        while len(got) < len(wanted):
            with trio.CancelScope() as scope:
                turns += 1
                if turns % 3:
                    nursery.start_soon(_cancel_soon, scope)
                got.append(await link.receive())
        assert got == wanted


async def _cancel_soon(scope: trio.CancelScope) -> None:
    await trio.lowlevel.checkpoint()
    scope.cancel(reason="the test")


async def test_a_peer_that_sends_without_end_leaves_the_loop_turns() -> None:
    async with _link() as (link, peer):
        await peer.stream.send_all(frame(TEXT, b"x") * 500)
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            for _ in range(500):
                await link.receive()
            assert turns >= 450
            nursery.cancel_scope.cancel()


async def test_a_peer_that_reads_no_pongs_is_not_read_without_bound() -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()  # a send waits until it is received
    async with trio.open_nursery() as nursery:
        peer = RawPeer(ours)
        nursery.start_soon(peer.handshake)
        async with open_link(CountedStream(theirs), CONFIG) as link:
            nursery.start_soon(link.receive)
            sent = 0

            async def ping() -> None:
                nonlocal sent
                for _ in range(1_000):
                    await ours.send_all(frame(PING, b"p" * 100))
                    sent += 1

            nursery.start_soon(ping)
            await trio.testing.wait_all_tasks_blocked()
            assert sent < 10
            nursery.cancel_scope.cancel()


async def test_an_unusual_request_leaves_all_reading_to_the_library() -> None:
    """Bare line feeds: the library takes such a head, and its end is not looked for in other forms."""
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send_all, HANDSHAKE.replace("\r\n", "\n").encode())
        async with open_link(CountedStream(theirs), CONFIG) as link:
            assert link._intake.reads is Reading.LIBRARY
            nursery.start_soon(ours.send_all, frame(TEXT, b"hello"))
            assert await link.receive() == "hello"


async def test_nothing_that_is_done_with_is_kept_while_the_peer_is_silent() -> None:
    """A thousand idle connections would keep a thousand last messages, each between holes of the heap."""
    ours, theirs = trio.testing.memory_stream_pair()
    first, second = frame(TEXT, b"x" * 5_000), frame(TEXT, b"y")
    async with trio.open_nursery() as nursery:
        peer = RawPeer(ours)
        nursery.start_soon(peer.handshake)
        async with open_link(CountedStream(theirs), CONFIG) as link:
            nursery.start_soon(ours.send_all, first + second[:3])
            assert await link.receive() == "x" * 5_000
            nursery.start_soon(ours.send_all, second[3:])
            assert await link.receive() == "y"
            nursery.start_soon(link.receive)
            await trio.testing.wait_all_tasks_blocked()
            assert link._intake._buffer == b""
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 1_000])
def test_unmasking_is_its_own_inverse(size: int) -> None:
    data = random.Random(size).randbytes(size)
    key = b"\x01\x80\xff\x07"
    masked = bytes(byte ^ key[at % 4] for at, byte in enumerate(data))
    assert unmasked(masked, key) == data
    assert unmasked(unmasked(data, key), key) == data


def test_the_intake_is_the_librarys_until_told_otherwise() -> None:
    assert attrs.fields(Intake).reads.default is Reading.LIBRARY
