"""SPEC 6.14, 11.2, 12.2, 17.5: how a search is aborted, and what that leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from session_query import (
    Aborted,
    Caller,
    Code,
    ServiceConfig,
    Signal,
    open_client,
)
from session_query.actors.clients import ConnectionLost, ServerError
from session_query.actors.clients.backoff import NO_RECONNECT
from session_query.actors.clients.trio_client import Client
from session_query.actors.edge.failures import AbortReason
from session_query.actors.policies.deadline import TimeoutReason
from session_query.protocol.json_value import JSON
from support.aborting import rejected, search
from support.doors import WireDoor, World, open_world
from support.providers import FAILURES, FakeProvider, Hang, fails_when_aborted
from support.sessions import HERE

ABORTED = Code.ABORTED.value


class Reason(Exception):
    """An abort reason of a caller's own."""


async def test_6_14_2_a_pre_aborted_search_touches_no_source(world: World) -> None:
    provider = world.mounted("x")
    signal = Signal()
    signal.abort("changed my mind")
    codes: list[object] = []
    await rejected(world, signal, codes)
    assert (codes, provider.calls) == ([Code.ABORTED], [])


async def test_6_14_2_aborted_while_queued_it_ends_at_once_and_disturbs_nothing(world: World) -> None:
    provider, gate = world.mounted("x"), Hang()
    provider.faults = {"list_snapshots": gate}
    first, second = Signal(), Signal()
    codes: list[object] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rejected, world, first, codes)
        await gate.entered.wait()
        nursery.start_soon(rejected, world, second, codes)
        await trio.testing.wait_all_tasks_blocked()
        second.abort("changed my mind")
        await trio.testing.wait_all_tasks_blocked()
        assert codes == [Code.ABORTED]
        gate.go.set()
    assert codes == [Code.ABORTED, "answered"]


@pytest.mark.parametrize("operation", ["list_snapshots", "inspect"])
@pytest.mark.parametrize("stubborn", [True, False], ids=["stubborn", "cooperative"])
async def test_6_14_3_a_started_source_settles_first_and_nothing_follows(
    world: World, operation: str, stubborn: bool
) -> None:
    provider, gate = world.mounted(*(f"s{number}" for number in range(9))), Hang(stubborn=stubborn)
    provider.faults = {operation: gate}
    signal, codes = Signal(), list[object]()
    house = await world.service.house()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rejected, world, signal, codes)
        await gate.entered.wait()
        await trio.testing.wait_all_tasks_blocked()
        calls, writes = list(provider.calls), house.storage.writes
        assert all(given is signal for given in provider.signals)
        signal.abort("enough")
        await trio.testing.wait_all_tasks_blocked()
        assert codes == ([] if stubborn else [Code.ABORTED])
        provider.faults = {}
        nursery.start_soon(rejected, world, Signal(), codes)  # the same caller's next one
        await trio.testing.wait_all_tasks_blocked()
        if stubborn:
            assert (provider.calls, codes) == (calls, [])  # it stays behind the cleanup
            assert house.storage.writes == writes
        gate.go.set()
    assert codes == [Code.ABORTED, "answered"]
    assert len((await world.door.query("search_sessions", {"query": "stored"})).ids()) == 9


async def test_6_14_3_a_source_may_fail_in_its_own_way_when_it_is_told_to_stop(world: World) -> None:
    provider = world.mounted("x")
    provider.faults = {"list_snapshots": fails_when_aborted}
    signal, codes = Signal(), list[object]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rejected, world, signal, codes)
        await trio.testing.wait_all_tasks_blocked()
        signal.abort("enough")
    assert codes == [Code.ABORTED]


@pytest.mark.parametrize("exact", [False, True])
async def test_6_14_5_and_14_L37_how_a_search_reports_its_abort(exact: bool) -> None:
    async with open_world(ServiceConfig(exact_abort_reasons=exact), wire=False) as world:
        provider, gate, reason = world.mounted("x"), Hang(), Reason()
        provider.faults = {"list_snapshots": gate}
        signal, codes = Signal(), list[object]()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rejected, world, signal, codes)
            await gate.entered.wait()
            signal.abort(reason)
        await rejected(world, signal, codes)
        assert codes == ([reason] * 2 if exact else [Code.ABORTED] * 2)


