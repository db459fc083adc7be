"""A client for Trio programs: requests, publications, reconnecting, over one WebSocket at a time."""

from __future__ import annotations

import logging
import random
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio
import trio_websocket as ws
from wsproto.utilities import LocalProtocolError as WebSocketOutOfOrder

from ...protocol.wire import messages as m
from ...protocol.wire.client_core import ClientCore
from ...protocol.wire.client_errors import ClientError, ConnectionLost, RemoteProtocolError, ServerError
from ...protocol.wire.codec import Encoding
from ..counted_stream import CountedStream
from .backoff import Backoff
from .requester import Requester
from .waiter import Settled, Waiter

logger = logging.getLogger(__name__)

CONNECT_S: Final = 10.0
CLOSE_S: Final = 2.0
RECEIVE_BUFFER_BYTES: Final = 256 * 1024
FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
"""The server sends no frame near this: large answers come in parts."""

Line = trio.SocketStream | trio.SSLStream[trio.SocketStream]


@attrs.define(eq=False)
class TrioWaiter:
    _event: trio.Event = attrs.field(factory=trio.Event, init=False)
    _answer: Settled = attrs.field(default=None, init=False)

    def settle(self, answer: Settled) -> None:
        self._answer = answer
        self._event.set()

    async def wait(self) -> Settled:
        await self._event.wait()
        return self._answer


@attrs.define(eq=False)
class Client(Requester):
    """See ``open_client``. Every method may be called from any task of the loop it was opened in."""

    _ssl_context: ssl.SSLContext | None
    _backoff: Backoff
    _rng: random.Random = attrs.field(factory=random.Random, init=False, repr=False)
    _arrived: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)
    _welcomed: bool = attrs.field(default=False, init=False)
    _closing: bool = attrs.field(default=False, init=False)
    _reading: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False, repr=False)
    _pausing: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False, repr=False)
    ready: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)
    """Set at the first welcome, or when there will be none."""

    def _waiter(self) -> Waiter:
        return TrioWaiter()

    async def run(self) -> None:
        """Connect, and again whenever the line goes, until given up. The owner task of the client."""
        attempt, down_since = 0, trio.current_time()
        while not self._closing:
            self._reading, self._pausing = trio.CancelScope(), trio.CancelScope()
            failure = await self._line()
            if self._welcomed:
                attempt, down_since, self._welcomed = 0, trio.current_time(), False
            attempt += 1
            bound = self._backoff.give_up_after_s
            waited = trio.current_time() - down_since
            if isinstance(failure, ServerError) or (bound is not None and waited >= bound):
                self._core.give_up(failure if isinstance(failure, ServerError) else _lost(failure))
                self.ready.set()
                return
            with self._pausing:
                await trio.sleep(self._backoff.pause_s(attempt, self._rng))

    def close(self) -> None:
        """Give everything up and end the line in good order; ``run`` returns soon after."""
        self._core.give_up()
        self._closing = True
        self._reading.cancel(reason="closed")
        self._pausing.cancel(reason="closed")

    async def _line(self) -> Exception | None:
        """One line, from opening to its end, and why it ended (None: it was closed in good order).

        A ServerError means that the server will not have us.
        """
        failure: Exception | None = None
        try:
            stream = await self._open_stream()
        except (OSError, trio.TooSlowError, trio.BrokenResourceError) as exc:  # TLS breaks what TCP opened
            return exc
        try:
            async with trio.open_nursery() as nursery:
                failure = await self._talk(nursery, CountedStream(stream))
                nursery.cancel_scope.cancel(reason="the line has gone")
        except* ws.HandshakeError as group:  # raised by the library's reading task
            failure = failure or _first(group)
        except* (WebSocketOutOfOrder, trio.BrokenResourceError, trio.ClosedResourceError):
            failure = failure or RemoteProtocolError("the line broke")
        finally:
            self._core.lost()
            with trio.CancelScope(shield=True):  # forceful: does not wait
                await trio.aclose_forcefully(stream)
        return failure

    async def _talk(self, nursery: trio.Nursery, stream: CountedStream) -> Exception | None:
        socket = await self._upgrade(nursery, stream)
        if socket is None:
            return trio.TooSlowError()
        self._core.connected()
        nursery.start_soon(self._write, socket)
        bound_s = CLOSE_S
        try:
            with self._reading:
                await self._read(socket)
        except ws.ConnectionClosed:
            return None
        except ClientError as error:
            return error
        except trio.Cancelled:
            bound_s = 0.0  # the library's reader is cancelled with us: nobody would see the peer's answer
            raise
        finally:
            with trio.move_on_after(bound_s, shield=True):
                await socket.aclose()
        return None

    async def _upgrade(self, nursery: trio.Nursery, stream: CountedStream) -> ws.WebSocketConnection | None:
        """The WebSocket handshake; None if it does not end in time or the other side just goes."""
        parts = urllib.parse.urlsplit(self.url)
        socket: ws.WebSocketConnection | None = None
        with trio.move_on_after(CONNECT_S):
            async with trio.open_nursery() as racing:

                async def give_up_at_end() -> None:  # the library waits on for an answer that cannot come
                    await stream.ended.wait()
                    racing.cancel_scope.cancel(reason="the server has gone")

                racing.start_soon(give_up_at_end)
                socket = await ws.wrap_client_stream(
                    nursery,
                    stream,  # type: ignore[arg-type]  # any stream will do
                    parts.netloc,
                    parts.path or "/",
                    subprotocols=[self._core.subprotocol],
                    max_message_size=FRAME_BYTES_MAX,
                    receive_buffer_size=RECEIVE_BUFFER_BYTES,
                )
                racing.cancel_scope.cancel(reason="upgraded")
        return socket

    async def _read(self, socket: ws.WebSocketConnection) -> None:
        while True:
            frame = await socket.get_message()
            self._core.received(frame if isinstance(frame, str) else bytes(frame))
            if self._core.state == "ready" and not self._welcomed:
                self._welcomed = True
                self.ready.set()

    async def _write(self, socket: ws.WebSocketConnection) -> None:
        text = self._core.encoding == "json"
        outgoing = self._core.outgoing
        try:
            while True:
                while outgoing:
                    frame = outgoing.popleft()
                    await socket.send_message(frame.decode() if text else frame)
                await self._arrived.park()
        except ws.ConnectionClosed:
            return  # the reading side sees it, too

    async def _open_stream(self) -> Line:
        parts = urllib.parse.urlsplit(self.url)
        secure = parts.scheme == "wss"
        port = parts.port or (443 if secure else 80)
        with trio.fail_after(CONNECT_S):
            if not secure:
                return await trio.open_tcp_stream(parts.hostname or "", port)
            context = self._ssl_context or ssl.create_default_context()
            stream = await trio.open_ssl_over_tcp_stream(
                parts.hostname or "", port, ssl_context=context, https_compatible=True
            )
            try:
                await stream.do_handshake()  # here, where its failure can be told
            except BaseException:
                with trio.CancelScope(shield=True):  # forceful: does not wait
                    await trio.aclose_forcefully(stream)
                raise
            return stream

    def wake(self) -> None:
        self._arrived.unpark_all()


