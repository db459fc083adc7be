"""Frames the server puts together itself are what the library would have sent, and never interleave."""

from __future__ import annotations

import pytest
import trio
from wsproto.frame_protocol import FrameProtocol

from session_query.actors.counted_stream import CLOSE_FRAME, CountedStream
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
