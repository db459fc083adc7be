"""An edge over a fake service, and a raw peer that says exactly what a test tells it to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import trio.testing
import trio_websocket as ws

from session_query.actors.edge.server import WebSocketServer
from session_query.actors.edge.server_config import ServerConfig
from session_query.actors.edge.server_state import ServerState
from session_query.actors.edge.tokens import Throttle, TokenBook
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import CLIENT_CODECS, Codec, Encoding
from session_query.protocol.wire.parts import Assembly
from session_query.storage.tokens import StoredToken, hash_token
from support.wire_fake import FakeService

ME = m.Software(name="tests", version="1")
HELLO_BYTES_TOO_MANY = 70_000


def token(secret: str, role: str, workspaces: Any, **more: Any) -> StoredToken:
    """A stored token whose secret is ``secret`` and whose id is ``id-<secret>``."""
    return StoredToken(
        id=f"id-{secret}",
        name=secret,
        role=role,  # type: ignore[arg-type]
        workspaces=workspaces,
        hash=hash_token(secret),
        created_at=0,
        **more,
    )


TOKENS = (
    token("run", "runtime", ["/w", "/v"]),
    token("run2", "runtime", ["/w"]),
    token("homeless", "runtime", [], no_workspace=True),
    token("read", "reader", ["/w"]),
    token("op", "operator", "*"),
    token("gone", "operator", "*", revoked_at=1),
)


def header(session_id: str = "s1", cwd: str | None = "/w", **more: Any) -> dict[str, Any]:
    fields = {"version": 0, "id": session_id, "createdAt": 1, **more}
    return fields if cwd is None else {**fields, "cwd": cwd}


def event(text: str, seq: int | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": "user/message", "time": 1, "data": {"text": text}}
    return fields if seq is None else {**fields, "seq": seq}


@attrs.define(eq=False)
class Peer:
    """A client without manners: frames in, frames out. ``codec`` as negotiated."""

    socket: ws.WebSocketConnection
    stream: trio.abc.Stream
    codec: Codec[m.ServerMessage]
    _next_id: int = 100

    async def send(self, message: m.Message) -> None:
        data = self.codec.encode(message)
        await self.socket.send_message(data.decode() if self.codec.encoding == "json" else data)

    async def send_raw(self, frame: str | bytes) -> None:
        await self.socket.send_message(frame)

    async def receive(self) -> Any:
        """The next message, whole: parts are put together."""
        assembly = Assembly(self.codec.encoding == "json")
        while True:
            message = self.codec.decode(await self.socket.get_message())
            if not isinstance(message, m.Part):
                return message
            frame = assembly.add(message)
            if frame is not None:
                return self.codec.decode(frame)

    async def hello(self, secret: str | None = "run") -> Any:
        await self.send(m.Hello(client=ME, token=secret))
        return await self.receive()

    async def ask(self, message: m.Message) -> Any:
        """Send a request and return the answer with its id; other messages are an error here."""
        await self.send(message)
        answer = await self.receive()
        assert getattr(answer, "id", None) == getattr(message, "id", None), answer
        return answer

    async def ask_raw(self, frame: str | bytes) -> Any:
        """Send a frame and return the next message."""
        await self.send_raw(frame)
        return await self.receive()

    async def closed(self) -> tuple[int, str | None]:
        """Wait for the end; the close code and reason as seen here. Messages on the way are dropped."""
        while True:
            try:
                await self.socket.get_message()
            except ws.ConnectionClosed as exc:
                return (exc.reason.code, exc.reason.reason) if exc.reason else (0, "nothing said")


@attrs.define(eq=False)
class Edge:
    """A server without a port: peers come over memory streams."""

    server: WebSocketServer
    service: FakeService
    nursery: trio.Nursery

    @asynccontextmanager
    async def peer(
        self,
        encoding: Encoding = "json",
        *,
        subprotocols: tuple[str, ...] | None = None,
        headers: list[tuple[bytes, bytes]] | None = None,
        hello: str | None = "run",
    ) -> AsyncIterator[Peer]:
        """A connected peer, past its hello unless ``hello`` is None."""
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.server.serve_stream, theirs)
        codec = CLIENT_CODECS[encoding]
        async with trio.open_nursery() as reading:
            socket = await ws.wrap_client_stream(
                reading,
                ours,  # type: ignore[arg-type]
                "localhost",
                "/",
                subprotocols=(codec.subprotocol,) if subprotocols is None else subprotocols,
                extra_headers=headers,
                max_message_size=2**30,
                receive_buffer_size=2**18,
            )
            peer = Peer(socket, ours, codec)
            if hello is not None:
                welcome = await peer.hello(hello)
                assert isinstance(welcome, m.Welcome), welcome
            yield peer
            with trio.move_on_after(5):
                await socket.aclose()
            await trio.aclose_forcefully(ours)
            reading.cancel_scope.cancel()

    async def settled(self) -> None:
        """Wait until every connection has ended."""
        while self.server.connections or self.server.state.unauthenticated:
            await self.server._left.park()


def make_server(service: FakeService, **settings: Any) -> WebSocketServer:
    config = ServerConfig(**{"tokens": TOKENS, "auth_delay_s": 0.001, **settings})
    state = ServerState(
        tokens=TokenBook(config.token_file, config.tokens),
        throttle=Throttle(config.auth_delay_s, config.auth_delay_max_s),
        tools={tool.name: tool for tool in service.tool_list()},
    )
    return WebSocketServer(service, config, state)


@asynccontextmanager
async def open_edge(service: FakeService | None = None, **settings: Any) -> AsyncIterator[Edge]:
    """An edge for the time of the block; then its connections must have ended by themselves."""
    service = service or FakeService()
    server = make_server(service, **settings)
    await server.state.tokens.load()
    async with trio.open_nursery() as nursery:
        edge = Edge(server, service, nursery)
        yield edge
        with trio.fail_after(60):
            await edge.settled()
        nursery.cancel_scope.cancel()
