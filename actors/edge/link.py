"""One WebSocket, seen as frames: handshake, receiving, sending, closing. The only server module that
knows the WebSocket library.

Plain messages come through ``Intake``, everything else through the library's reading task. Its quirks are
kept in here: it closes nothing after a message over the bound, it raises when a ping arrives after our
close, and after bytes that are no WebSocket it closes the stream without the close frame that says so.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio
import trio_websocket as ws
from wsproto.utilities import LocalProtocolError

from ...protocol.wire.codec import Encoding, Frame, choose_encoding
from ...protocol.wire.limits import SUBPROTOCOL_JSON, SUBPROTOCOL_MSGPACK
from ..counted_stream import CLOSE_FRAME, CountedStream
from .intake import Intake
from .server_config import ServerConfig

logger = logging.getLogger(__name__)

CLOSE_NORMAL: Final = 1000
CLOSE_GOING_AWAY: Final = 1001
CLOSE_PROTOCOL: Final = 1002
CLOSE_POLICY: Final = 1008
CLOSE_TOO_LARGE: Final = 1009
CLOSE_INTERNAL: Final = 1011

FAILED: Final = frozenset({CLOSE_PROTOCOL, 1007})
"""Codes with which the library fails a connection: not WebSocket, not UTF-8."""

LINGER_S: Final = 1.0
"""After a refused message the peer may still be sending it: reading on a little lets it see why."""


class LinkClosed(Exception):
    """The peer has closed, or the bytes have stopped. ``code`` 1006: without a word."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class HandshakeRefused(Exception):
    """The peer did not become a connection; ``why`` is for statistics and the log."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@attrs.define(eq=False)
class Link:
    """An accepted WebSocket. ``encoding`` None: the peer asked for subprotocols we do not speak.

    Owner: one connection. ``receive`` has one caller, ``send`` has one caller (the writer).
    """

    encoding: Encoding | None
    stream: CountedStream
    _intake: Intake
    _socket: ws.WebSocketConnection
    _pinging: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.stream.farewell = self._farewell

    def _farewell(self) -> bytes:
        """The close frame the library leaves out when it fails a connection (RFC 6455, 7.1.7)."""
        closed = self._socket.closed
        if closed is None or closed.code not in FAILED or self.stream.sent_opening == CLOSE_FRAME:
            return b""
        reason = (closed.reason or "").encode()[:100].decode("utf-8", "ignore").encode()
        return bytes([CLOSE_FRAME, 2 + len(reason)]) + closed.code.to_bytes(2, "big") + reason

    async def receive(self) -> Frame:
        """The next whole message. Raises: LinkClosed."""
        plain = await self._intake.next()
        if plain is not None:
            return plain
        try:
            message = await self._socket.get_message()
        except ws.ConnectionClosed as exc:
            raise _closed(exc) from None
        return message if isinstance(message, str) else bytes(message)

    async def send(self, data: bytes, encoding: Encoding) -> None:
        """Send one message, as one frame. ``data``: UTF-8 for JSON.

        Not through the library: it takes a lock, which is a turn of the loop, and puts a frame together in
        some forty steps, a third of what a small answer costs. A server's frame is a header and the message
        (RFC 6455, 5.2); the stream keeps it apart from the frames the library itself sends.
        Raises: LinkClosed. Cancellation: the link is ``broken`` and only ends.
        """
        closed = self._socket.closed
        if closed is not None:
            raise LinkClosed(closed.code, closed.reason or "")
        try:
            await self.stream.send_all(server_frame(data, text=encoding == "json"))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise LinkClosed(1006, "") from None

    async def ping(self) -> None:
        """Send a ping and wait for its pong, or for ``close``: the library would wait on for ever."""
        self._pinging = trio.CancelScope()
        with self._pinging:
            try:
                await self._socket.ping()
            except (ws.ConnectionClosed, LocalProtocolError):
                return

    async def close(self, code: int, reason: str, bound_s: float) -> None:
        """Close with a code if the wire is still in order, for at most ``bound_s``; then drop the stream."""
        self._pinging.cancel(reason="closing")
        self._intake.release()  # the library waits for the peer's own close frame
        with trio.move_on_after(bound_s, shield=True):
            closed = self._socket.closed
            if closed is not None and closed.code == CLOSE_TOO_LARGE:
                await self._linger()
            elif not self.stream.broken:
                try:
                    await self._socket.aclose(code, reason)
                except (LocalProtocolError, trio.BrokenResourceError, trio.ClosedResourceError):
                    logger.debug("the peer was gone before the close frame")
        with trio.CancelScope(shield=True):  # forceful: does not wait
            await trio.aclose_forcefully(self.stream)

    async def _linger(self) -> None:
        with trio.move_on_after(LINGER_S):
            try:
                while await self.stream.receive_some(65_536):
                    pass
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                return


def server_frame(data: bytes, *, text: bool) -> bytes:
    """A whole message as one frame, unmasked, without extensions: none is ever agreed on (RFC 6455, 5.2)."""
    opening, size = 0x81 if text else 0x82, len(data)
    if size < 126:
        return bytes((opening, size)) + data
    if size < 65_536:
        return bytes((opening, 126, size >> 8, size & 255)) + data
    return bytes((opening, 127)) + size.to_bytes(8, "big") + data


def _closed(exc: ws.ConnectionClosed) -> LinkClosed:
    reason = exc.reason
    return LinkClosed(1006, "") if reason is None else LinkClosed(reason.code, reason.reason or "")


@asynccontextmanager
async def open_link(
    stream: CountedStream, config: ServerConfig, *, refuse_with: int | None = None
) -> AsyncIterator[Link]:
    """Do the server's handshake and keep the library's reading task running around the block.

    Args: refuse_with: an HTTP status to answer instead of accepting (the server is full).
    Raises: HandshakeRefused: nothing asked within ``hello_s``, not a WebSocket request, an origin that is
        not listed, or ``refuse_with``. Leaving the block drops the stream.
    """
    refusal: HandshakeRefused | None = None
    try:
        async with trio.open_nursery() as nursery:
            intake = Intake(stream, config.receive_buffer_bytes)
            try:
                socket, encoding = await _handshake(nursery, intake, config, refuse_with)
            except HandshakeRefused as exc:
                refusal = exc  # raised outside the nursery, so that it comes bare
            else:
                intake.take_over(lambda: socket.closed is not None)
                yield Link(encoding, stream, intake, socket)
            nursery.cancel_scope.cancel(reason="the connection has ended")
    finally:
        with trio.CancelScope(shield=True):  # forceful: does not wait
            await trio.aclose_forcefully(stream)
    if refusal is not None:
        raise refusal


async def _handshake(
    nursery: trio.Nursery, intake: Intake, config: ServerConfig, refuse_with: int | None
) -> tuple[ws.WebSocketConnection, Encoding | None]:
    request: ws.WebSocketRequest | None = None
    with trio.move_on_after(config.hello_s) as scope:
        async with trio.open_nursery() as racing:

            async def give_up_at_end() -> None:  # the library waits on for a request that cannot come
                await intake.stream.ended.wait()
                scope.cancel(reason="the peer has gone")

            racing.start_soon(give_up_at_end)
            request = await ws.wrap_server_stream(
                nursery,
                intake,
                max_message_size=config.frame_bytes,
                receive_buffer_size=config.receive_buffer_bytes,
            )
            racing.cancel_scope.cancel(reason="the request is here")
        status = refuse_with or (403 if _foreign_origin(request, config) else None)
        if status is not None:
            await request.reject(status, body=b"refused\n")
            raise HandshakeRefused("origin" if status == 403 else "full")
        encoding = choose_encoding(request.proposed_subprotocols)
        return await request.accept(subprotocol=_subprotocol(request, encoding)), encoding
    raise HandshakeRefused("handshake")


def _foreign_origin(request: ws.WebSocketRequest, config: ServerConfig) -> bool:
    origins = [value for name, value in request.headers if name.lower() == b"origin"]
    return any(origin.decode("latin-1") not in config.allowed_origins for origin in origins)


def _subprotocol(request: ws.WebSocketRequest, encoding: Encoding | None) -> str | None:
    if encoding is None or not request.proposed_subprotocols:
        return None
    return SUBPROTOCOL_JSON if encoding == "json" else SUBPROTOCOL_MSGPACK
