"""A real service process, real sockets, foreign clients: what runtimes and agents see of it."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import Client, open_client
from session_query.actors.clients import ServerError
from support.served import Served, served

pytestmark = pytest.mark.slow
FOREIGN = Path(__file__).parent.parent / "support" / "foreign_tools_client.py"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "data") as running:
        yield running


def _header(session_id: str, cwd: str = "/w") -> dict[str, Any]:
    return {"version": 0, "id": session_id, "createdAt": 1_700_000_000_000, "cwd": cwd}


def _prompt(text: str, time: int = 1) -> dict[str, Any]:
    return {
        "type": "user/message",
        "time": time,
        "surfaceOp": "append",
        "data": {
            "id": f"m{time}",
            "role": "user",
            "source": {"kind": "user"},
            "content": [{"type": "text", "text": text}],
        },
    }


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_a_foreign_client_goes_through_all_five_tools(service: Served, encoding: str) -> None:
    command = [sys.executable, str(FOREIGN), service.url, service.token, encoding]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["welcome"], seen["attached"], seen["seeded"], seen["through"]) == ("welcome", 0, 3, 3)
    assert seen["server"] == {"name": "session-query", "version": importlib.metadata.version("session-query")}
    assert len(seen["tools"]) == 5
    target = f"teller-{encoding}"
    for key in ("search", "chinese", "events", "trace", "event_trace", "read"):
        assert seen[key]["type"] == "result", seen[key]
        assert target in seen[key]["text"]
    assert f"asker-{encoding}" not in seen["search"]["text"]  # a search never returns its caller
    assert seen["search"]["receipt"]["tiers"] == ["exact"]
    assert "结账" in seen["read"]["text"]
    assert f"asker-{encoding}" in seen["own"]["text"]
    assert seen["unknown_tool"] == "UNKNOWN_TOOL"
    assert seen["wrong_arguments"] == "INVALID_ARGS"
    assert seen["unauthorised"] == "SESSION_QUERY_TOOL_UNAUTHORIZED"
    assert len(seen["page"]["value"]["hits"]) == 1


async def _published(client: Client, session_id: str, cwd: str, text: str) -> None:
    publication = await client.publish(_header(session_id, cwd))
    await publication.append([_prompt(text)])


async def test_a_second_agent_of_the_workspace_finds_it_and_another_workspace_learns_nothing(
    service: Served,
) -> None:
    async with open_client(service.url, service.token) as runtime:
        await _published(runtime, "secret-plan", "/border/a", "the zeppelin protocol is ready")
        async with open_client(service.url, service.token) as other:
            found = await other.call("session_search", {"query": "zeppelin protocol"}, workspace="/border/a")
            assert "secret-plan" in found.text
            hidden = await other.call("session_search", {"query": "zeppelin protocol"}, workspace="/border/b")
            missing = await other.call(
                "session_search", {"query": "zeppelin protocol"}, workspace="/border/c"
            )
            assert (hidden.text, hidden.receipt) == (missing.text, missing.receipt)
            assert "zeppelin" not in hidden.text
            for tool, arguments in (
                ("session_trace", {}),
                ("session_event_search", {"query": "zeppelin"}),
                ("session_event_trace", {"seq": 0}),
                ("session_event_read", {"seq": 0}),
            ):
                answers = []
                for name in ("secret-plan", "no-such-plan"):
                    with pytest.raises(ServerError) as caught:
                        await other.call(tool, {"session_id": name} | arguments, workspace="/border/b")
                    answers.append((caught.value.code, str(caught.value)))
                assert answers[0] == answers[1]


async def test_what_was_acknowledged_survives_sigkill(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as first:
        async with open_client(first.url, first.token) as client:
            await _published(client, "s1", "/w", "acknowledged before the end")
            first.kill()
    with served(data) as second:
        async with open_client(second.url, second.token) as client:
            found = await client.call("session_search", {"query": "acknowledged before"}, workspace="/w")
            assert "s1" in found.text
            listed = await client.query("list_sessions")
            assert isinstance(listed, dict)


async def test_sigterm_says_goodbye_and_ends_in_good_order(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--grace", "0.2") as running:
        async with open_client(running.url, running.token) as client:
            await _published(client, "s1", "/w", "hello")
            status = await trio.to_thread.run_sync(running.terminate)
    assert status == 0
    assert "ERROR" not in running.log.read_text()


def test_commands_use_the_running_service(service: Served, tmp_path: Path) -> None:
    data_dir = service.token_file.parent
    command = [sys.executable, "-m", "session_query.actors.hosts.cli", "--data-dir", str(data_dir)]
    done = subprocess.run(
        [*command, "sessions", "--all", "--json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sessions"]


def test_a_second_service_on_the_same_data_is_told_where_the_first_is(service: Served) -> None:
    data_dir = service.token_file.parent
    command = [sys.executable, "-m", "session_query.actors.hosts.cli", "--data-dir", str(data_dir), "serve"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4
    assert service.url in done.stderr
    assert "Traceback" not in done.stderr
