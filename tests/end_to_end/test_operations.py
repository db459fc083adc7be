"""What an operator sees of a running service: its log, its health, its numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import open_client
from session_query.actors.clients import NO_RECONNECT, ServerError, Unauthenticated
from support.command_line import CommandLine
from support.served import Served, served

pytestmark = pytest.mark.slow
HEADER = {"version": 0, "id": "watched", "createdAt": 1, "cwd": "/w"}
SECRET = "a sentence that belongs to its session alone"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("operated") / "data", "--log-format", "json") as running:
        yield running


@pytest.fixture
def cli(service: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(service.token_file.parent, capsys, monkeypatch)


def _event(time: int) -> dict[str, Any]:
    return {
        "type": "user/message",
        "time": time,
        "surfaceOp": "append",
        "data": {
            "id": f"m{time}",
            "role": "user",
            "source": {"kind": "user"},
            "content": [{"type": "text", "text": SECRET}],
        },
    }


async def _log_with(service: Served, word: str) -> str:
    """The log, as soon as it holds ``word``: a visit's line may come after the visitor has gone."""
    for _ in range(500):
        if word in (text := service.log.read_text()):
            return text
        await trio.sleep(0.02)
    raise AssertionError(f"no line with {word!r} in the log")


async def test_the_log_is_json_lines_without_content(service: Served) -> None:
    with pytest.raises(Unauthenticated):
        async with open_client(service.url, "sq_wrong", backoff=NO_RECONNECT):
            pass
    async with open_client(service.url, service.token) as client:
        publication = await client.publish(HEADER)
        await publication.append([_event(1)])
        with pytest.raises(ServerError):
            await client.query("read_event", {"session_id": SECRET, "seq": 0})
        with pytest.raises(ServerError):
            await client.call(
                "session_trace", {"session_id": SECRET}, reach="all", call_id="call\n\x1b[2J-17"
            )
    text = await _log_with(service, "closed by peer")
    lines = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert SECRET not in text
    failed = {line["operation"]: line for line in lines if "operation" in line}
    assert failed["query"]["code"] == "SESSION_QUERY_SESSION_NOT_FOUND"
    assert failed["query"]["request"] >= 0
    assert " at " in failed["query"]["failure"]
    assert failed["trace_session"]["request"] == "call\n\x1b[2J-17"
    refused = [line for line in lines if line.get("reason") == "unauthenticated"]
    assert [line["level"] for line in refused] == ["warning"]
    assert refused[0]["host"] == "127.0.0.1"
    visits = [line for line in lines if line.get("event") == "connection"]
    assert any(line.get("role") == "operator" and line["reason"] == "closed by peer" for line in visits)
    assert service.token not in text


async def test_statistics_over_the_wire_and_on_the_command_line(service: Served, cli: CommandLine) -> None:
    async with open_client(service.url, service.token) as client:
        await client.publish({**HEADER, "id": "counted"})
        await client.call("session_search", {"query": "sentence"}, workspace="/w")
        told: Any = await client.query("statistics")
        text: Any = await client.query("metrics")
        done = await trio.to_thread.run_sync(cli, "statistics", "--json")
    assert told["service"]["live_sessions"] == 1
    assert told["service"]["searches"]["served"] >= 1
    assert told["connections"]["open"] == 1
    assert told["connections"]["requests"]["call"] >= 1
    assert "session_query_live_sessions 1\n" in text
    assert 'session_query_requests_total{type="attach"}' in text
    assert json.loads(done.out)["service"]["live_sessions"] == 1
    shown = await trio.to_thread.run_sync(cli, "statistics")
    assert "service.searches.served" in shown.out
    prometheus = await trio.to_thread.run_sync(cli, "statistics", "--prometheus")
    assert "# TYPE session_query_searches_served_total counter\n" in prometheus.out
    assert (done.status, shown.status, prometheus.status) == (0, 0, 0)


def test_health_tells_by_its_exit_status(
    service: Served,
    cli: CommandLine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = cli("health", "--json")
    assert (done.status, json.loads(done.out)["ready"]) == (0, True)
    nobody = CommandLine(tmp_path, capsys, monkeypatch)("health")
    assert (nobody.status, "NO_SERVICE" in nobody.err) == (3, True)
    assert list(tmp_path.iterdir()) == [], "asking makes nothing"
