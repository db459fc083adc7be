"""One connection: publishing, callers, tools, and what failures tell."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from session_query.protocol.collected import Caller
from session_query.protocol.errors import Code
from session_query.protocol.header import SessionHeader
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Encoding
from support.wire_edge import event, header, open_edge
from support.wire_fake import FakeService, Stored

Clock = trio.testing.MockClock
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def call(request_id: int, do: str = "", tool: str = "read", **more: Any) -> m.Call:
    wish = {"do": do, **{key: more.pop(key) for key in ("s", "n", "code") if key in more}}
    return m.Call(id=request_id, tool=tool, arguments=wish, **({"workspace": "/w"} | more))


# ---------------------------------------------------------------- publishing


@both_encodings
async def test_a_session_is_published_and_read(encoding: Encoding) -> None:
    async with open_edge() as edge, edge.peer(encoding) as peer:
        attached = await peer.ask(m.Attach(id=1, session=header(), events=[event("seed")]))
        assert attached == m.Attached(id=1, session_id="s1", next_seq=2)
        batch = [event("one"), event("two")]
        assert await peer.ask(m.Append(id=2, session_id="s1", from_seq=2, events=batch)) == m.Appended(
            id=2, through_seq=3
        )
        again = await peer.ask(m.Append(id=3, session_id="s1", from_seq=2, events=batch[:1]))
        assert again == m.Appended(id=3, through_seq=2)
        conflict = await peer.ask(m.Append(id=4, session_id="s1", from_seq=2, events=[event("other")]))
        gap = await peer.ask(m.Append(id=5, session_id="s1", from_seq=9, events=[event("x")]))
        assert (conflict.code, gap.code) == ("SEQ_CONFLICT", "SEQ_GAP")
        result = await peer.ask(m.Call(id=6, tool="read", arguments={"x": 1}, agent="s1", call_id="c"))
        assert result == m.Result(id=6, text="{'x': 1}", card={"kind": "read"}, receipt={"n": 1})
        assert await peer.ask(m.Detach(id=7, session_id="s1")) == m.Detached(id=7)
        assert edge.service.sessions["s1"].token_id is None
        refused = await peer.ask(m.Append(id=8, session_id="s1", from_seq=4, events=[]))
        assert refused.code == "NOT_ATTACHED"


async def test_what_was_never_attached_here_never_reaches_the_service() -> None:
    async with open_edge() as edge, edge.peer() as first, edge.peer("msgpack", hello="run2") as other:
        await first.ask(m.Attach(id=1, session=header()))
        assert (
            await other.ask(m.Append(id=1, session_id="s1", from_seq=0, events=[]))
        ).code == "NOT_ATTACHED"
        assert (await other.ask(m.Detach(id=2, session_id="s1"))).code == "NOT_ATTACHED"
        assert [name for name, _ in edge.service.calls] == ["attach"]


async def test_a_newer_connection_of_the_token_takes_over_another_token_waits() -> None:
    async with open_edge() as edge, edge.peer() as old, edge.peer() as new, edge.peer(hello="run2") as other:
        await old.ask(m.Attach(id=1, session=header()))
        busy = await other.ask(m.Attach(id=1, session=header()))
        assert (busy.code, busy.retry_after_ms) == ("BUSY", 1000)
        assert (await new.ask(m.Attach(id=1, session=header()))).next_seq == 0
        assert (
            await old.ask(m.Append(id=2, session_id="s1", from_seq=0, events=[event("a")]))
        ).code == "NOT_ATTACHED"
        assert (
            await new.ask(m.Append(id=2, session_id="s1", from_seq=0, events=[event("b")]))
        ).through_seq == 0
    assert edge.service.sessions["s1"].events == [event("b")]


async def test_a_lost_connection_detaches_its_sessions_and_no_others() -> None:
    async with open_edge() as edge, edge.peer() as staying:
        await staying.ask(m.Attach(id=1, session=header("kept")))
        async with edge.peer() as leaving:
            for session_id in ("a", "b", "kept"):
                await leaving.ask(m.Attach(id=1, session=header(session_id)))
            await staying.ask(m.Attach(id=2, session=header("kept")))
        await trio.testing.wait_all_tasks_blocked()
        live = {name for name, stored in edge.service.sessions.items() if stored.token_id}
        assert live == {"kept"}


async def test_a_detach_that_fails_leaves_no_other_session_behind(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(FakeService):
        async def detach(self, session_id: str, owner: Any) -> None:
            if session_id == "b":
                raise RuntimeError("broken")
            await super().detach(session_id, owner)

    async with open_edge(Failing()) as edge:
        async with edge.peer() as peer:
            for session_id in ("a", "b", "c"):
                await peer.ask(m.Attach(id=1, session=header(session_id)))
        await edge.settled()
        assert {name for name, stored in edge.service.sessions.items() if stored.token_id} == {"b"}
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    caplog.clear()


async def test_pipelined_requests_of_one_session_keep_their_order() -> None:
    async with open_edge() as edge, edge.peer() as peer:
        await peer.send(m.Attach(id=1, session=header()))
        for seq in range(20):
            await peer.send(m.Append(id=2 + seq, session_id="s1", from_seq=seq, events=[event(str(seq))]))
        await peer.send(m.Detach(id=30, session_id="s1"))
        answers = [await peer.receive() for _ in range(22)]
        assert [answer.id for answer in answers] == [*range(1, 22), 30]
        assert not any(isinstance(answer, m.Error) for answer in answers)
        assert len(edge.service.sessions["s1"].events) == 20


# ---------------------------------------------------------------- callers


async def test_callers_are_resolved_from_the_call_alone() -> None:
    service = FakeService()
    for name, cwd, token_id in (("mine", "/w", "id-run"), ("stored", "/w", None), ("theirs", "/w", "id-run2"),
                                ("far", "/elsewhere", None), ("homeless", None, None)):  # fmt: skip
        service.sessions[name] = Stored(SessionHeader(id=name, created_at=0, cwd=cwd), [], token_id)
    async with open_edge(service) as edge, edge.peer() as runtime, edge.peer(hello="op") as operator:
        for agent in ("mine", "stored"):
            assert isinstance(await runtime.ask(call(1, agent=agent, workspace=None)), m.Result)
        refusals = [
            await runtime.ask(call(1, agent=a, workspace=None)) for a in ("theirs", "far", "homeless", "none")
        ]
        refusals += [await runtime.ask(call(1, workspace=w)) for w in ("/elsewhere", "/w/", "", "w", "*")]
        refusals += [await runtime.ask(call(1, reach=r, workspace=None)) for r in ("all", ["/w"], [])]
        refusals.append(await operator.ask(call(1, agent="theirs", workspace=None)))
        assert {(e.code, e.message) for e in refusals} == {("FORBIDDEN", "this token may not do that")}
        nobody = await runtime.ask(call(1, workspace=None))
        assert nobody.code == "SESSION_QUERY_TOOL_MISSING_AGENT"
        two = await runtime.ask(call(1, agent="mine"))
        assert two.code == "INVALID_ARGS"
        service.callers.clear()
        await runtime.ask(call(1, agent="mine", workspace=None))
        await runtime.ask(call(1, workspace="/v"))
        await operator.ask(call(1, reach="all", workspace=None))
        await operator.ask(call(1, reach=["/b", "/a"], workspace=None))
        await operator.ask(call(1, workspace="/anywhere"))
        assert service.callers == [
            Caller(kind="agent", header=service.sessions["mine"].header, source="journal"),
            Caller(kind="workspace", workspaces=("/v",)),
            Caller(kind="operator", workspaces=None),
            Caller(kind="operator", workspaces=("/a", "/b")),
            Caller(kind="workspace", workspaces=("/anywhere",)),
        ]


async def test_the_reach_of_a_query_is_what_the_token_lists_or_less() -> None:
    async with open_edge() as edge, edge.peer(hello="read") as reader, edge.peer(hello="op") as operator:
        ask = m.Query(id=1, method="list_sessions")
        await reader.ask(ask)
        await operator.ask(ask)
        await operator.ask(m.Query(id=1, method="list_sessions", reach=["/x"]))
        await operator.ask(m.Query(id=1, method="list_sessions", reach="all"))
        for reach in ("all", ["/x"], ["/w", "/x"]):
            answer = await reader.ask(m.Query(id=1, method="list_sessions", reach=reach))  # type: ignore[arg-type]
            assert answer.code == "FORBIDDEN"
        seen = [(reach.workspaces, reach.no_workspace) for reach in edge.service.reaches]
        assert seen == [(frozenset({"/w"}), False), (None, True), (frozenset({"/x"}), False), (None, True)]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("dance", {}, "UNKNOWN_MESSAGE"),
        ("__class__", {}, "UNKNOWN_MESSAGE"),
        ("list_sessions", [], "INVALID_ARGS"),
        ("list_sessions", {"x": 1}, "INVALID_ARGS"),
        ("read_event", {"session_id": "s"}, "INVALID_ARGS"),
        ("read_event", {"session_id": 5, "seq": 1}, "INVALID_ARGS"),
        ("read_titles", {"session_ids": "s"}, "INVALID_ARGS"),
        ("read_titles", {"session_ids": ["s", 5]}, "INVALID_ARGS"),
    ],
)
async def test_malformed_queries_stay_at_the_edge(method: str, params: Any, code: str) -> None:
    async with open_edge() as edge, edge.peer(hello="read") as peer:
        assert (await peer.ask(m.Query(id=1, method=method, params=params))).code == code
        assert edge.service.calls == []


async def test_presence_of_parameters_is_kept() -> None:
    async with open_edge() as edge, edge.peer(hello="read") as peer:
        await peer.ask(
            m.Query(id=1, method="search_events", params={"session_id": 5, "query": "x", "cursor": None})
        )
        assert edge.service.calls == [("search_events", {"session_id": 5, "query": "x", "cursor": None})]


# ---------------------------------------------------------------- tools, failures


async def test_tools_are_described() -> None:
    async with open_edge() as edge, edge.peer("msgpack") as peer:
        tools = await peer.ask(m.ToolsRequest(id=9))
        assert [(t.name, t.concurrency, t.deadline_ms) for t in tools.tools] == [
            ("find", "exclusive", 30_000),
            ("read", "parallel", None),
        ]
        assert (await peer.ask(call(1, tool="rm"))).code == "UNKNOWN_TOOL"


async def test_failures_carry_codes_and_fixed_texts_only(caplog: pytest.LogCaptureFixture) -> None:
    async with open_edge() as edge, edge.peer(hello="op") as peer:
        seen = {}
        for code in Code:
            model = await peer.ask(call(1, "fail", code=code.value))
            program = await peer.ask(
                m.Query(id=2, method="search_sessions", params={"query": {"do": "fail", "code": code.value}})
            )
            seen[code] = model.code
            assert program.code == code.value
            for error in (model, program):
                assert "secret" not in error.message
                assert error.message
        generic = {Code.SOURCE_CONFLICT, Code.INVALID_CONFIG}
        assert {code for code, told in seen.items() if told == "SESSION_QUERY_TOOL_FAILED"} == generic
        tool = await peer.ask(call(3, "tool"))
        assert (tool.code, tool.message) == ("SESSION_QUERY_TOOL_NO_CURRENT_STEP", "no step yet")
        busy = await peer.ask(call(4, "busy"))
        assert (busy.code, busy.retry_after_ms) == ("BUSY", 70)
        assert "secret" not in caplog.text


async def test_a_bug_in_the_service_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with open_edge() as edge, edge.peer() as peer:
        error = await peer.ask(call(1, "crash"))
        assert (error.code, "secret" in error.message) == ("INTERNAL", False)
        assert isinstance(await peer.ask(call(2)), m.Result)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "call (request 1) failed with INTERNAL: KeyError at answers.py:" in errors[0].getMessage()
    assert "wire_fake.py:" in errors[0].getMessage()
    assert "secret" not in errors[0].getMessage()
    caplog.clear()


async def test_an_answer_that_is_no_json_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    service = FakeService(values={"list_sessions": object()})
    async with open_edge(service) as edge, edge.peer(hello="read") as peer:
        assert (await peer.ask(m.Query(id=1, method="list_sessions"))).code == "INTERNAL"
        assert (await peer.ask(m.ToolsRequest(id=2))).id == 2
    caplog.clear()
