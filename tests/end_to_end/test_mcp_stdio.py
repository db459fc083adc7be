"""`session-query mcp` as hosts run it: the official client over standard input and output."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client, MCPError, types

from session_query.actors.clients import open_client
from session_query.actors.hosts.assembly import operator_token
from session_query.actors.hosts.mcp.results import RECEIPT_KEY, SPILLED_KEY
from session_query.actors.hosts.mcp.spilled import PIECE_KEY
from session_query.protocol.tools.prompt import PROMPT_TEXT
from support.mcp_process import CLI, SAMPLE_LOGS, WEBSHOP, data_dirs, end_service, environ, holder, stdio

pytestmark = pytest.mark.slow
CHECKOUT = "5b6c1f0e-3a52-4c0a-9d53-0c9a4e1f7a01"
LONG = "".join(f'строка {number}: 结账 \U0001f6d2 "total"\t≠ naïve\n' for number in range(3_000))
"""About 150,000 bytes of text whose characters have one to four."""
LOG_ID = "0aa11bb2-0000-4000-8000-00000000cafe"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample sessions and one with a tool result too long to show."""
    folder = tmp_path_factory.mktemp("logs") / "-home-ada-webshop"
    folder.mkdir()
    common = {"sessionId": LOG_ID, "cwd": WEBSHOP, "timestamp": "2026-10-01T00:00:00Z", "version": "2.0.1"}
    records: list[dict[str, Any]] = [
        {
            "type": "user",
            "uuid": "u1",
            "parentUuid": None,
            "message": {"role": "user", "content": "Print it all"},
        },
        {
            "type": "assistant",
            "uuid": "u2",
            "parentUuid": "u1",
            "message": {"role": "assistant", "content": [{"type": "text", "text": LONG}]},
        },
    ]
    lines = [json.dumps({**common, **record}, ensure_ascii=False) for record in records]
    (folder / f"{LOG_ID}.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return os.pathsep.join((SAMPLE_LOGS, f"claude-code={folder.parent}"))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with data_dirs(tmp_path_factory.mktemp("mcp") / "data") as (place,):
        yield place


def text_of(answer: types.CallToolResult) -> str:
    block = answer.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


async def test_all_five_tools_answer_through_a_service_that_was_not_there(data_dir: Path, logs: str) -> None:
    assert holder(data_dir) is None
    async with Client(stdio(data_dir, "--workspace", WEBSHOP, logs=logs), mode="legacy") as client:
        assert client.instructions == PROMPT_TEXT
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answers: dict[str, types.CallToolResult] = {}

        async def told(progress: float, total: float | None, message: str | None) -> None:
            assert message is not None
            assert "reading session logs" in message

        answers["session_search"] = await client.call_tool(
            "session_search", {"query": "ERR_POOL_EXHAUSTED", "match": "exact"}, progress_callback=told
        )
        target: dict[str, Any] = {"session_id": CHECKOUT}
        answers["session_event_search"] = await client.call_tool(
            "session_event_search", {**target, "query": "ERR_POOL_EXHAUSTED"}
        )
        seq = int(re.findall(r"seq (\d+)", text_of(answers["session_event_search"]))[0])
        for tool, more in (
            ("session_trace", {}),
            ("session_event_trace", {"seq": seq}),
            ("session_event_read", {"seq": seq, "before": 1}),
        ):
            answers[tool] = await client.call_tool(tool, {**target, **more})
    assert list(answers) == tools
    assert [answer.is_error for answer in answers.values()] == [False] * 5, answers
    assert all(CHECKOUT in text_of(answer) for answer in answers.values())
    assert "ERR_POOL_EXHAUSTED" in text_of(answers["session_event_read"])
    for name, answer in answers.items():
        has_receipt = answer.meta is not None and RECEIPT_KEY in answer.meta
        assert has_receipt == name.endswith("search")
    receipt = (answers["session_search"].meta or {})[RECEIPT_KEY]
    assert receipt["sessions_in_reach"] == 4, "this workspace alone"
    assert receipt["text"] in text_of(answers["session_search"])


async def test_only_the_workspace_is_seen_whatever_the_arguments_say(data_dir: Path, logs: str) -> None:
    more = {"workspace": "/home/lin/tianqi", "agent": "session-tianqi-0001", "reach": "all"}
    hidden = {"session_id": "session-tianqi-0001", **more}
    async with Client(stdio(data_dir, "--workspace", WEBSHOP, logs=logs)) as client:
        there = await client.call_tool("session_trace", hidden)
        missing = await client.call_tool("session_trace", {**hidden, "session_id": "no-such-session"})
        found = await client.call_tool("session_search", {"query": "时区", **more})
    assert there.content == missing.content
    assert there.is_error is True
    assert "No match" in text_of(found)


async def test_a_spilled_result_is_read_completely_and_to_the_byte(data_dir: Path, logs: str) -> None:
    async with Client(stdio(data_dir, "--workspace", WEBSHOP, logs=logs)) as client:
        answer = await client.call_tool("session_event_read", {"session_id": LOG_ID, "seq": 1})
        assert answer.meta is not None
        spilled = answer.meta[SPILLED_KEY]
        link = answer.content[1]
        assert isinstance(link, types.ResourceLink)
        (whole,) = (await client.read_resource(link.uri)).contents
        assert isinstance(whole, types.TextResourceContents)
        pieces, offset = list[str](), 0
        while offset < spilled["total_bytes"]:
            (piece,) = (await client.read_resource(f"{link.uri}?offset={offset}&limit=40001")).contents
            assert isinstance(piece, types.TextResourceContents)
            assert piece.meta is not None
            pieces.append(piece.text)
            offset = piece.meta[PIECE_KEY]["next_offset"]
    assert len(text_of(answer).encode()) <= 50_000
    assert link.uri in text_of(answer)
    assert len(whole.text.encode()) == spilled["total_bytes"]
    assert "".join(pieces) == whole.text
    assert max(len(piece.encode()) for piece in pieces) <= 40_001
    (kept,) = (data_dir / "spill").rglob("*session_event_read.txt")
    assert kept.read_bytes() == whole.text.encode()
    assert kept.stat().st_mode & 0o777 == 0o600
    event = json.loads(re.findall(r"```json\n(.*?)\n```", whole.text, re.DOTALL)[0])
    assert event["data"]["message"]["content"][0]["text"] == LONG, "nothing of the event is lost on the way"


async def test_a_cancelled_call_reaches_the_service_and_the_next_one_works(data_dir: Path, logs: str) -> None:
    async with Client(stdio(data_dir, "--workspace", WEBSHOP, logs=logs)) as client:
        assert (await client.call_tool("session_search", {"query": "checkout"})).is_error is False
        service = holder(data_dir)
        assert service is not None
        before = await aborted(data_dir)
        os.kill(service.pid, signal.SIGSTOP)  # so that the answer cannot come first
        try:
            with pytest.raises(MCPError, match=r"[Tt]imed out"):
                await client.call_tool("session_search", {"query": "checkout"}, read_timeout_seconds=0.2)
            for _ in range(3):  # answered behind the cancellation, which has then been handed on
                await client.list_resources()
        finally:
            os.kill(service.pid, signal.SIGCONT)
        assert "checkout" in text_of(await client.call_tool("session_search", {"query": "checkout"})).lower()
        assert await aborted(data_dir) == before + 1


async def aborted(data_dir: Path) -> int:
    """How many requests the service has ended early so far."""

    found = holder(data_dir)
    assert found is not None
    assert found.url is not None
    async with open_client(found.url, operator_token(data_dir)) as client:
        value: Any = await client.query("statistics")
    return int(value["connections"]["errors"].get("SESSION_QUERY_ABORTED", 0))


async def test_two_clients_that_start_at_once_share_one_service_and_one_index(
    tmp_path: Path, logs: str
) -> None:
    texts: list[str] = []

    async def visit(place: Path) -> None:
        async with Client(stdio(place, "--workspace", WEBSHOP, logs=logs)) as client:

            async def told(progress: float, total: float | None, message: str | None) -> None:
                assert total

            answer = await client.call_tool(
                "session_search", {"query": "compute_total", "match": "exact"}, progress_callback=told
            )
            texts.append(text_of(answer))
            arrived[0] += 1
            if arrived[0] == 2:
                both.set()
            await both.wait()
            pids.add(holder(place))

    both, arrived, pids = trio.Event(), [0], set[Any]()
    with data_dirs(tmp_path / "data") as (place,):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(visit, place)
        assert len(pids) == 1
        assert len(list(place.glob("*.db"))) == 2, "one journal, one index"
    assert len(texts) == 2
    assert all(CHECKOUT in text for text in texts)


def talk(data_dir: Path, logs: str, lines: list[object], *arguments: str) -> tuple[list[Any], str, int]:
    """A raw peer: what came back line by line, standard error, and the exit status."""
    words = [*CLI, "mcp", "--data-dir", str(data_dir), "--workspace", WEBSHOP, *arguments]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ(logs)
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers: list[Any] = []
    try:
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            process.stdin.write(data + b"\n")
            process.stdin.flush()
            if isinstance(line, dict) and "id" in line:
                answers.append(process.stdout.readline())
        process.stdin.close()
        process.stdin = None
        rest, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    return [*answers, *rest.splitlines()], errors.decode(), process.returncode


def test_standard_output_carries_protocol_and_nothing_else(data_dir: Path, logs: str) -> None:
    hello = {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    }
    read = {"name": "session_event_read", "arguments": {"session_id": LOG_ID, "seq": 1}}
    lines, errors, status = talk(
        data_dir,
        logs,
        [
            b"this is no message",
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            b'{"jsonrpc": "2.0", "id": 99, "method": ',
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": read},
            {"jsonrpc": "2.0", "id": 4, "method": "no/such/method"},
            {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "session_search"}},
        ],
        "--verbose",
    )
    messages = [json.loads(line) for line in lines]
    assert [message["id"] for message in messages] == [1, 2, 3, 4, 5]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    assert messages[0]["result"]["protocolVersion"] == "2024-11-05"
    assert messages[0]["result"]["instructions"] == PROMPT_TEXT
    assert len(messages[1]["result"]["tools"]) == 5
    assert [block["type"] for block in messages[2]["result"]["content"]] == ["text"], "links came later"
    assert messages[3]["error"]["code"] == -32601
    assert messages[4]["result"]["isError"] is True
    assert "DEBUG" in errors, "the log goes to standard error"
    assert status == 0
    assert holder(data_dir) is not None, "the service is others', too"


