"""A client for asyncio programs, on the ``websockets`` library (extra ``asyncio``), over Trio's core."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import attrs
import websockets
from websockets.asyncio.client import ClientConnection, connect

from ...protocol.wire import messages as m
from ...protocol.wire.client_core import ClientCore
from ...protocol.wire.client_errors import ClientError, ConnectionLost, ServerError
from ...protocol.wire.codec import Encoding
from .backoff import Backoff
from .requester import Requester
from .waiter import Settled, Waiter

logger = logging.getLogger(__name__)

CONNECT_S: Final = 10.0
CLOSE_S: Final = 2.0
FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
"""The server sends no frame near this: large answers come in parts."""


@attrs.define(eq=False)
class AsyncioWaiter:
    """A future that was cancelled is not settled any more."""

    _future: asyncio.Future[Settled] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future(), init=False
    )

    def settle(self, answer: Settled) -> None:
        if not self._future.done():
            self._future.set_result(answer)

    async def wait(self) -> Settled:
        return await self._future


@attrs.define(eq=False)
class AsyncioClient(Requester):
    """See ``open_asyncio_client``. Use it from the event loop it was opened in."""

    _ssl_context: ssl.SSLContext | None
    _backoff: Backoff
    _rng: random.Random = attrs.field(factory=random.Random, init=False, repr=False)
    _arrived: asyncio.Event = attrs.field(factory=asyncio.Event, init=False, repr=False)
    _welcomed: bool = attrs.field(default=False, init=False)
    ready: asyncio.Event = attrs.field(factory=asyncio.Event, init=False, repr=False)
    """Set at the first welcome, or when there will be none."""

    def _waiter(self) -> Waiter:
        return AsyncioWaiter()

    async def run(self) -> None:
        """Connect, and again whenever the line goes, until given up. The owner task of the client."""
        clock = asyncio.get_running_loop().time
        attempt, down_since = 0, clock()
        try:
            while True:
                failure = await self._line()
                if self._welcomed:
                    attempt, down_since, self._welcomed = 0, clock(), False
                attempt += 1
                bound = self._backoff.give_up_after_s
                if isinstance(failure, ServerError):
                    self._core.give_up(failure)
                    return
                if bound is not None and clock() - down_since >= bound:
                    self._core.give_up(_lost(failure))
                    return
                await asyncio.sleep(self._backoff.pause_s(attempt, self._rng))
        finally:
            if self._core.state != "closed":  # a bug, or cancelled: nobody may wait for ever
                self._core.give_up()
            self.ready.set()

    async def _line(self) -> Exception | None:
        """One line, from opening to its end, and why it ended (None: it was closed in good order)."""
        try:
            async with connect(
                self.url,
                subprotocols=[websockets.Subprotocol(self._core.subprotocol)],
                ssl=self._ssl_context,
                compression=None,
                max_size=FRAME_BYTES_MAX,
                open_timeout=CONNECT_S,
                close_timeout=CLOSE_S,
                ping_interval=None,  # the server keeps the line alive
                proxy=None,
            ) as socket:
                return await self._talk(socket)
        except (OSError, TimeoutError, websockets.WebSocketException) as exc:
            return exc
        finally:
            self._core.lost()

    async def _talk(self, socket: ClientConnection) -> Exception | None:
        self._core.connected()
        writer = asyncio.create_task(self._write(socket))
        try:
            async for frame in socket:
                self._core.received(frame)
                if self._core.state == "ready" and not self._welcomed:
                    self._welcomed = True
                    self.ready.set()
        except websockets.ConnectionClosed as exc:
            return exc
        except ClientError as error:
            return error
        finally:
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer
        return None

    async def _write(self, socket: ClientConnection) -> None:
        text = self._core.encoding == "json"
        outgoing = self._core.outgoing
        with suppress(websockets.ConnectionClosed):  # the reading side sees it, too
            while True:
                self._arrived.clear()
                while outgoing:
                    frame = outgoing.popleft()
                    await socket.send(frame.decode() if text else frame)
                await self._arrived.wait()

    def wake(self) -> None:
        self._arrived.set()


def _lost(failure: Exception | None) -> ConnectionLost:
    lost = ConnectionLost("there is no connection, and no further attempt will be made")
    lost.__cause__ = failure
    return lost


@asynccontextmanager
async def open_asyncio_client(
    url: str,
    token: str | None,
    *,
    encoding: Encoding = "msgpack",
    name: str = "session-query-client",
    version: str = "0",
    ssl_context: ssl.SSLContext | None = None,
    backoff: Backoff | None = None,
) -> AsyncIterator[AsyncioClient]:
    """A connected client for the time of the block.

    Reconnects by itself; requests made or unanswered while there is no line are sent when there is one, and
    publications are attached again where they stopped. ``backoff`` says how long that is tried.
    Raises on entry: ServerError (Unauthenticated, …), ConnectionLost (nobody there within the backoff).
    """
    loop = asyncio.get_running_loop()

    def call_later(seconds: float, callback: Callable[[], None]) -> None:
        loop.call_later(seconds, callback)

    core = ClientCore(
        encoding,
        token,
        m.Software(name=name, version=version),
        wake=lambda: client.wake(),
        schedule=call_later,
    )
    client = AsyncioClient(url, core, ssl_context, backoff or Backoff())
    running = asyncio.create_task(client.run())
    try:
        await client.ready.wait()
        if core.ended is not None:
            raise core.ended
        yield client
    finally:
        core.give_up()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
