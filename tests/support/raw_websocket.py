"""A WebSocket client made of bytes, for saying what no library would say (RFC 6455)."""

from __future__ import annotations

import os
from typing import Any

import attrs
import msgspec
import trio

HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: session-query.v1.json\r\n\r\n"
)
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, masked: bool = True) -> bytes:
    """One frame; nothing is checked."""
    head = bytes([(0x80 if fin else 0) | (rsv << 4) | opcode])
    bit = 0x80 if masked else 0
    if len(payload) < 126:
        head += bytes([bit | len(payload)])
    elif len(payload) < 65_536:
        head += bytes([bit | 126]) + len(payload).to_bytes(2, "big")
    else:
        head += bytes([bit | 127]) + len(payload).to_bytes(8, "big")
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + xor(payload, key)


def xor(payload: bytes, key: bytes) -> bytes:
    if not payload:
        return b""
    mask = (key * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(len(payload), "big")


@attrs.define(eq=False)
class RawPeer:
    """``stream`` is any byte stream to the server."""

    stream: trio.abc.Stream
    _buffer: bytearray = attrs.field(factory=bytearray)

    async def handshake(self, request: str = HANDSHAKE) -> bytes:
        """Returns the response head."""
        await self.stream.send_all(request.encode())
        while b"\r\n\r\n" not in self._buffer:
            await self._more()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer[:] = rest
        return head

    async def hello(self, secret: str = "run") -> Any:
        await self.say({"type": "hello", "token": secret, "client": {"name": "raw", "version": "1"}})
        return await self.hear()

    async def say(self, message: Any) -> None:
        await self.stream.send_all(frame(TEXT, msgspec.json.encode(message)))

    async def hear(self) -> Any:
        """The next message as plain JSON; control frames on the way are answered or skipped."""
        while True:
            opcode, payload = await self.next_frame()
            if opcode == TEXT:
                return msgspec.json.decode(payload)
            if opcode == CLOSE:
                raise EOFError(int.from_bytes(payload[:2], "big"), payload[2:].decode())
            if opcode == PING:
                await self.stream.send_all(frame(PONG, payload))

    async def next_frame(self) -> tuple[int, bytes]:
        """(opcode, payload) of the next frame. Raises: EOFError(0, "") at the end of the stream."""
        await self._have(2)
        opcode, length = self._buffer[0] & 15, self._buffer[1] & 127
        assert not self._buffer[1] & 128, "a server does not mask"
        assert not self._buffer[0] & 0x70, "no extension was agreed on"
        start = 2
        if length >= 126:
            size = 2 if length == 126 else 8
            await self._have(2 + size)
            length = int.from_bytes(self._buffer[2 : 2 + size], "big")
            start = 2 + size
        await self._have(start + length)
        payload = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        return opcode, payload

    async def end(self) -> tuple[int, str]:
        """Read on until the server closes; (close code, reason), (0, "") if it just stopped."""
        while True:
            try:
                opcode, payload = await self.next_frame()
            except EOFError:
                return 0, ""
            if opcode == CLOSE:
                return (int.from_bytes(payload[:2], "big"), payload[2:].decode()) if payload else (1005, "")

    async def _have(self, count: int) -> None:
        while len(self._buffer) < count:
            await self._more()

    async def _more(self) -> None:
        try:
            data = await self.stream.receive_some(65_536)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        if not data:
            raise EOFError(0, "")
        self._buffer += data
