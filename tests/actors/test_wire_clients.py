"""The two client libraries against the real edge over real ports: the same scenario, and broken lines."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trustme

from session_query.actors import clients
from session_query.actors.clients.asyncio_client import AsyncioClient, open_asyncio_client
from session_query.actors.edge.server import WebSocketServer, serve_websocket
from session_query.actors.edge.server_config import ServerConfig
from session_query.protocol.signal import Signal
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Encoding
from support.wire_edge import TOKENS, event, header
from support.wire_fake import FakeService

QUICK = clients.Backoff(first_s=0.01, most_s=0.05, give_up_after_s=20.0)
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


@asynccontextmanager
async def running(service: FakeService, **settings: Any) -> AsyncIterator[WebSocketServer]:
    config = ServerConfig(
        **{"tokens": TOKENS, "settle_s": 1.0, "close_s": 0.5, "auth_delay_s": 0.001, **settings}
    )
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_websocket, service, config)
        yield server
        server.stop(grace_s=0)


async def in_asyncio(main: Callable[[], Awaitable[None]]) -> None:
    """Run an asyncio program beside the Trio one that serves it."""

    def run() -> None:
        async def bounded() -> None:
            await asyncio.wait_for(main(), 30)

        asyncio.run(bounded())

    await trio.to_thread.run_sync(run)


async def scenario(client: clients.Client | AsyncioClient) -> None:
    """What a runtime does, from publishing to fetching."""
    assert client.welcome is not None
    assert client.welcome.role == "runtime"
    assert [tool.name for tool in (await client.tools()).tools] == ["find", "read"]
    publication = await client.publish(header("pub"), [event("seed")])
    assert (publication.session_id, publication.next_seq) == ("pub", 2)
    await publication.append([event("a"), event("b")])
    await publication.append([])
    publication.append_nowait([event("c")])
    publication.append_nowait([event("d")])
    await publication.flush()
    assert publication.next_seq == 6
    news: list[m.Progress] = []
    result = await client.call(
        "read", {"do": "count", "n": 5}, agent="pub", call_id="c1", on_progress=news.append
    )
    assert result.card == {"kind": "read"}
    assert news[0].total == 5
    big = await client.call("read", {"do": "big", "n": 300_000}, workspace="/w")
    assert big.text == "é" * 300_000
    with pytest.raises(clients.RequestAborted) as expired:
        await client.call("read", {"do": "wait"}, workspace="/w", deadline_ms=20)
    assert (expired.value.code, expired.value.kind) == ("TOOL_TIMEOUT", "deadline")
    signal = Signal()
    signal.abort({"why": "already"})
    with pytest.raises(clients.RequestAborted) as aborted:
        await client.call("read", {"do": "wait"}, workspace="/w", signal=signal)
    assert (aborted.value.kind, aborted.value.reason) == ("cancelled", {"why": "already"})
    with pytest.raises(clients.ServerError) as refused:
        await client.query("list_sessions")
    assert refused.value.code == "FORBIDDEN"
    with pytest.raises(clients.LocalProtocolError):
        await publication.append([{"type": "x", "time": 1, "data": float("nan")}])
    assert await client.fetch_all("loc") == "aé𝄞z" * 1000
    with pytest.raises(clients.ServerError):
        await client.publish(header("x", cwd="/elsewhere"))
    await publication.close()
    with pytest.raises(clients.ConnectionLost):
        publication.append_nowait([event("late")])


def scenario_service() -> FakeService:
    return FakeService(spilled={"loc": ("id-run", ("aé𝄞z" * 1000).encode())})


@both_encodings
async def test_the_trio_client(encoding: Encoding) -> None:
    service = scenario_service()
    async with (
        running(service, fetch_bytes=1000) as server,
        clients.open_client(server.url, "run", encoding=encoding) as client,
    ):
        await scenario(client)
    texts = [item["data"].get("text") for item in service.sessions["pub"].events]
    assert texts == ["seed", None, "a", "b", "c", "d"]


@both_encodings
async def test_the_asyncio_client(encoding: Encoding) -> None:
    service = scenario_service()
    async with running(service, fetch_bytes=1000) as server:

        async def main() -> None:
            async with open_asyncio_client(server.url, "run", encoding=encoding) as client:
                await scenario(client)

        await in_asyncio(main)
    texts = [item["data"].get("text") for item in service.sessions["pub"].events]
    assert texts == ["seed", None, "a", "b", "c", "d"]


async def test_a_bad_token_is_told_on_entry() -> None:
    async with running(FakeService()) as server:
        with pytest.raises(clients.Unauthenticated):
            async with clients.open_client(server.url, "wrong"):
                pytest.fail("let in")

        async def main() -> None:
            with pytest.raises(clients.Unauthenticated):
                async with open_asyncio_client(server.url, None):
                    pytest.fail("let in")

        await in_asyncio(main)


async def test_nobody_there_is_told_on_entry() -> None:
    async with running(FakeService()) as server:
        url = server.url
    for backoff in (clients.NO_RECONNECT, clients.Backoff(first_s=0.01, most_s=0.02, give_up_after_s=0.1)):
        with pytest.raises(clients.ConnectionLost) as lost:
            async with clients.open_client(url, "run", backoff=backoff):
                pytest.fail("connected to nothing")
        assert isinstance(lost.value.__cause__, OSError)

        async def main(backoff: clients.Backoff = backoff) -> None:
            with pytest.raises(clients.ConnectionLost):
                async with open_asyncio_client(url, "run", backoff=backoff):
                    pytest.fail("connected to nothing")

        await in_asyncio(main)


async def test_an_error_in_the_block_comes_bare() -> None:
    async with running(FakeService()) as server:
        with pytest.raises(ValueError, match="mine"):
            async with clients.open_client(server.url, "run"):
                raise ValueError("mine")


async def test_cancelling_a_task_cancels_its_request() -> None:
    service = FakeService()
    async with running(service) as server, clients.open_client(server.url, "run") as client:
        with trio.move_on_after(0.05):
            await client.call("read", {"do": "wait"}, workspace="/w")
        await client.tools()
        assert service.running == 0
        assert service.signals[0].aborted

        async def main() -> None:
            async with open_asyncio_client(server.url, "run") as other:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(other.call("read", {"do": "wait"}, workspace="/w"), 0.05)
                await other.tools()

        await in_asyncio(main)
        assert service.running == 0


async def vandal(server: WebSocketServer) -> None:
    """Break every line, again and again, just long enough after one another for something to pass."""
    while True:
        await trio.sleep(0.012)
        for connection in tuple(server.connections.values()):
            await trio.aclose_forcefully(connection.link.stream)


@pytest.mark.slow
@both_encodings
async def test_publishing_survives_lines_that_break_all_the_time(encoding: Encoding) -> None:
    service = FakeService()
    async with (
        running(service) as server,
        clients.open_client(server.url, "run", encoding=encoding, backoff=QUICK) as client,
        trio.open_nursery() as nursery,
    ):
        publication = await client.publish(header())
        nursery.start_soon(vandal, server)
        for n in range(200):
            publication.append_nowait([event(str(n))])
            if n % 5 == 0:
                await publication.flush()
                assert (await client.call("read", {"n": n}, agent="s1")).text == str({"n": n})
        await publication.flush()
        nursery.cancel_scope.cancel()
    assert [item["data"]["text"] for item in service.sessions["s1"].events] == [str(n) for n in range(200)]
    assert server.state.opened > 2


@pytest.mark.slow
async def test_the_asyncio_client_comes_back_too() -> None:
    service = FakeService()
    async with running(service) as server, trio.open_nursery() as nursery:

        async def main() -> None:
            async with open_asyncio_client(server.url, "run", backoff=QUICK) as client:
                publication = await client.publish(header())
                for n in range(100):
                    publication.append_nowait([event(str(n))])
                    if n % 5 == 0:
                        await publication.flush()
                await publication.flush()

        nursery.start_soon(vandal, server)
        await in_asyncio(main)
        nursery.cancel_scope.cancel()
    assert [item["data"]["text"] for item in service.sessions["s1"].events] == [str(n) for n in range(100)]


async def test_a_restarted_server_is_found_again() -> None:
    """Requests made while nobody is there are answered by the next server on that port."""
    service = FakeService()
    stopped = trio.Event()

    async def first_life(*, task_status: trio.TaskStatus[WebSocketServer]) -> None:
        await serve_websocket(service, ServerConfig(tokens=TOKENS, settle_s=1.0), task_status=task_status)
        stopped.set()

    async with trio.open_nursery() as nursery:
        first = await nursery.start(first_life)
        async with clients.open_client(first.url, "run", backoff=QUICK) as client:
            publication = await client.publish(header())
            await publication.append([event("0")])
            first.stop(grace_s=0)
            publication.append_nowait([event("1")])
            answers: list[Any] = []

            async def ask() -> None:
                answers.append(await client.tools())

            async with trio.open_nursery() as asking:
                asking.start_soon(ask)
                await stopped.wait()
                again = ServerConfig(tokens=TOKENS, settle_s=1.0, port=first.port)
                second = await nursery.start(serve_websocket, service, again)
            await publication.flush()
            assert len(answers) == 1
            assert client.welcome is not None
            assert client.welcome.instance == second.state.instance
        second.stop(grace_s=0)
    assert [item["data"]["text"] for item in service.sessions["s1"].events] == ["0", "1"]


async def test_two_runtimes_of_one_token_take_a_session_over() -> None:
    async with running(FakeService()) as server, clients.open_client(server.url, "run") as old:
        first = await old.publish(header())
        await first.append([event("old")])
        async with clients.open_client(server.url, "run") as new:
            second = await new.publish(header())
            assert second.next_seq == 1
            await second.append([event("new")])
            with pytest.raises(clients.ServerError) as lost:
                await first.append([event("too late")])
            assert lost.value.code == "NOT_ATTACHED"


async def test_a_server_that_hangs_up_is_not_waited_for() -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, hang_up, [listener])
        url = f"ws://127.0.0.1:{listener.socket.getsockname()[1]}/"
        with trio.fail_after(30), pytest.raises(clients.ConnectionLost):
            async with clients.open_client(url, "run", backoff=clients.NO_RECONNECT):
                pytest.fail("connected to nothing")
        nursery.cancel_scope.cancel()


async def test_over_tls() -> None:
    authority = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(server_context)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    async with running(FakeService(), ssl_context=server_context) as server:
        async with clients.open_client(server.url, "run", ssl_context=context) as client:
            assert (
                await client.call("read", {"do": "big", "n": 200_000}, workspace="/w")
            ).text == "é" * 200_000
        with pytest.raises(clients.ConnectionLost) as distrusted:
            async with clients.open_client(server.url, "run", backoff=clients.NO_RECONNECT):
                pytest.fail("an unknown authority was trusted")
        assert distrusted.value.__cause__ is not None
        assert isinstance(distrusted.value.__cause__.__cause__, ssl.SSLCertVerificationError)

        async def main() -> None:
            async with open_asyncio_client(server.url, "run", ssl_context=context) as client:
                assert (await client.tools()).prompt

        await in_asyncio(main)
