"""The staged stop: goaway, grace, shutdown aborts, 1001; asked for, or by the host's cancellation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
import trio_websocket as ws

from session_query.actors.edge.server import WebSocketServer, serve_websocket
from session_query.actors.edge.server_config import ServerConfig
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import CLIENT_CODECS
from support.raw_websocket import RawPeer
from support.wire_edge import TOKENS, Peer, header, open_edge
from support.wire_fake import FakeService

Clock = trio.testing.MockClock


def call(request_id: int, do: str, **wish: Any) -> m.Call:
    return m.Call(id=request_id, tool="read", arguments={"do": do, **wish}, workspace="/w")


async def test_what_runs_may_finish_within_the_grace(autojump_clock: Clock) -> None:
    async with open_edge() as edge, edge.peer() as peer, edge.peer() as idle:
        await peer.ask(m.Attach(id=1, session=header()))
        await peer.send(call(2, "stubborn", s=3))
        await trio.testing.wait_all_tasks_blocked()
        edge.server.stop("maintenance", grace_s=5.0)
        edge.nursery.start_soon(edge.server.drain)
        assert await peer.receive() == m.Goaway(reason="maintenance", grace_ms=5000)
        refused = await peer.ask(call(3, ""))
        assert refused.code == "SHUTTING_DOWN"
        finished = await peer.receive()
        assert (finished.id, type(finished)) == (2, m.Result)
        assert await peer.closed() == (1001, "maintenance")
        assert await idle.receive() == m.Goaway(reason="maintenance", grace_ms=5000)
        assert await idle.closed() == (1001, "maintenance")
        await edge.settled()
        assert edge.service.sessions["s1"].token_id is None


async def test_what_outlasts_the_grace_is_aborted_with_shutdown(autojump_clock: Clock) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(call(1, "wait"))
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        edge.server.stop(grace_s=5.0)
        edge.nursery.start_soon(edge.server.drain)
        assert isinstance(await peer.receive(), m.Goaway)
        error = await peer.receive()
        assert trio.current_time() - before == pytest.approx(5.0)
        assert (error.id, error.code, error.abort) == (1, "SESSION_QUERY_ABORTED", m.Abort(kind="shutdown"))
        assert (await peer.closed())[0] == 1001


async def test_a_handler_that_ignores_everything_does_not_stop_the_stop(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_edge(settle_s=4.0) as edge, edge.peer() as peer:
        await peer.send(call(1, "deaf"))
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        edge.server.stop(grace_s=1.0)
        await edge.server.drain()
        assert edge.server.connections == {}
        assert trio.current_time() - before < 15
    assert "goes on without its peer" in caplog.text


async def test_a_peer_that_does_not_read_holds_the_stop_up_as_long_as_a_close_may_take(
    autojump_clock: Clock,
) -> None:
    """Its answers are ready and wait for it alone; nobody waits the time that a handler would be given."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    async with open_edge(settle_s=1000.0, close_s=2.0, unsent_bytes=1000, part_bytes=1000) as edge:
        edge.nursery.start_soon(edge.server.serve_stream, theirs)
        peer = RawPeer(ours)
        await peer.handshake()
        await peer.hello()
        for number in range(5):
            arguments = {"do": "big", "n": 5000}
            await peer.say(
                {"type": "call", "id": number, "tool": "read", "arguments": arguments, "workspace": "/w"}
            )
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        edge.server.stop(grace_s=1.0)
        await edge.server.drain()
        assert edge.server.connections == {}
        assert trio.current_time() - before <= 1.0 + 3 * 2.0
        await trio.aclose_forcefully(ours)


async def test_nobody_gets_in_while_it_stops(autojump_clock: Clock) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(call(1, "stubborn", s=3))
        await trio.testing.wait_all_tasks_blocked()
        edge.server.stop(grace_s=10.0)
        edge.nursery.start_soon(edge.server.drain)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.RaisesGroup(ws.ConnectionRejected, flatten_subgroups=True):
            async with edge.peer():
                pass


# ---------------------------------------------------------------- the whole door, over a real port


@asynccontextmanager
async def connected(server: WebSocketServer, hello: str = "run") -> AsyncIterator[Peer]:
    codec = CLIENT_CODECS["json"]
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream, trio.open_nursery() as reading:
        socket = await ws.wrap_client_stream(reading, stream, "x", "/", subprotocols=[codec.subprotocol])
        peer = Peer(socket, stream, codec)
        assert isinstance(await peer.hello(hello), m.Welcome)
        yield peer
        await socket.aclose()
        reading.cancel_scope.cancel()


async def test_the_door_reports_its_port_and_returns_when_stopped() -> None:
    service = FakeService()
    config = ServerConfig(tokens=TOKENS, settle_s=1.0)
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_websocket, service, config)
        assert server.port > 0
        assert server.url == f"ws://127.0.0.1:{server.port}/"
        async with connected(server) as peer:
            await peer.ask(m.Attach(id=1, session=header()))
            await peer.send(call(2, "wait"))
            await service.entered.wait()
            server.stop("bye", grace_s=0.05)
            assert await peer.receive() == m.Goaway(reason="bye", grace_ms=50)
            assert (await peer.receive()).abort == m.Abort(kind="shutdown")
            assert await peer.closed() == (1001, "bye")
    assert service.sessions["s1"].token_id is None
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", server.port)


async def test_a_cancelled_host_gets_the_same_stop_without_grace() -> None:
    service = FakeService()
    config = ServerConfig(tokens=TOKENS, settle_s=1.0)
    async with trio.open_nursery() as clients, trio.open_nursery() as host:
        server = await host.start(serve_websocket, service, config)
        heard: list[Any] = []

        async def client(*, task_status: trio.TaskStatus[None]) -> None:
            async with connected(server) as peer:
                await peer.ask(m.Attach(id=1, session=header()))
                await peer.send(call(2, "wait"))
                await service.entered.wait()
                task_status.started()
                heard.extend([await peer.receive(), await peer.receive(), await peer.closed()])

        await clients.start(client)
        host.cancel_scope.cancel()
    assert heard == [
        m.Goaway(reason="the service is stopping", grace_ms=0),
        m.Error(
            id=2,
            code="SESSION_QUERY_ABORTED",
            message="the service is stopping",
            abort=m.Abort(kind="shutdown"),
        ),
        (1001, "the service is stopping"),
    ]
    assert service.sessions["s1"].token_id is None
    assert service.running == 0
