"""The way to the service, seen from inside: busy, lost and refused lines; a service that ends when idle."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from session_query.actors.edge.server import serve_websocket
from session_query.actors.edge.server_config import ServerConfig
from session_query.actors.hosts.cli import mcp as command
from session_query.actors.hosts.mcp import link as link_module
from session_query.actors.hosts.mcp.launching import ServiceUnavailable
from session_query.actors.hosts.mcp.link import ASKS_MAX, BUSY_MAX, ServiceLink
from session_query.actors.hosts.running import stop_when_idle
from session_query.protocol.errors import QueryError
from session_query.protocol.wire.client_errors import ConnectionLost, ServerBusy, Unauthenticated
from session_query.storage.tokens import OPERATOR_FILE, TOKEN_FILE, ensure_operator_token
from support.command_line import CommandLine
from support.mcp_hosts import FixedStarter, m_error
from support.wire_fake import FakeService


@asynccontextmanager
async def linked(data_dir: Path, service: FakeService) -> AsyncIterator[ServiceLink]:
    """A link to an edge over a scripted service, on a real port."""
    await trio.to_thread.run_sync(ensure_operator_token, data_dir)
    config = ServerConfig(token_file=data_dir / TOKEN_FILE, auth_delay_s=0.001)
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_websocket, service, config)
        link = ServiceLink(FixedStarter(data_dir, url=server.url))
        await nursery.start(link.run)
        yield link
        nursery.cancel_scope.cancel()


async def health(link: ServiceLink) -> Any:
    return await link.ask(lambda client: client.query("health"))


async def opened(link: ServiceLink) -> int:
    """How many connections the edge has seen so far."""
    counters: Any = await link.ask(lambda client: client.query("statistics"))
    return int(counters["connections"]["opened"])


async def test_one_line_serves_all_who_ask(tmp_path: Path) -> None:
    async with linked(tmp_path, FakeService()) as link:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(health, link)
        assert await opened(link) == 1


async def test_busy_is_asked_again_a_bounded_number_of_times(tmp_path: Path) -> None:
    async with linked(tmp_path, FakeService()) as link:
        answers: list[Any] = [m_error("BUSY", retry_after_ms=1), m_error("BUSY", retry_after_ms=1), "done"]

        async def work(client: Any) -> str:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return str(answer)

        assert await link.ask(work) == "done"
        answers[:] = [m_error("BUSY", retry_after_ms=1)] * (BUSY_MAX + 2)
        with pytest.raises(ServerBusy):
            await link.ask(work)
    assert len(answers) == 1


async def test_a_line_that_is_lost_again_and_again_is_given_up(tmp_path: Path) -> None:
    asked = 0

    async def work(client: Any) -> None:
        nonlocal asked
        asked += 1
        raise ConnectionLost("again")

    async with linked(tmp_path, FakeService()) as link:
        with pytest.raises(ServiceUnavailable):
            await link.ask(work)
        assert asked == ASKS_MAX
        assert await health(link) == {"ready": True}, "the next question gets a new line"


async def test_a_refused_token_is_told_and_the_next_question_tries_again(tmp_path: Path) -> None:
    async with linked(tmp_path, FakeService()) as link:
        place = trio.Path(tmp_path / OPERATOR_FILE)
        good = await place.read_text()
        await place.write_text("sq_wrong")
        with pytest.raises(Unauthenticated):
            await health(link)
        await place.write_text(good)
        assert await health(link) == {"ready": True}


async def test_an_unsafe_token_file_is_told(tmp_path: Path) -> None:
    async with linked(tmp_path, FakeService()) as link:
        await trio.Path(tmp_path / OPERATOR_FILE).chmod(0o644)
        with pytest.raises(QueryError):
            await health(link)


async def test_a_dead_address_is_tried_until_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "START_S", 0.3)
    await trio.to_thread.run_sync(ensure_operator_token, tmp_path)
    async with trio.open_nursery() as nursery:
        link = ServiceLink(FixedStarter(tmp_path, url="ws://127.0.0.1:9/"))
        await nursery.start(link.run)
        with pytest.raises(ConnectionLost):
            await health(link)
        nursery.cancel_scope.cancel()


async def test_whoever_stops_waiting_leaves_the_line_to_the_others(tmp_path: Path) -> None:
    service = FakeService()
    async with linked(tmp_path, service) as link:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                link.ask, lambda client: client.query("search_sessions", {"query": {"do": "wait"}})
            )
            await service.entered.wait()
            aborted = trio.Event()
            service.signals[0].on_abort(aborted.set)
            nursery.cancel_scope.cancel()
        with trio.fail_after(10):
            await aborted.wait()
        assert await health(link) == {"ready": True}
        assert await opened(link) == 1


# ------------------------------------------------------------ ending when idle


async def test_a_service_ends_when_nobody_was_connected_for_so_long(autojump_clock: Any) -> None:
    stopped: list[float] = []
    began = trio.current_time()
    server: Any = SimpleNamespace(
        connections={},
        state=SimpleNamespace(opened=0),
        stop=lambda reason, grace_s: stopped.append(trio.current_time() - began),
    )

    async def visitors() -> None:
        await trio.sleep(4.5)
        server.connections["one"] = object()
        await trio.sleep(20)
        del server.connections["one"]
        await trio.sleep(5.2)
        server.state.opened += 1  # came and went between two looks

    async with trio.open_nursery() as nursery:
        nursery.start_soon(visitors)
        await stop_when_idle(server, 10.0)
    assert stopped == [pytest.approx(40, abs=1.5)]


# ------------------------------------------------------------ the command


@pytest.mark.parametrize(("version", "says"), [(None, "not installed"), ("1.26.0", "too old (mcp 1.26.0)")])
def test_without_the_sdk_the_command_says_what_to_install(
    version: str | None,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(name: str) -> str:
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)
    cli = CommandLine(tmp_path, capsys, monkeypatch)
    done = cli("mcp")
    assert (done.status, done.out) == (4, "")
    assert says in done.err
    assert f"{sys.executable} -m pip install '.[mcp]'" in done.err
    config = tmp_path / "settings.json"
    installed = cli("mcp", "install", "gemini", "--config", str(config))
    assert (installed.status, says in installed.err) == (0, True)


def test_help_loads_no_sdk_and_an_unknown_host_is_named() -> None:
    code = (
        "import sys; from session_query.actors.hosts.cli.app import app\n"
        "try: app.main(['mcp', '--help'])\n"
        "except SystemExit: print([m for m in sys.modules if m in ('mcp', 'trio', 'pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
    assert "install" in done.stdout


def test_a_host_nobody_knows_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = CommandLine(tmp_path, capsys, monkeypatch)("mcp", "install", "emacs")
    assert done.status == 2
    assert "claude-code" in done.err


def test_a_project_folder_is_never_where_modules_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/some-python")
    assert command._program() == ["/usr/bin/some-python", "-P", "-m", "session_query.actors.hosts.cli"]