async def test_a_service_that_is_restarted_is_found_again(data_dir: Path, logs: str) -> None:
    async with Client(stdio(data_dir, "--workspace", WEBSHOP, logs=logs)) as client:
        first = await client.call_tool("session_trace", {"session_id": CHECKOUT})
        before = holder(data_dir)
        await trio.to_thread.run_sync(end_service, data_dir)
        second = await client.call_tool("session_trace", {"session_id": CHECKOUT})
        after = holder(data_dir)
    assert first.content == second.content
    assert before is not None
    assert after is not None
    assert before.pid != after.pid


async def test_the_folder_it_is_started_in_is_the_workspace(
    data_dir: Path, tmp_path: Path, logs: str
) -> None:
    async with Client(stdio(data_dir, logs=logs, cwd=tmp_path)) as client:
        answer = await client.call_tool("session_search", {"query": "checkout"})
    assert "Looked in 0 sessions" in text_of(answer)


async def test_an_agent_is_never_shown_itself(data_dir: Path, logs: str) -> None:
    async with Client(stdio(data_dir, "--agent", CHECKOUT, logs=logs)) as client:
        answer = await client.call_tool("session_search", {"query": "ERR_POOL_EXHAUSTED"})
        own = await client.call_tool("session_trace")
    assert f". {CHECKOUT}" not in text_of(answer)
    assert CHECKOUT in text_of(own)
