"""SPEC 13, 16.13: every code of the closed tables can be had, by a real operation, the same at both doors.

A code that nothing yields is found by ``test_every_code_is_in_the_table``: whoever adds one adds a case here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from session_query import (
    Busy,
    Caller,
    Code,
    CorruptLog,
    Inspected,
    QueryError,
    ServiceConfig,
    SessionSearchRequest,
    Signal,
    WireError,
)
from session_query.actors.queries import run_method
from session_query.protocol.errors import ToolCode
from session_query.protocol.wire.codes import WireCode
from session_query.protocol.wire.identity import EVERYTHING
from session_query.storage.index.reader import Reader
from support.attack import Attacker, attacker, open_peer
from support.doors import Answer, WireDoor, World, open_world
from support.events import replace, user
from support.providers import Hang, returns
from support.raw_websocket import HANDSHAKE, TEXT, RawPeer, frame
from support.sessions import HERE, head, header, log, prompts, sent

READ = {"session_id": "x", "seq": 0}
Ask = Callable[[World], Awaitable[Answer]]


@attrs.frozen
class Case:
    """How to get a code. ``only``: the door it is for, where the other one has no such thing."""

    code: str
    ask: Ask
    config: dict[str, Any] = attrs.field(factory=dict)
    only: str | None = None


# -- the service ---------------------------------------------------------------------------------------------


def query(method: str, params: dict[str, Any], fault: Any = None) -> Ask:
    """A query of a program, over a store with the one session x."""

    async def ask(world: World) -> Answer:
        provider = world.mounted("x")
        provider.faults = {} if fault is None else {"inspect": fault}
        return await world.door.query(method, params)

    return ask


async def aborted(world: World) -> Answer:
    provider, gate, signal = world.mounted("x"), Hang(), Signal()
    provider.faults = {"list_snapshots": gate}
    answers: list[Answer] = []

    async def search() -> None:
        answers.append(await world.door.query("search_sessions", {"query": "stored"}, signal=signal))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(search)
        await gate.entered.wait()
        signal.abort("changed my mind")
        gate.go.set()
    return answers[0]


async def of_a_closed_service(world: World) -> Answer:
    await world.door.query("health") if world.door is not world.doors["embedded"] else None
    await world.service.close()
    return await world.door.query("search_sessions", {"query": "fox"})


async def an_unknown_format(world: World) -> Answer:
    params = {"format": "no such format", "path": "/nowhere"}
    if world.door is not world.doors["embedded"]:
        return await world.door.query("add_source", params)
    try:
        await run_method(world.service, "add_source", params, reach=EVERYTHING, lane="t", signal=Signal())
    except QueryError as exc:
        return Answer(code=exc.code.value)
    return Answer()


async def a_circle_of_parents(world: World) -> Answer:
    await world.publish("x", prompts("x"), parent="y")
    await world.publish("y", prompts("y"), parent="x")
    return await world.door.query("trace_session", {"session_id": "x"})


async def a_broken_surface(world: World) -> Answer:
    provider = world.mounted("x")
    provider.put(header("x"), log(user(0, "a"), user(1, "b", op=replace(7, 7), sources=[0])))
    return await world.door.query("list_events", {"session_id": "x"})


async def a_moved_history(world: World) -> Answer:
    handle = await world.publish("x", prompts("fox", "fox"))
    ask: dict[str, Any] = {"session_id": "x", "query": "fox", "limit": 1}
    page = await world.door.query("search_events", ask)
    await handle.append(sent(prompts("fox", start=2)))
    return await world.door.query("search_events", ask | {"cursor": page.value["next_cursor"]})


OTHER_HEADER = returns(Inspected(header=header("x", at=1), events=[]))
SERVICE = [
    Case(Code.ABORTED, aborted),
    Case(Code.CORRUPT_SESSION, query("read_event", READ, CorruptLog("garbage"))),
    Case(Code.EVENT_NOT_FOUND, query("read_event", READ | {"seq": 9})),
    Case(Code.INDEX_FAILED, of_a_closed_service),
    Case(Code.INVALID_CONFIG, an_unknown_format),
    Case(Code.INVALID_CURSOR, query("search_sessions", {"query": "fox", "cursor": "nonsense"})),
    Case(Code.INVALID_FILTER, query("filter_sessions", {"filters": [{"kind": "colour"}]})),
    Case(Code.INVALID_LIMIT, query("search_sessions", {"query": "fox", "limit": 0})),
    Case(Code.INVALID_QUERY, query("search_sessions", {"query": " "})),
    Case(Code.INVALID_LINEAGE, a_circle_of_parents),
    Case(Code.INVALID_SURFACE, a_broken_surface),
    Case(Code.INVALID_WINDOW, query("read_event", READ | {"before": 51})),
    Case(Code.PERSISTENCE_FAILED, query("read_event", READ, OSError("the disk is gone"))),
    Case(Code.SEARCH_DISABLED, query("search_sessions", {"query": "fox"}), {"open_at": "never"}),
    Case(Code.SESSION_NOT_FOUND, query("read_event", READ | {"session_id": "nobody"})),
    Case(Code.SOURCE_CONFLICT, query("read_event", READ, OTHER_HEADER)),
    Case(Code.STALE_CURSOR, a_moved_history),
]


# -- the tools -----------------------------------------------------------------------------------------------


def call(tool: str, arguments: Any, fault: Any = None) -> Ask:
    """A call of a program without an agent, over a store with the one session x."""

    async def ask(world: World) -> Answer:
        provider = world.mounted("x")
        provider.faults = {} if fault is None else {"inspect": fault}
        return await world.door.call(tool, arguments)

    return ask


async def an_agent_without_a_step(world: World) -> Answer:
    await world.door.publish("agent", prompts("fox"))
    return await world.door.call("session_event_search", {"query": "fox"}, agent="agent")


async def too_late(world: World) -> Answer:
    provider = world.mounted("x")
    provider.faults = {"list_snapshots": Hang()}
    return await world.door.call("session_search", {"query": "fox"})


TOOLS = [
    Case(ToolCode.TOOL_FAILED, call("session_event_read", READ, OTHER_HEADER)),
    Case(ToolCode.MISSING_AGENT, call("session_trace", {})),
    Case(ToolCode.UNAUTHORIZED, call("session_trace", {"session_id": "nobody"})),
    Case(ToolCode.NO_CURRENT_STEP, an_agent_without_a_step),
    Case(ToolCode.INVALID_ARGS, call("session_event_read", {"session_id": "x"})),
    Case(ToolCode.TOOL_TIMEOUT, too_late, {"search_timeout_ms": 50}),
]


# -- the connection ------------------------------------------------------------------------------------------


SEARCH = {"type": "query", "method": "search_sessions", "params": {"query": "fox"}}


async def told(world: World, *messages: dict[str, Any], secret: str = "operator") -> Answer:
    """The code of the answer to the last message; those before are answered in order."""
    door = world.doors["wire"]
    assert isinstance(door, WireDoor)
    async with attacker(door.server.url, secret) as peer:
        return await _told(peer, *messages)


async def _told(peer: Attacker, *messages: dict[str, Any]) -> Answer:
    answers = [await peer.told(message) for message in messages]
    return Answer(value=answers[-1], code=answers[-1].get("code"))


def attaching(session_id: str = "s", **more: Any) -> dict[str, Any]:
    return {"type": "attach", "session": head(session_id, **more)}


def appending(from_seq: int, *events: Any) -> dict[str, Any]:
    return {"type": "append", "session_id": "s", "from_seq": from_seq, "events": list(events)}


def publishing(header_of: dict[str, Any], *batches: tuple[int, list[Any]]) -> Ask:
    """Attach and append: at the embedded door through a handle, over the wire in plain frames."""

    async def ask(world: World) -> Answer:
        if world.door is not world.doors["embedded"]:
            appends = (appending(seq, *events) for seq, events in batches)
            return await told(world, {"type": "attach", "session": header_of}, *appends)
        try:
            handle = await world.service.attach(header_of)
            for handle.next_seq, events in batches:
                await handle.append(events)
        except WireError as exc:
            return Answer(code=exc.code.value)
        return Answer()

    return ask


async def taken_over(world: World) -> Answer:
    if world.door is world.doors["embedded"]:
        older = await world.service.attach(head("s"))
        await world.service.attach(head("s"))
        try:
            await older.append(sent(prompts("late")))
        except WireError as exc:
            return Answer(code=exc.code.value)
        return Answer()
    return await told(world, appending(0, *sent(prompts("not mine"))))


async def too_many_searches(world: World) -> Answer:
    """One search runs and hangs, one waits; there is no room for a third, whichever caller it is of."""
    provider, gate = world.mounted("x"), Hang()
    provider.faults = {"list_snapshots": gate}
    answers: list[Answer] = []
    refused = trio.Event()

    async def search(lane: str) -> None:
        if world.door is world.doors["embedded"]:
            answer = await _embedded_search(world, lane)
        else:
            answer = await told(world, SEARCH)
        if answer.code is not None:
            answers.append(answer)
            refused.set()

    async with trio.open_nursery() as nursery:
        for lane in ("one", "two", "three"):
            nursery.start_soon(search, lane)
        await refused.wait()
        gate.go.set()
    return answers[0]


async def _embedded_search(world: World, lane: str) -> Answer:
    try:
        await world.service.search_sessions(SessionSearchRequest(query="fox"), lane=lane, signal=Signal())
    except Busy:
        return Answer(code="BUSY")
    return Answer()


async def an_unknown_tool(world: World) -> Answer:
    asked = {"type": "call", "workspace": HERE, "tool": "session_delete", "arguments": {}}
    return await told(world, asked)


async def a_bug(world: World) -> Answer:
    def broken(*args: Any) -> Any:
        raise ZeroDivisionError("a defect")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "search_sessions", broken)
        return await world.doors["wire"].query("search_sessions", {"query": "fox"})


async def a_forgotten_session(world: World) -> Answer:
    """Over the wire also whatever a token does not list; at both doors what was forgotten for good."""
    await world.publish("s", prompts("s"), detach=True)
    await world.service.forget(Caller(kind="operator"), "s", signal=Signal())
    return await publishing(head("s"))(world)


def first_words(text: str, request: str = HANDSHAKE) -> Ask:
    """What a peer is told whose first frame this is."""

    async def ask(world: World) -> Answer:
        door = world.doors["wire"]
        assert isinstance(door, WireDoor)
        async with await open_peer(door.server.url) as stream:
            peer = RawPeer(stream)
            await peer.handshake(request)
            await stream.send_all(frame(TEXT, text.encode()))
            return Answer(code=(await peer.hear())["code"])

    return ask


def asking(*messages: dict[str, Any], secret: str = "operator") -> Ask:
    async def ask(world: World) -> Answer:
        return await told(world, *messages, secret=secret)

    return ask


async def while_stopping(world: World) -> Answer:
    """Something runs, so that the connection outlives the goodbye."""
    provider, gate = world.mounted("x"), Hang()
    provider.faults = {"list_snapshots": gate}
    door = world.doors["wire"]
    assert isinstance(door, WireDoor)
    async with attacker(door.server.url, "operator") as peer:
        await peer.peer.say(SEARCH | {"id": 1})
        await gate.entered.wait()
        door.server.stop(grace_s=30.0)
        assert (await peer.peer.hear())["type"] == "goaway"
        await peer.peer.say({"type": "tools", "id": 2})
        answer = await peer.peer.hear()
        gate.go.set()
    return Answer(code=answer["code"])


HELLO = '{"type":"hello","token":"nonsense","client":{"name":"x","version":"1"}}'
ONE, OTHER = sent(prompts("one")), sent(prompts("other"))
MANY = {"type": "cancel", "reason": [0] * 200_000}
WIRE = [
    Case(WireCode.UNAUTHENTICATED, first_words(HELLO), only="wire"),
    Case(WireCode.FORBIDDEN, a_forgotten_session),
    Case(WireCode.FORBIDDEN, asking(attaching(), secret="here"), only="wire"),
    Case(WireCode.BAD_FRAME, first_words("{"), only="wire"),
    Case(WireCode.UNKNOWN_MESSAGE, asking({"type": "query", "method": "delete_everything"}), only="wire"),
    Case(
        WireCode.UNSUPPORTED_VERSION, first_words("{}", HANDSHAKE.replace("v1.json", "v9.cbor")), only="wire"
    ),
    Case(WireCode.UNKNOWN_TOOL, an_unknown_tool, only="wire"),
    Case(WireCode.INVALID_ARGS, asking({"type": "query", "method": "read_event", "params": {}}), only="wire"),
    Case(WireCode.INVALID_HEADER, publishing({"version": 0, "id": "s"})),
    Case(WireCode.INVALID_EVENT, publishing(head("s"), (0, [{"type": "", "time": 1, "data": {}}]))),
    Case(WireCode.SEQ_CONFLICT, publishing(head("s"), (0, ONE), (0, OTHER))),
    Case(WireCode.SEQ_GAP, publishing(head("s"), (9, sent(prompts("far", start=9))))),
    Case(WireCode.NOT_ATTACHED, taken_over),
    Case(WireCode.TOO_LARGE, asking(MANY), only="wire"),
    Case(WireCode.BUSY, too_many_searches, {"search_concurrency": 1, "max_queued_searches": 1}),
    Case(WireCode.SHUTTING_DOWN, while_stopping, only="wire"),
    Case(WireCode.INTERNAL, a_bug, only="wire"),
]

CASES = [
    pytest.param(case, door, id=f"{case.code}-{door}")
    for case in (*SERVICE, *TOOLS, *WIRE)
    for door in ("embedded", "wire")
    if case.only in (None, door)
]


@pytest.mark.parametrize(("case", "door"), CASES)
async def test_13_a_real_operation_yields_it(case: Case, door: str) -> None:
    async with open_world(ServiceConfig(**case.config), wire=door == "wire") as world:
        assert world.door is world.doors[door]
        with trio.fail_after(60):
            answer = await case.ask(world)
    assert answer.code == case.code, answer


@pytest.mark.parametrize(("table", "cases"), [(Code, SERVICE), (ToolCode, TOOLS), (WireCode, WIRE)])
def test_every_code_is_in_the_table(table: Any, cases: list[Case]) -> None:
    assert {case.code for case in cases} == {code.value for code in table}


def test_service_and_tool_codes_are_had_at_both_doors() -> None:
    assert [case.code for case in (*SERVICE, *TOOLS) if case.only is not None] == []