def _first(group: BaseExceptionGroup[BaseException]) -> Exception:
    for exc in group.exceptions:
        if isinstance(exc, BaseExceptionGroup):
            return _first(exc)
        if isinstance(exc, Exception):
            return exc
    return ConnectionLost("the handshake failed")


def _lost(failure: Exception | None) -> ConnectionLost:
    lost = ConnectionLost("there is no connection, and no further attempt will be made")
    lost.__cause__ = failure
    return lost


@asynccontextmanager
async def open_client(
    url: str,
    token: str | None,
    *,
    encoding: Encoding = "msgpack",
    name: str = "session-query-client",
    version: str = "0",
    ssl_context: ssl.SSLContext | None = None,
    backoff: Backoff | None = None,
) -> AsyncIterator[Client]:
    """A connected client for the time of the block.

    Reconnects by itself; requests made or unanswered while there is no line are sent when there is one, and
    publications are attached again where they stopped. ``backoff`` says how long that is tried.
    Raises on entry: ServerError (Unauthenticated, …), ConnectionLost (nobody there within the backoff).
    """
    body_error: Exception | None = None
    async with trio.open_nursery() as nursery:

        async def call_later(seconds: float, callback: Callable[[], None]) -> None:
            await trio.sleep(seconds)
            callback()

        core = ClientCore(
            encoding,
            token,
            m.Software(name=name, version=version),
            wake=lambda: client.wake(),
            schedule=lambda seconds, callback: nursery.start_soon(call_later, seconds, callback),
        )
        client = Client(url, core, ssl_context, backoff or Backoff())
        async with trio.open_nursery() as line:
            line.start_soon(client.run)
            await client.ready.wait()
            if core.state != "closed":
                try:
                    yield client
                except Exception as exc:
                    body_error = exc  # raised outside the nurseries, so that it comes bare
            else:
                body_error = core.ended
            client.close()  # the line ends in good order, then this inner nursery
        nursery.cancel_scope.cancel(reason="the client is closed")
    if body_error is not None:
        raise body_error
