"""A client for asyncio programs, on the ``websockets`` library (extra ``asyncio``), over Trio's core."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar

import attrs
import websockets
from websockets.asyncio.client import ClientConnection, connect

from ...protocol.json_value import JSON
from ...protocol.signal import Signal
from ...protocol.wire import messages as m
from ...protocol.wire.client_core import ClientCore, OnProgress
from ...protocol.wire.client_errors import ClientError, ConnectionLost, ServerError
from ...protocol.wire.codec import Encoding
from ...protocol.wire.publication import Event, Publication
from . import requests
from .backoff import Backoff

logger = logging.getLogger(__name__)

CONNECT_S: Final = 10.0
CLOSE_S: Final = 2.0
FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
"""The server sends no frame near this: large answers come in parts."""

A = TypeVar("A", bound=m.Message)


@attrs.define(eq=False)
class _Waiter:
    """One answer on its way to one task. A future that was cancelled is not settled any more."""

    future: asyncio.Future[m.Answer | ClientError | None] = attrs.field(
        factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, answer: m.Answer | ClientError | None) -> None:
        if not self.future.done():
            self.future.set_result(answer)


@attrs.define(eq=False)
class AsyncioPublication:
    """A session this program publishes. Close it, or leave it to the end of the client."""

    _client: AsyncioClient
    core: Publication

    @property
    def session_id(self) -> str:
        return self.core.session_id

    @property
    def next_seq(self) -> int:
        """The seq the next event will get; -1 until the session is attached for the first time."""
        return self.core.next_seq

    def append_nowait(self, events: Sequence[Event]) -> None:
        """Hand events over and go on. They are sent in order, again after a reconnect if need be.

        Raises: LocalProtocolError, PublicationFull, or the error that ended this publication.
        """
        self.core.put(events)
        self._client._core.pump(self.core)

    async def append(self, events: Sequence[Event]) -> None:
        """Hand events over and wait until they are committed.

        Raises: as ``append_nowait``; then the error that ended this publication. Cancellation: the events
        stay handed over.
        """
        waiter = _Waiter()
        self.core.put(events, waiter.settle)
        self._client._core.pump(self.core)
        await _committed(waiter)

    async def flush(self) -> None:
        """Wait until everything handed over is committed. Raises: the error that ended this publication."""
        waiter = _Waiter()
        self.core.wait_all(waiter.settle)
        await _committed(waiter)

    async def close(self) -> None:
        """Detach the session; what is not committed by now is given up (``flush`` first)."""
        waiter = _Waiter()
        self._client._core.unpublish(self.core, waiter.settle)
        await waiter.future


async def _committed(waiter: _Waiter) -> None:
    answer = await waiter.future
    if isinstance(answer, ClientError):
        raise answer


@attrs.define(eq=False)
class AsyncioClient:
    """See ``open_asyncio_client``. Use it from the event loop it was opened in."""

    url: str
    _core: ClientCore
    _ssl_context: ssl.SSLContext | None
    _backoff: Backoff
    _rng: random.Random = attrs.field(factory=random.Random, init=False, repr=False)
    _arrived: asyncio.Event = attrs.field(factory=asyncio.Event, init=False, repr=False)
    _welcomed: bool = attrs.field(default=False, init=False)
    ready: asyncio.Event = attrs.field(factory=asyncio.Event, init=False, repr=False)
    """Set at the first welcome, or when there will be none."""

    @property
    def welcome(self) -> m.Welcome | None:
        """What the server last said of itself; None before the first connection."""
        return self._core.welcome

    # ------------------------------------------------------------ requests

    async def tools(self) -> m.Tools:
        """The tools and the prompt section. Raises: as ``call``."""
        return await self._ask(requests.tools(), m.Tools)

    async def call(
        self,
        tool: str,
        arguments: JSON,
        *,
        agent: str | None = None,
        workspace: str | None = None,
        reach: list[str] | m.ReachAll | None = None,
        call_id: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
        signal: Signal | None = None,
    ) -> m.Result:
        """Run a tool for one caller: an ``agent`` (session id), a ``workspace``, or an operator's ``reach``.

        Args: signal: aborting it cancels the request with the signal's reason (if that is JSON).
        Raises: ServerError (RequestAborted, ServerBusy, …), ConnectionLost, LocalProtocolError.
        Cancellation: the server is told; nothing is waited for.
        """
        build = requests.call(
            tool,
            arguments,
            agent=agent,
            workspace=workspace,
            reach=reach,
            call_id=call_id,
            deadline_ms=deadline_ms,
            follow=on_progress is not None,
        )
        return await self._ask(build, m.Result, on_progress, signal)

    async def query(
        self,
        method: str,
        params: JSON = None,
        *,
        reach: list[str] | m.ReachAll | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
        signal: Signal | None = None,
    ) -> JSON:
        """Run a service operation; see the wire specification for methods. Raises: as ``call``."""
        follow = on_progress is not None
        build = requests.query(method, params, reach=reach, deadline_ms=deadline_ms, follow=follow)
        return (await self._ask(build, m.Value, on_progress, signal)).value

    async def fetch(self, locator: str, offset_bytes: int = 0, limit_bytes: int | None = None) -> m.Chunk:
        """One piece of a spilled result. Raises: as ``call``."""
        return await self._ask(requests.fetch(locator, offset_bytes, limit_bytes), m.Chunk)

    async def fetch_all(self, locator: str) -> str:
        """A spilled result whole. Raises: as ``call``."""
        pieces, offset, last = list[str](), 0, False
        while not last:
            chunk = await self.fetch(locator, offset)
            last = chunk.last or chunk.next_offset <= offset
            offset = chunk.next_offset
            pieces.append(chunk.data)
        return "".join(pieces)

    async def publish(self, header: JSON, seed: list[Event] | None = None) -> AsyncioPublication:
        """Attach a session and keep it attached over reconnects. Returns when it is attached first.

        Raises: ServerError (FORBIDDEN, INVALID_HEADER, …), ConnectionLost, LocalProtocolError.
        Cancellation: the session is given up.
        """
        publication = AsyncioPublication(self, self._core.publish(header, seed))
        try:
            await publication.flush()
        except asyncio.CancelledError:
            self._core.unpublish(publication.core, lambda answer: None)
            raise
        return publication

    async def _ask(
        self,
        build: requests.Build,
        kind: type[A],
        on_progress: OnProgress | None = None,
        signal: Signal | None = None,
    ) -> A:
        waiter = _Waiter()
        request_id = self._core.request(build, waiter.settle, on_progress)
        forget: Callable[[], None] | None = None
        if signal is not None:
            forget = signal.on_abort(partial(self._cancel, request_id, signal))
        try:
            return requests.expect(await waiter.future, kind)
        except asyncio.CancelledError:
            self._core.forget(request_id)
            raise
        finally:
            if forget is not None:
                forget()

    def _cancel(self, request_id: int, signal: Signal) -> None:
        self._core.cancel(request_id, requests.sendable_reason(signal.reason))

    # ------------------------------------------------------------ the line

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
