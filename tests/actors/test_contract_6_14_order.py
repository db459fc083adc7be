"""SPEC 6.14, 16.4-16.5: who waits for whom, and closing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from session_query import (
    Caller,
    Code,
    EventSearchRequest,
    QueryError,
    ServiceConfig,
    Signal,
)
from session_query.actors.clients.trio_client import Client
from session_query.actors.storage import StorageActor
from support.aborting import rejected
from support.doors import WireDoor, World, open_world, program
from support.providers import FakeProvider, Hang
from support.sessions import HERE, THERE, header, prompts

ABORTED, INDEX_FAILED = Code.ABORTED.value, Code.INDEX_FAILED.value


@attrs.define(eq=False)
class Statements:
    """Holds every search statement until it is let go, and counts those under way."""

    running: int = 0
    most: int = 0
    started: int = 0
    go: trio.Event = attrs.field(factory=trio.Event)
    _moved: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    def move(self, by: int) -> None:
        self.started += by > 0
        self.running += by
        self.most = max(self.most, self.running)
        self._moved.unpark_all()

    async def until(self, running: int) -> None:
        """Wait until so many are under way, and then until nothing more happens."""
        while self.running < running:
            await self._moved.park()
        await trio.testing.wait_all_tasks_blocked(0.005)


@asynccontextmanager
async def held(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Statements]:
    statements, search = Statements(), StorageActor.search

    async def slow(self: StorageActor, query: Callable[[Any], Any]) -> Any:
        statements.move(1)
        try:
            await statements.go.wait()
            return await search(self, query)
        finally:
            statements.move(-1)

    monkeypatch.setattr(StorageActor, "search", slow)
    try:
        yield statements
    finally:
        monkeypatch.setattr(StorageActor, "search", search)


def agent(name: str, cwd: str = HERE) -> Caller:
    return Caller(kind="agent", header=header(name, cwd=cwd), source="elsewhere")


async def find(world: World, caller: Caller) -> None:
    await world.service.call_tool("session_search", {"query": "fox"}, caller)


FOUR = ServiceConfig(search_concurrency=4)


async def test_16_5_two_searches_of_one_agent_never_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_world(FOUR, wire=False) as world, held(monkeypatch) as statements:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(find, world, agent("a"))
            await statements.until(1)
            assert statements.running == 1
            statements.go.set()
        assert (statements.most, statements.started) == (1, 3)


async def test_16_5_those_of_different_agents_do_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_world(FOUR, wire=False) as world, held(monkeypatch) as statements:
        async with trio.open_nursery() as nursery:
            for name in "abcdef":
                nursery.start_soon(find, world, agent(name))
            await statements.until(4)
            assert statements.running == 4
            statements.go.set()
        assert (statements.most, statements.started) == (4, 6)


async def test_16_5_queries_of_one_connection_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_world(FOUR) as world, held(monkeypatch) as statements:
        door = world.doors["wire"]
        assert isinstance(door, WireDoor)
        order: list[int] = []

        async def ask(client: Client, number: int) -> None:
            await client.query("search_sessions", {"query": "fox"})
            order.append(number)

        one, other = await door.client("operator"), await door.client("here")
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(ask, one, number)
                await trio.testing.wait_all_tasks_blocked(0.005)
            nursery.start_soon(ask, other, 3)
            await statements.until(2)
            assert (statements.running, statements.started) == (2, 2)
            statements.go.set()
        assert [number for number in order if number != 3] == [0, 1, 2]


async def test_6_14_1_reads_never_wait_for_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_world(ServiceConfig(search_concurrency=1), wire=False) as world:
        await world.publish("x", prompts("fox"))
        async with held(monkeypatch) as statements, trio.open_nursery() as nursery:
            nursery.start_soon(find, world, agent("a"))
            nursery.start_soon(find, world, agent("b"))
            await statements.until(1)
            with trio.fail_after(30):
                assert await world.text_of("x") == "fox"
                assert (await world.door.query("list_events", {"session_id": "x"})).code is None
                assert (await world.door.query("trace_session", {"session_id": "x"})).code is None
            statements.go.set()


async def test_16_5_a_busy_workspace_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """All places are taken and stay so: a workspace that has none gets one more, the busy one does not."""
    async with open_world(ServiceConfig(search_concurrency=1), wire=False) as world:
        async with held(monkeypatch) as statements, trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(find, world, agent(f"a{number}"))
            await statements.until(1)
            nursery.start_soon(find, world, agent("b", THERE))
            await statements.until(2)
            assert statements.running == 2
            statements.go.set()
        assert (statements.most, statements.started) == (2, 6)


async def test_16_5_a_full_line_is_answered_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ServiceConfig(search_concurrency=1, max_queued_searches=2)
    async with open_world(config) as world, held(monkeypatch) as statements, trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(find, world, agent(f"a{number}"))
            await statements.until(1)
        for door in world.doors.values():
            assert (await door.query("search_sessions", {"query": "fox"})).code == "BUSY"
            assert (await door.call("session_search", {"query": "fox"})).code == "BUSY"
        statements.go.set()


# -- closing -------------------------------------------------------------------------------------------


async def test_6_14_6_close_lets_running_searches_end_and_refuses_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_world(ServiceConfig(search_concurrency=1), wire=False) as world:
        await world.publish("x", prompts("fox"))
        codes: list[object] = []
        async with held(monkeypatch) as statements, trio.open_nursery() as nursery:
            nursery.start_soon(rejected, world, Signal(), codes, "running")
            await statements.until(1)
            nursery.start_soon(rejected, world, Signal(), codes, "queued")
            await statements.until(1)
            closed: list[str] = []

            async def close() -> None:
                await world.service.close()
                closed.append("closed")

            nursery.start_soon(close)
            nursery.start_soon(close)
            await trio.testing.wait_all_tasks_blocked()
            assert (codes, closed) == ([Code.INDEX_FAILED], [])
            statements.go.set()
        assert (codes, closed) == ([Code.INDEX_FAILED, "answered"], ["closed", "closed"])
        await rejected(world, Signal(), codes)
        assert codes[-1] is Code.INDEX_FAILED
        request = EventSearchRequest(session_id="x", query="fox")
        with pytest.raises(QueryError) as caught:
            await world.service.search_events(request, caller=program("operator"))
        assert caught.value.code is Code.INDEX_FAILED
        tool = await world.door.call("session_search", {"query": "fox"})
        assert tool.code == INDEX_FAILED
        assert await world.text_of("x") == "fox"  # exact reads still work
        assert (await world.door.call("session_event_read", {"session_id": "x", "seq": 0})).code is None


async def test_6_14_6_closed_before_it_was_opened_nothing_is_made(tmp_path: Any) -> None:
    config = ServiceConfig(data_dir=tmp_path / "d", open_at="first-search")
    async with open_world(config, wire=False) as world:
        await world.service.close()
        codes: list[object] = []
        await rejected(world, Signal(), codes)
        assert codes == [Code.INDEX_FAILED]
        assert not (tmp_path / "d").exists()


async def test_6_14_after_its_block_a_service_refuses_everything() -> None:
    async with open_world(wire=False) as world:
        await world.publish("x", prompts("fox"))
    for method, params in (("list_sessions", {}), ("read_session", {"session_id": "x"})):
        assert (await world.door.query(method, params)).code == INDEX_FAILED


async def test_4_10_ending_waits_for_calls_of_optional_providers() -> None:
    gate = Hang(stubborn=True)
    provider = FakeProvider()
    async with trio.open_nursery() as nursery:
        async with open_world(wire=False) as world:
            provider = world.mounted("x")
            provider.faults = {"list_snapshots": gate}
            codes: list[object] = []
            nursery.start_soon(rejected, world, Signal(), codes)
            await gate.entered.wait()
            nursery.start_soon(release_later, gate)
        assert gate.go.is_set()
    assert codes == ["answered"]


async def release_later(gate: Hang) -> None:
    await trio.testing.wait_all_tasks_blocked()
    gate.go.set()
