"""One host's way to the shared service: connected when somebody asks, and again when the line has gone."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import attrs
import trio

from ....protocol.errors import QueryError
from ....protocol.wire.client_errors import ConnectionLost, RequestAborted, ServerBusy
from ....storage.tokens import read_operator_token
from ...clients import NO_RECONNECT, Client, ClientError, open_client
from .launching import START_S, ServiceStarter, ServiceUnavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")

ASKS_MAX: Final = 3
"""How often one request is asked on new connections; every request of ours is safe to repeat."""
BUSY_MAX: Final = 5
RETRY_S: Final = 0.1
UNREACHABLE: Final = "the service went away again and again"


class Link(Protocol):
    """What the host's handlers need: a connected client, whenever there is something to ask."""

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T: ...


@attrs.define(eq=False)
class _Attempt:
    """One connection, from the wish for it to its end. ``settled``: there is a client, or an error."""

    settled: trio.Event = attrs.field(factory=trio.Event)
    over: trio.Event = attrs.field(factory=trio.Event)
    client: Client | None = None
    error: Exception | None = None


@attrs.define(eq=False)
class ServiceLink:
    """Owner task: ``run``. ``ask`` may be called from any task of the loop."""

    starter: ServiceStarter
    _attempt: _Attempt = attrs.field(factory=_Attempt, init=False)
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep at most one connection, opened when wanted; ends only by cancellation."""
        task_status.started()
        while True:
            await self._wanted.wait()
            self._wanted, attempt = trio.Event(), self._attempt
            try:
                await self._hold(attempt)
            except (ClientError, QueryError, ServiceUnavailable) as exc:
                logger.warning("no connection to the service: %s", exc)
                attempt.error = exc
            finally:
                self._end(attempt)

    def want(self) -> None:
        """Begin to connect; whoever asks next waits less."""
        self._wanted.set()

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Return what ``work`` makes of a connected client; asked again when the service stops under it.

        Raises: ServiceUnavailable; what ``work`` raises; ServerError, TokenFileError from connecting.
        """
        lost = busy = 0
        while True:
            attempt = await self._connected()
            assert attempt.client is not None
            try:
                return await work(attempt.client)
            except ConnectionLost as exc:
                failure: Exception = exc
            except RequestAborted as exc:
                if exc.kind != "shutdown":
                    raise
                failure = exc
            except ServerBusy as exc:
                if busy == BUSY_MAX:
                    raise
                busy += 1
                await trio.sleep((exc.retry_after_ms or 0) / 1000 or RETRY_S)
                continue
            self._end(attempt)
            lost += 1
            if lost == ASKS_MAX:
                raise ServiceUnavailable(UNREACHABLE) from failure

    async def _connected(self) -> _Attempt:
        attempt = self._attempt
        self._wanted.set()
        await attempt.settled.wait()
        if attempt.client is None:
            raise attempt.error or ServiceUnavailable(UNREACHABLE)
        return attempt

    def _end(self, attempt: _Attempt) -> None:
        """The next to ask gets a new connection. Idempotent."""
        if self._attempt is attempt:
            self._attempt = _Attempt()
        attempt.over.set()
        attempt.settled.set()

    async def _hold(self, attempt: _Attempt) -> None:
        """Connect and keep the line until it is over. A service that is just stopping is waited out."""
        until = trio.current_time() + START_S
        while True:
            url = await self.starter.find_or_start(until)
            token = await trio.to_thread.run_sync(read_operator_token, self.starter.data_dir)
            try:
                async with open_client(url, token, name="session-query-mcp", backoff=NO_RECONNECT) as client:
                    attempt.client = client
                    attempt.settled.set()
                    await attempt.over.wait()
                    return
            except ConnectionLost:
                if trio.current_time() >= until:
                    raise
                await trio.sleep(RETRY_S)
