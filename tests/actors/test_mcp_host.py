"""The MCP host under the official client: catalogue, callers, failures, cancels, progress, pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from mcp import MCPError, types

from session_query.actors.hosts.mcp.callers import CallerSource, find_caller, path_of_root
from session_query.actors.hosts.mcp.indexing import WAIT_S
from session_query.actors.hosts.mcp.launching import ServiceUnavailable
from session_query.actors.hosts.mcp.results import CODE_KEY, RECEIPT_KEY, RESOURCE_HINT, SPILLED_KEY
from session_query.actors.hosts.mcp.spilled import PIECE_KEY
from session_query.protocol.tools.prompt import PROMPT_TEXT
from session_query.protocol.tools.schemas import SPECS
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.client_errors import ConnectionLost, LocalProtocolError
from session_query.storage.spill import locator_hint
from support.mcp_hosts import ScriptedClient, connected, m_error, result, scripted_host

LOCATOR = f"spill:{'a' * 32}:{'b' * 32}"
WHOLE = "naïve 和平 \U0001f680 " * 9


@pytest.fixture(params=["legacy", "auto"])
def mode(request: pytest.FixtureRequest) -> Any:
    """Both eras of the protocol: with a handshake, and with an envelope on every request."""
    return request.param


async def test_12_3_1_five_tools_with_our_schemas_and_one_prompt_section(mode: Any) -> None:
    async with connected(scripted_host(ScriptedClient()), mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(SPECS)
        for tool in listed:
            assert tool.input_schema == SPECS[tool.name].parameters()
            assert tool.description == SPECS[tool.name].description
            hints = tool.annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.idempotent_hint) == (True, True)
            assert (hints.destructive_hint, hints.open_world_hint) == (False, False)
        assert client.instructions == PROMPT_TEXT
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("session-query", "1.2.3")


async def test_a_call_names_the_workspace_and_gives_text_and_receipt(mode: Any) -> None:
    wire = ScriptedClient([result("found it", receipt={"sessions_in_reach": 3, "odd": "\ud800"})])
    async with connected(scripted_host(wire), mode=mode) as client:
        answer = await client.call_tool("session_search", {"query": "x", "workspace": "/elsewhere"})
    assert answer.content == [types.TextContent(type="text", text="found it")]
    assert answer.structured_content is None
    assert answer.is_error is False
    assert answer.meta is not None
    assert answer.meta[RECEIPT_KEY] == {"sessions_in_reach": 3, "odd": "\ufffd"}
    ((tool, arguments, how),) = wire.calls
    assert (tool, arguments) == ("session_search", {"query": "x", "workspace": "/elsewhere"})
    assert (how["workspace"], how["agent"]) == ("/proj/here", None)
    assert how["call_id"]


async def test_no_arguments_are_an_empty_object() -> None:
    wire = ScriptedClient([result("x")])
    async with connected(scripted_host(wire)) as client:
        await client.call_tool("session_trace")
    assert wire.calls[0][1] == {}


async def test_lone_surrogates_do_not_break_the_stream() -> None:
    wire = ScriptedClient([result("a\udfffb"), m_error("SESSION_QUERY_INVALID_QUERY", "c\ud800d")])
    async with connected(scripted_host(wire)) as client:
        first = await client.call_tool("session_trace")
        second = await client.call_tool("session_trace")
    texts = [block.text for answer in (first, second) for block in answer.content if block.type == "text"]
    assert texts == ["a\ufffdb", "c\ufffdd [SESSION_QUERY_INVALID_QUERY]"]


# ------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        (m_error("SESSION_QUERY_INVALID_FILTER", "bad filter"), "SESSION_QUERY_INVALID_FILTER", "bad filter"),
        (m_error("INVALID_ARGS", "`query` is required."), "INVALID_ARGS", "`query` is required."),
        (
            m_error("TOOL_TIMEOUT", "stopped at 50 ms", abort=m.Abort("deadline", {"ms": 50})),
            "TOOL_TIMEOUT",
            "stopped at 50 ms",
        ),
        (m_error("BUSY", "raw"), "BUSY", "Try again"),
        (LocalProtocolError("too large"), "INVALID_ARGS", "cannot be sent: too large."),
        (ServiceUnavailable("no lock"), "SESSION_QUERY_TOOL_FAILED", "not available: no lock."),
        (ConnectionLost("gone"), "SESSION_QUERY_TOOL_FAILED", "not available: gone."),
    ],
)
async def test_11_10_a_failure_is_an_error_result_with_its_code(
    failure: Exception, code: str, says: str, mode: Any
) -> None:
    async with connected(scripted_host(ScriptedClient([failure])), mode=mode) as client:
        answer = await client.call_tool("session_search", {"query": "x"})
    assert answer.is_error is True
    (block,) = answer.content
    assert isinstance(block, types.TextContent)
    assert says in block.text
    assert block.text.endswith(f"[{code}]")
    assert answer.meta is not None
    assert answer.meta[CODE_KEY] == code


async def test_a_tool_that_is_not_there_is_the_hosts_error(mode: Any) -> None:
    wire = ScriptedClient()
    async with connected(scripted_host(wire), mode=mode) as client:
        with pytest.raises(MCPError, match="no tool called 'rm'") as caught:
            await client.call_tool("rm", {})
    assert caught.value.code == types.INVALID_PARAMS
    assert wire.calls == []


async def test_a_lower_deadline_goes_with_searches_only() -> None:
    wire = ScriptedClient([result("x"), result("y")])
    async with connected(scripted_host(wire, search_timeout_ms=50)) as client:
        await client.call_tool("session_event_search", {"query": "x"})
        await client.call_tool("session_event_read", {"seq": 1})
    assert [how["deadline_ms"] for _, _, how in wire.calls] == [50, None]


# ------------------------------------------------------------ callers (SPEC 16.11)


async def test_16_11_the_agent_the_host_names_is_the_caller() -> None:
    wire = ScriptedClient([result("x")])
    host = scripted_host(wire, CallerSource("s-1", "/proj/here", "/proj/there", "/home/ada"))
    async with connected(host) as client:
        await client.call_tool("session_trace")
    assert (wire.calls[0][2]["agent"], wire.calls[0][2]["workspace"]) == ("s-1", None)


async def test_an_agent_younger_than_the_index_is_looked_for_once() -> None:
    callers = CallerSource("s-1", None, None, "/home/ada")
    wire = ScriptedClient([m_error("FORBIDDEN"), result("found"), m_error("FORBIDDEN"), m_error("FORBIDDEN")])
    async with connected(scripted_host(wire, callers)) as client:
        assert (await client.call_tool("session_trace")).is_error is False
        assert wire.queries == [("index", {"full": False})]
        answer = await client.call_tool("session_trace")
    (block,) = answer.content
    assert isinstance(block, types.TextContent)
    assert "not known yet" in block.text


def roots(*uris: str) -> Any:
    async def answer(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in uris])  # type: ignore[arg-type]

    return answer


@pytest.mark.parametrize(
    ("source", "declared", "expected"),
    [
        (CallerSource(None, "/given", "/proj/there", "/home/ada"), ["file:///root"], "/given"),
        (CallerSource(None, None, "/proj/there", "/home/ada"), ["file:///root"], "/proj/there"),
        (CallerSource(None, None, "/", "/home/ada"), ["file:///proj/a%20b/"], "/proj/a b"),
        (CallerSource(None, None, None, "/home/ada"), ["file://server/share", "file:///second"], "/second"),
        (CallerSource(None, None, "/home/ada", "/home/ada"), ["file:///project"], "/project"),
        (CallerSource(None, None, "/home/ada", "/home/ada"), [], "/home/ada"),
        (CallerSource(None, None, "/", "/home/ada"), [], None),
    ],
)
async def test_roots_are_a_hint_when_nothing_else_names_a_folder(
    source: CallerSource, declared: list[str], expected: str | None
) -> None:
    wire = ScriptedClient([result("x"), result("y")])
    async with connected(
        scripted_host(wire, attrs.evolve(source)), mode="legacy", list_roots_callback=roots(*declared)
    ) as client:
        first = await client.call_tool("session_trace")
        await client.call_tool("session_trace")
    if expected is None:
        assert first.is_error is True
        assert "--workspace" in str(first.content)
        assert wire.calls == []
    else:
        assert [how["workspace"] for _, _, how in wire.calls] == [expected] * 2


async def test_a_client_without_roots_and_a_host_without_folder_are_told_what_to_do(mode: Any) -> None:
    host = scripted_host(ScriptedClient(), CallerSource(None, None, "/", "/home/ada"))
    async with connected(host, mode=mode) as client:
        answer = await client.call_tool("session_trace")
    assert "--workspace" in str(answer.content)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("file:///", "/"),
        ("file://server/share", None),
        ("https://a/b", None),
        ("file:relative", None),
        ("", None),
    ],
)
def test_a_root_is_a_local_folder(uri: str, path: str | None) -> None:
    assert path_of_root(uri) == path


def test_options_come_before_the_environment_and_links_are_not_resolved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SESSION_QUERY_WORKSPACE", "/from/environment")
    monkeypatch.setenv("SESSION_QUERY_AGENT", "s-9")
    assert find_caller(None, "link").workspace == str(tmp_path / "link")
    assert (find_caller(None, None).workspace, find_caller(None, None).agent) == ("/from/environment", "s-9")
    assert find_caller("s-1", None).agent == "s-1"
    assert find_caller(None, None).folder == str(tmp_path)


# ------------------------------------------------------------ cancelling


async def test_a_cancellation_reaches_the_service_with_its_reason(mode: Any) -> None:
    wire = ScriptedClient([trio.sleep_forever])
    async with connected(scripted_host(wire), mode=mode) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.call_tool, "session_search", {"query": "x"})
        await wire.entered.wait()
        request_id = wire.calls[0][2]["call_id"]
        params = types.CancelledNotificationParams(request_id=request_id, reason="changed my mind")
        aborted = trio.Event()
        wire.signals[0].on_abort(aborted.set)
        await client.session.send_notification(types.CancelledNotification(params=params))
        with trio.fail_after(10):
            await aborted.wait()
        nursery.cancel_scope.cancel()
    assert wire.signals[0].reason == "changed my mind"


async def test_a_client_that_gives_up_waiting_cancels_and_can_go_on() -> None:
    wire = ScriptedClient([trio.sleep_forever, result("next")])
    async with connected(scripted_host(wire)) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "session_search", {"query": "x"})
            await wire.entered.wait()
            nursery.cancel_scope.cancel()
        answer = await client.call_tool("session_search", {"query": "y"})
    assert answer.content == [types.TextContent(type="text", text="next")]
    assert [signal.aborted for signal in wire.signals] == [True, False]


# ------------------------------------------------------------ progress of the first index


def indexing(done: int, total: int) -> m.Result:
    return result("partly", receipt={"indexing": [done, total]})


async def test_progress_of_the_first_index_is_told_and_then_the_search_is_whole() -> None:
    news = [m.Progress(id=1, done=done, total=400, unit="bytes") for done in (100, 100, 50, 300)]

    async def report(on_progress: Any) -> None:
        for each in news:
            on_progress(each)
            await trio.testing.wait_all_tasks_blocked()

    wire = ScriptedClient([indexing(1, 3), result("whole")], on_query=report)
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected(scripted_host(wire)) as client:
        answer = await client.call_tool("session_search", {"query": "x"}, progress_callback=tell)
    assert answer.content == [types.TextContent(type="text", text="whole")]
    assert told == [(100, 400, "reading session logs: 25 %"), (300, 400, "reading session logs: 75 %")]
    assert len(wire.calls) == 2


async def test_nobody_waits_for_the_first_index_unseen_or_for_long(autojump_clock: Any) -> None:
    async def never(on_progress: Any) -> None:
        await trio.sleep_forever()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError("there was none")

    wire = ScriptedClient([indexing(1, 3), indexing(2, 3)], on_query=never)
    async with connected(scripted_host(wire)) as client:
        first = await client.call_tool("session_search", {"query": "x"})
        assert wire.queries == []
        began = trio.current_time()
        second = await client.call_tool("session_search", {"query": "x"}, progress_callback=tell)
        assert trio.current_time() - began == pytest.approx(WAIT_S)
    assert first.content == second.content == [types.TextContent(type="text", text="partly")]
    assert len(wire.calls) == 2


async def test_a_failure_while_following_is_the_calls(mode: Any) -> None:
    async def fail(on_progress: Any) -> None:
        raise m_error("SESSION_QUERY_INDEX_FAILED", "the index could not be written")

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError("there was none")

    wire = ScriptedClient([indexing(1, 3)], on_query=fail)
    async with connected(scripted_host(wire), mode=mode) as client:
        answer = await client.call_tool("session_search", {"query": "x"}, progress_callback=tell)
    assert answer.is_error is True
    assert answer.meta is not None
    assert answer.meta[CODE_KEY] == "SESSION_QUERY_INDEX_FAILED"


# ------------------------------------------------------------ spilled results


def spilled_result() -> m.Result:
    notice = (
        f"[12 bytes are left out here. The whole text is kept as {LOCATOR}. {locator_hint(LOCATOR, Path())}]"
    )
    facts = {"locator": LOCATOR, "total_bytes": len(WHOLE.encode()), "omitted_bytes": 12}
    return result(f"head: {notice}\n{notice}", spilled=facts)


async def test_a_preview_links_to_the_whole_and_says_how_to_read_it(mode: Any) -> None:
    wire = ScriptedClient([spilled_result()])
    async with connected(scripted_host(wire), mode=mode) as client:
        answer = await client.call_tool("session_event_read", {"seq": 1})
        listed = (await client.list_resources()).resources
    text, link = answer.content
    assert isinstance(text, types.TextContent)
    assert isinstance(link, types.ResourceLink)
    assert text.text.endswith(f"kept as {LOCATOR}. {RESOURCE_HINT}]")
    assert text.text.count(RESOURCE_HINT) == 1, "what is quoted stays as it was"
    assert len(text.text.encode()) <= len(spilled_result().text.encode()), "no longer than the limit allows"
    assert (link.uri, link.size) == (LOCATOR, len(WHOLE.encode()))
    assert [resource.uri for resource in listed] == [LOCATOR]
    assert answer.meta is not None
    assert answer.meta[SPILLED_KEY]["omitted_bytes"] == 12


async def test_the_whole_is_read_byte_for_byte(mode: Any) -> None:
    wire = ScriptedClient(spilled={LOCATOR: WHOLE.encode()})
    async with connected(scripted_host(wire), mode=mode) as client:
        (content,) = (await client.read_resource(LOCATOR)).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.text.encode() == WHOLE.encode()
    assert content.mime_type == "text/plain"


async def test_pieces_are_cut_between_characters_and_lead_to_the_end(mode: Any) -> None:
    wire = ScriptedClient(spilled={LOCATOR: WHOLE.encode()})
    pieces, offset = [], 0
    async with connected(scripted_host(wire), mode=mode) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "spill:{owner}:{result}{?offset,limit}"
        last = False
        while not last:
            (content,) = (await client.read_resource(f"{LOCATOR}?offset={offset}&limit=5")).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.meta is not None
            piece = content.meta[PIECE_KEY]
            assert (piece["offset"], piece["total_bytes"]) == (offset, len(WHOLE.encode()))
            pieces.append(content.text)
            offset, last = piece["next_offset"], piece["last"]
    assert "".join(pieces) == WHOLE
    assert max(len(piece.encode()) for piece in pieces) <= 8


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        (f"spill:{'a' * 32}:{'c' * 32}", -32002),
        (f"{LOCATOR}?offset=1&offset=2", types.INVALID_PARAMS),
        (f"{LOCATOR}?offset=-1", types.INVALID_PARAMS),
        (f"{LOCATOR}?limit=0", types.INVALID_PARAMS),
        (f"{LOCATOR}?offset=999999", types.INVALID_PARAMS),
        (f"{LOCATOR}?offset=3", types.INVALID_PARAMS),
        (f"{LOCATOR}?from=1", types.INVALID_PARAMS),
        ("file:///etc/passwd", types.INVALID_PARAMS),
        ("spill:../..:x", types.INVALID_PARAMS),
    ],
)
async def test_what_is_no_result_of_ours_is_refused(uri: str, code: int) -> None:
    wire = ScriptedClient(spilled={LOCATOR: WHOLE.encode()})
    async with connected(scripted_host(wire)) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.code == code
