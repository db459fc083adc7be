"""Frames the server puts together itself are what the library would have sent, and never interleave."""

from __future__ import annotations

import attrs
import pytest
import trio
from wsproto.frame_protocol import FrameProtocol

from session_query.actors.counted_stream import CLOSE_FRAME, RECEIVE_BYTES_FIRST, CountedStream
from session_query.actors.edge.link import server_frame


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_000])
@pytest.mark.parametrize("text", [True, False])
def test_a_frame_is_the_librarys(size: int, text: bool) -> None:
    data = ("é" * (size // 2) + "x" * (size % 2)).encode()
    ours = server_frame(data, text=text)
    assert ours == bytes(
        FrameProtocol(client=False, extensions=[]).send_data(data.decode() if text else data)
    )
    peer = FrameProtocol(client=True, extensions=[])
    peer.receive_bytes(ours)
    frames = list(peer.received_frames())
    payloads = [frame.payload for frame in frames]
    assert b"".join(one.encode() if isinstance(one, str) else bytes(one) for one in payloads) == data
    assert frames[-1].message_finished


class Slow(trio.abc.Stream):
    """Takes a byte at a time, with a turn of the loop between."""

    def __init__(self) -> None:
        self.taken = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        for byte in bytes(data):
            await trio.lowlevel.checkpoint()
            self.taken += bytes([byte])

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.sleep_forever()
        raise AssertionError

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_frames_of_two_senders_never_interleave() -> None:
    slow = Slow()
    stream = CountedStream(slow)
    async with trio.open_nursery() as nursery:
        for letter in (b"a", b"b", b"c", b"d"):
            nursery.start_soon(stream.send_all, letter * 5)
    assert sorted(slow.taken[at : at + 5] for at in range(0, 20, 5)) == [
        b"aaaaa",
        b"bbbbb",
        b"ccccc",
        b"ddddd",
    ]
    assert stream.sent_bytes == 20
    assert not stream.broken


async def test_a_sender_that_gives_up_in_line_breaks_nothing() -> None:
    slow = Slow()
    stream = CountedStream(slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, b"a" * 50)
        while not stream.sending:
            await trio.lowlevel.checkpoint()
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.send_all(b"b")
    assert slow.taken == b"a" * 50
    assert not stream.broken


async def test_nothing_follows_a_close_frame() -> None:
    slow = Slow()
    stream = CountedStream(slow)
    close = bytes([CLOSE_FRAME, 0])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, close)
        while not stream.sending:
            await trio.lowlevel.checkpoint()
        with pytest.raises(trio.ClosedResourceError):
            await stream.send_all(b"late")
    assert slow.taken == close
    assert not stream.broken


@attrs.define(eq=False)
class Talking(Slow):
    """A peer that has sent so much; it hands out what is asked for."""

    waiting: int = 0
    asked: list[int] = attrs.field(factory=list)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        assert max_bytes is not None
        self.asked.append(max_bytes)
        size = min(self.waiting, max_bytes)
        self.waiting -= size
        return bytes(size)


async def test_a_reader_asks_for_little_until_much_comes() -> None:
    """What is asked for is set aside before anything comes; see ``RECEIVE_BYTES_FIRST``."""
    most = 256 * 1024
    peer = Talking(waiting=100)
    stream = CountedStream(peer)
    assert len(await stream.receive_some(most)) == 100
    peer.waiting = 1_000_000
    while peer.waiting:
        await stream.receive_some(most)
    for _ in range(4):
        peer.waiting = 100
        assert len(await stream.receive_some(most)) == 100
    assert [size // 1024 for size in peer.asked] == [16, 16, 64, 256, 256, 256, 256, 64, 16, 16, 16]
    assert stream.received_bytes == 1_000_500


async def test_a_reader_is_never_given_more_than_it_takes() -> None:
    peer = Talking(waiting=50)
    stream = CountedStream(peer)
    assert len(await stream.receive_some(10)) == 10
    assert len(await stream.receive_some(1_000)) == 40
    peer.waiting = 50_000
    assert len(await stream.receive_some()) == RECEIVE_BYTES_FIRST
