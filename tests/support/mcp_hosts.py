"""An MCP host in this process: the official client on one side, a scripted service on the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar, cast

import attrs
import trio
from mcp import Client
from mcp.shared.memory import create_client_server_memory_streams

from session_query.actors.clients import Client as WireClient
from session_query.actors.hosts.mcp.callers import CallerSource
from session_query.actors.hosts.mcp.cancelling import WatchedStream
from session_query.actors.hosts.mcp.launching import ServiceStarter
from session_query.actors.hosts.mcp.link import Link
from session_query.actors.hosts.mcp.server import McpHost
from session_query.protocol.signal import Signal
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.client_errors import typed_error

T = TypeVar("T")
HERE = CallerSource(None, "/proj/here", None, "/home/ada")


@attrs.define(eq=False)
class FixedStarter(ServiceStarter):
    """Finds the one service there is."""

    url: str = attrs.field(kw_only=True)

    async def find_or_start(self, until: float) -> str:
        return self.url


def result(text: str, **more: Any) -> m.Result:
    return m.Result(id=1, text=text, card={}, **more)


@attrs.define(eq=False)
class ScriptedClient:
    """Stands for the wire's client. ``answers`` are given in turn: a result, an error, or a function."""

    answers: list[Any] = attrs.field(factory=list)
    calls: list[tuple[str, Any, dict[str, Any]]] = attrs.field(factory=list)
    signals: list[Signal] = attrs.field(factory=list)
    queries: list[tuple[str, Any]] = attrs.field(factory=list)
    spilled: dict[str, bytes] = attrs.field(factory=dict)
    piece_bytes: int = 7
    entered: trio.Event = attrs.field(factory=trio.Event)
    on_query: Callable[[Any], Awaitable[None]] | None = None

    async def call(self, tool: str, arguments: Any, *, signal: Signal, **more: Any) -> m.Result:
        self.calls.append((tool, arguments, more))
        self.signals.append(signal)
        self.entered.set()
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if isinstance(answer, Exception):
            raise answer
        return cast(m.Result, answer)

    async def query(self, method: str, params: Any, *, on_progress: Any = None) -> Any:
        self.queries.append((method, params))
        if self.on_query is not None:
            await self.on_query(on_progress)
        return {}

    async def fetch(self, locator: str, offset_bytes: int, limit_bytes: int | None) -> m.Chunk:
        """Pieces as the service cuts them: between code points, at least one."""
        if locator not in self.spilled:
            raise m_error("FORBIDDEN", "no such result, or it is not yours")
        data = self.spilled[locator]
        if offset_bytes > len(data) or (
            data[offset_bytes : offset_bytes + 1] and data[offset_bytes] & 0xC0 == 0x80
        ):
            raise m_error("INVALID_ARGS", "the offset is beyond the end or inside a character")
        end = min(offset_bytes + max(limit_bytes or self.piece_bytes, 1), len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        return m.Chunk(
            id=1,
            offset_bytes=offset_bytes,
            next_offset=end,
            total_bytes=len(data),
            last=end == len(data),
            data=data[offset_bytes:end].decode(),
        )


def m_error(code: str, message: str = "a text", **more: Any) -> Exception:
    """The exception the wire's client raises for an ``error`` message."""
    return typed_error(m.Error(code=code, message=message, **more))


@attrs.define(eq=False)
class ScriptedLink:
    client: ScriptedClient

    async def ask(self, work: Callable[[WireClient], Awaitable[T]]) -> T:
        return await work(cast(WireClient, self.client))


def scripted_host(client: ScriptedClient, callers: CallerSource | None = None, **more: Any) -> McpHost:
    return McpHost(cast(Link, ScriptedLink(client)), callers or attrs.evolve(HERE), **more)


def over_memory(host: McpHost) -> AbstractAsyncContextManager[Any]:
    """A transport for the official client with ``host`` at the other end."""

    @asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        server = host.server("1.2.3")
        async with create_client_server_memory_streams() as (ours, theirs), trio.open_nursery() as nursery:
            incoming = WatchedStream(theirs[0], host.cancellations)
            options = server.create_initialization_options()
            nursery.start_soon(server.run, incoming, theirs[1], options)
            yield ours
            nursery.cancel_scope.cancel()

    return transport()


@asynccontextmanager
async def connected(host: McpHost, **options: Any) -> AsyncIterator[Client]:
    """The official client, past the handshake."""
    async with Client(over_memory(host), **options) as client:
        yield client