@pytest.mark.parametrize("tool", ["session_search", "session_event_search"])
@pytest.mark.parametrize("reason", [Reason("mine"), {"any": "value"}])
async def test_11_2_the_tools_restore_the_exact_reason(world: World, tool: str, reason: Any) -> None:
    provider, gate = world.mounted("x"), Hang()
    provider.faults = {"list_snapshots": gate}
    signal = Signal()
    arguments = {"query": "fox"} | ({"session_id": "x"} if tool == "session_event_search" else {})
    async with trio.open_nursery() as nursery:

        async def abort() -> None:
            await gate.entered.wait()
            signal.abort(reason)

        nursery.start_soon(abort)
        caller = Caller(kind="workspace", workspaces=(HERE,))
        with pytest.raises((Reason, Aborted)) as caught:
            await world.service.call_tool(tool, arguments, caller, signal=signal)
    assert (caught.value.reason if isinstance(caught.value, Aborted) else caught.value) is reason


async def test_6_14_4_an_abort_between_observation_and_statement_runs_no_statement(world: World) -> None:
    signal, codes = Signal(), list[object]()
    provider = world.mounted("x")
    provider.before = lambda operation, _: signal.abort("now") if operation == "list_snapshots" else None
    await rejected(world, signal, codes)
    assert codes == [Code.ABORTED]


async def ended_by(kind: str, door: WireDoor, provider: FakeProvider) -> tuple[object, object]:
    """What a client is told of a read that hangs in the provider until it is ended in this way."""
    gate, signal, told = Hang(), Signal(), list[tuple[object, object]]()
    provider.faults = {"list": gate}
    deadline_ms = 20 if kind == "deadline" else None

    async def read(client: Client) -> None:
        asked: JSON = {"session_id": "x"}
        with pytest.raises((ServerError, ConnectionLost)) as caught:
            await client.query("read_session", asked, signal=signal, deadline_ms=deadline_ms)
        told.append((getattr(caught.value, "code", None), getattr(caught.value, "reason", None)))

    async with (
        open_client(door.server.url, "operator", backoff=NO_RECONNECT) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(read, client)
        await gate.entered.wait()
        if kind == "cancelled":
            signal.abort({"by": "me"})
        elif kind == "disconnected":
            client.close()
        elif kind == "shutdown":
            door.server.stop("maintenance", grace_s=0)
    return told[0]


async def test_17_5_deadline_cancel_disconnect_and_shutdown_each_bring_their_reason() -> None:
    async with open_world() as world:
        door, provider = world.doors["wire"], world.mounted("x")
        assert isinstance(door, WireDoor)
        told = {}
        for kind in ("deadline", "cancelled", "disconnected", "shutdown"):
            told[kind] = await ended_by(kind, door, provider)
            aborted = trio.Event()
            provider.signals[-1].on_abort(aborted.set)
            await aborted.wait()
            reason = provider.signals[-1].reason
            assert isinstance(reason, AbortReason)
            assert reason.kind == kind
        assert told["deadline"] == ("TOOL_TIMEOUT", {"code": "TOOL_TIMEOUT", "ms": 20})
        assert told["cancelled"] == (ABORTED, {"by": "me"})
        provider.faults = {}
        assert await world.text_of("x") == "stored x"


async def test_12_2_a_deadline_reaches_the_source_and_names_itself(world: World) -> None:
    provider, gate = world.mounted("x"), Hang()
    provider.faults = {"list_snapshots": gate}
    caller = Caller(kind="workspace", workspaces=(HERE,))
    result = await world.service.call_tool("session_search", {"query": "fox"}, caller, deadline_ms=500)
    assert (result.is_error, result.code) == (True, "TOOL_TIMEOUT")
    reason = provider.signals[-1].reason
    assert isinstance(reason, TimeoutReason)
    assert reason.deadline_ms == 500
    provider.faults = {}
    result = await world.service.call_tool("session_search", {"query": "stored"}, caller, deadline_ms=5_000)
    assert not result.is_error


@pytest.mark.parametrize("failure", FAILURES, ids=lambda exc: type(exc).__name__)
async def test_6_14_after_a_fault_and_an_abort_the_next_search_is_whole(
    world: World, failure: BaseException
) -> None:
    provider = world.mounted("a", "b")
    for operation in ("list_snapshots", "inspect"):
        world.service.mount("p", provider)
        gate, signal, codes = Hang(), Signal(), list[object]()
        provider.faults = {operation: gate}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rejected, world, signal, codes)
            await gate.entered.wait()
            signal.abort("enough")
        provider.faults = {operation: failure}
        await search(world, Signal())
        provider.faults = {}
        assert sorted((await world.door.query("search_sessions", {"query": "stored"})).ids()) == ["a", "b"]
