"""SPEC 6.10: the index follows mounted providers, session by session, and gives up on none of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from session_query import Caller, Code, Inspected, QueryError, ServiceConfig, SessionSnapshot, Signal
from session_query.actors.storage import StorageActor
from session_query.storage import sqlite
from session_query.storage.whole_session import put_whole
from support.doors import World, open_world
from support.events import event, user
from support.providers import CORRUPT, FAILURES, FakeProvider, Hang, returns
from support.sessions import THERE, header, log, prompts

FAILED = Code.PERSISTENCE_FAILED.value
NO_JOURNAL = ServiceConfig(journal=False)


async def found(world: World, query: str = "stored") -> list[str]:
    return (await world.door.query("search_sessions", {"query": query})).ids()


async def unread(world: World) -> dict[str, str]:
    page = await world.door.query("search_sessions", {"query": "whatever"})
    return {row["session_id"]: row["code"] for row in page.value["receipt"]["unread"]}


async def is_behind(world: World) -> bool:
    """Whether receipts say that something could not be looked at (SPEC 16.3)."""
    page = await world.door.query("search_sessions", {"query": "whatever"})
    return "checked_ago_s" in page.value["receipt"]


async def test_6_10_2_searching_again_inspects_nothing_and_lists_once(world: World) -> None:
    provider = world.mounted("a", "b")
    assert await found(world) == ["a", "b"]
    assert provider.calls == [
        ("list_snapshots", ""),
        ("inspect", "a"),
        ("inspect", "b"),
        ("list_snapshots", ""),
    ]
    provider.forget_calls()
    await found(world)
    assert provider.calls == [("list_snapshots", "")]


async def test_6_10_2_nor_does_reopening_on_the_same_store(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path)
    async with open_world(config, wire=False) as world:
        provider = world.mounted("a", "b")
        await found(world)
    async with open_world(config, wire=False) as world:
        assert (await world.door.query("list_sessions")).ids() == []  # 6.10.3: nothing mounted, nothing seen
        assert await found(world) == []
        provider.forget_calls()
        world.service.mount("p", provider)
        assert sorted(await found(world)) == ["a", "b"]
        assert provider.inspected() == []


async def test_6_10_changed_new_and_deleted_sessions(world: World) -> None:
    provider = world.mounted("a", "b", "c")
    await found(world)
    provider.forget_calls()
    provider.put(header("a"), prompts("rewritten"))
    provider.put(header("d"), prompts("stored d"))
    del provider.sessions["c"]
    assert sorted(await found(world)) == ["b", "d"]
    assert sorted(provider.inspected()) == ["a", "d"]
    assert await found(world, "rewritten") == ["a"]


async def test_14_L4_a_log_that_grew_is_seen(world: World) -> None:
    provider = world.mounted("a")
    await found(world)
    provider.put(header("a"), prompts("stored a", "and a zebra"))
    assert await found(world, "zebra") == ["a"]


@pytest.mark.parametrize(("workers", "sessions"), [(1, 4), (4, 9)])
async def test_14_L5_inspections_run_side_by_side_within_a_bound(workers: int, sessions: int) -> None:
    async with open_world(ServiceConfig(persisted_inspect_concurrency=workers), wire=False) as world:
        gate = Hang()
        provider = world.mounted(*(f"s{number}" for number in range(sessions)))
        provider.faults = {"inspect": gate}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(found, world)
            await gate.entered.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert provider.running == workers
            gate.go.set()
        assert provider.most_running == workers


async def test_14_L1_one_bad_session_costs_itself_alone(either: World) -> None:
    provider = either.mounted("good", "corrupt", "folded", "gap", "gone", "header")
    provider.put(header("folded"), log(user(0, "x", op=None)))
    provider.put(header("gap"), [event("a", 0), event("a", 2)])
    provider.faults = {
        "inspect corrupt": CORRUPT,
        "inspect gone": OSError("gone"),
        "inspect header": returns(Inspected(header=header("header", at=1), events=[])),
    }
    assert await found(either) == ["good"]
    assert await unread(either) == {
        "corrupt": Code.CORRUPT_SESSION.value,
        "folded": Code.INVALID_SURFACE.value,
        "gap": Code.CORRUPT_SESSION.value,
        "gone": FAILED,
        "header": Code.SOURCE_CONFLICT.value,
    }
    listed = await either.door.query("list_sessions")
    assert sorted(listed.ids()) == sorted(provider.sessions)  # 4.3: a listing reads no log


async def test_6_10_7_corruption_is_looked_at_again_when_the_revision_moves(world: World) -> None:
    provider = world.mounted("x")
    provider.faults = {"inspect x": CORRUPT}
    assert await found(world) == []
    provider.faults = {}
    assert await found(world) == []
    assert provider.inspected() == ["x"]
    provider.put(header("x"), prompts("stored x, repaired"))
    assert await found(world) == ["x"]
    assert await unread(world) == {}


@pytest.mark.parametrize("failure", FAILURES, ids=lambda exc: type(exc).__name__)
async def test_6_10_7_a_failure_that_may_pass_is_tried_by_the_next_search(
    world: World, failure: BaseException
) -> None:
    provider = world.mounted("x")
    provider.faults = {"inspect x": failure}
    assert await found(world) == []
    assert await unread(world) == {"x": FAILED}
    provider.faults = {}
    assert await found(world) == ["x"]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda exc: type(exc).__name__)
async def test_16_6_4_a_store_that_cannot_be_listed_fails_no_search(
    world: World, failure: BaseException
) -> None:
    await world.publish("ours", prompts("stored by us"))
    provider = world.mounted("x")
    provider.faults = {"list_snapshots": failure}
    assert await found(world) == ["ours"]
    asked = {"session_id": "x", "query": "stored"}
    assert (await world.door.query("search_events", asked)).code == FAILED  # not "not found"
    provider.faults = {}
    assert sorted(await found(world)) == ["ours", "x"]


MALFORMED: list[Any] = [
    None,
    "list",
    [None],
    [header("x")],
    [SessionSnapshot(header=header("x"), revision=7)],  # type: ignore[arg-type]
    [SessionSnapshot(header=header("x"), revision="1"), SessionSnapshot(header=header("x"), revision="2")],
    [SessionSnapshot(header="x", revision="1")],  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(MALFORMED)))
async def test_6_10_step_6_a_malformed_listing_is_a_failing_one(number: int) -> None:
    async with open_world(ServiceConfig(strict_conflicts=True), wire=False) as world:
        provider = world.mounted("x")
        provider.faults = {"list_snapshots": returns(MALFORMED[number])}
        assert (await world.door.query("search_sessions", {"query": "stored"})).code == FAILED
        provider.faults = {}
        assert await found(world) == ["x"]


class Restless:
    """Moves a session whenever it was inspected, some times: what was read is no more what is listed."""

    def __init__(self, provider: FakeProvider, moves: int, moving: str) -> None:
        self.provider, self.left, self.moving, self.read = provider, moves, moving, False

    def __call__(self, operation: str, session_id: str) -> None:
        if operation == "inspect" and session_id == self.moving:
            self.read = True
        elif operation == "list_snapshots" and self.read and self.left:
            self.left, self.read = self.left - 1, False
            stored = self.provider.sessions[self.moving]
            self.provider.put(stored.header, prompts(f"stored {self.moving} again"))


async def test_14_L6_only_what_moved_is_read_again(world: World) -> None:
    provider = world.mounted("calm", "busy")
    provider.before = Restless(provider, 1, "busy")
    assert sorted(await found(world)) == ["busy", "calm"]
    assert sorted(provider.inspected()) == ["busy", "busy", "calm"]
    assert await found(world, "again") == ["busy"]


async def test_6_10_step_3_after_two_attempts_what_moves_cannot_be_read(either: World) -> None:
    provider = either.mounted("calm", "busy")
    provider.before = Restless(provider, 9, "busy")
    assert await found(either) == ["calm"]
    page = await either.door.query("search_sessions", {"query": "stored"})
    assert page.value["receipt"]["unread"] == [{"session_id": "busy", "code": FAILED}]
    provider.before = None
    assert sorted(await found(either)) == ["busy", "calm"]
    assert not await is_behind(either)


async def test_6_10_step_3_a_session_that_vanishes_meanwhile_is_gone(world: World) -> None:
    provider = world.mounted("stays", "goes")
    listings = 0

    def vanish(operation: str, session_id: str) -> None:
        nonlocal listings
        listings += operation == "list_snapshots"
        if listings == 2:
            provider.sessions.pop("goes", None)

    provider.before = vanish
    assert await found(world) == ["stays"]
    assert await unread(world) == {}


@pytest.mark.parametrize("attribute", ["cwd", "agent_preset"])
async def test_6_10_step_3_headers_must_be_the_same_snapshot(world: World, attribute: str) -> None:
    provider = world.mounted("x")
    listings = 0

    def change(operation: str, session_id: str) -> None:
        nonlocal listings
        listings += operation == "list_snapshots"
        if listings == 2:
            stored = provider.sessions["x"]
            more: dict[str, Any] = {"cwd": THERE} if attribute == "cwd" else {"preset": "new"}
            stored.header = header("x", **more)

    provider.before = change
    assert await found(world) == ["x"]
    assert provider.inspected() == ["x", "x"]


async def test_14_L25_after_a_rebind_colliding_revisions_are_not_trusted(world: World) -> None:
    first, second = world.mounted("x"), FakeProvider()
    second.put(header("x"), prompts("another store's log"), revision=first.sessions["x"].revision)
    assert await found(world) == ["x"]
    world.service.mount("p", second)
    assert await found(world) == []
    assert await found(world, "another store") == ["x"]
    assert second.inspected() == ["x"]
    second.forget_calls()
    await found(world)
    assert second.inspected() == []  # trusted from now on


async def test_6_10_step_5_a_store_replaced_in_the_middle_is_reconciled_anew(world: World) -> None:
    first, second = world.mounted("x"), FakeProvider()
    second.put(header("y"), prompts("stored y"))

    def replace(operation: str, session_id: str) -> None:
        if operation == "inspect":
            world.service.mount("p", second)

    first.before = replace
    assert await found(world) == ["y"]


async def test_6_10_step_5_an_error_under_a_replaced_store_is_no_failure(world: World) -> None:
    first, second = world.mounted("x"), FakeProvider()
    second.put(header("y"), prompts("stored y"))

    async def replace_and_fail(signal: Signal) -> None:
        world.service.mount("p", second)
        raise OSError("gone")

    first.faults = {"list_snapshots": replace_and_fail}
    assert await found(world) == ["y"]
    assert not await is_behind(world)


async def test_6_10_step_5_a_store_unmounted_in_the_middle_leaves_nothing_behind(world: World) -> None:
    provider = world.mounted("x")

    def unmount(operation: str, session_id: str) -> None:
        if operation == "inspect":
            world.service.unmount("p")

    provider.before = unmount
    assert await found(world) == []
    assert (await world.door.query("list_sessions")).ids() == []


async def test_6_10_4_the_query_runs_against_what_was_reconciled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.mounted("x")
    search = StorageActor.search

    async def unmount_first(self: StorageActor, query: Any) -> Any:
        world.service.unmount("p")
        return await search(self, query)

    monkeypatch.setattr(StorageActor, "search", unmount_first)
    assert await found(world) == ["x"]
    assert await found(world) == []


async def test_6_10_step_8_a_failing_transaction_rolls_back_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.mounted("a", "b")
    calls = 0

    def fail_at_the_second(*args: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise sqlite.OperationalError("database or disk is full")
        return put_whole(*args)

    monkeypatch.setattr("session_query.actors.reconcile.put_whole", fail_at_the_second)
    answer = await world.door.query("search_sessions", {"query": "stored"})
    assert answer.code == Code.INDEX_FAILED.value
    house = await world.service.house()
    assert await house.storage.read(lambda reader: reader.index.of_source("p")) == []
    assert sorted(await found(world)) == ["a", "b"]


async def test_6_10_many_sessions_are_inspected_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_query.actors.reconcile.BATCH", 3)
    async with open_world(wire=False) as world:
        provider = world.mounted(*(f"s{number}" for number in range(8)))
        assert len(await found(world)) == 8
        assert provider.count("list_snapshots") == 4  # one before, one after each batch


# -- several callers ---------------------------------------------------------------------------------


async def test_6_10_callers_of_one_moment_share_one_look(world: World) -> None:
    provider = world.mounted("a", "b")
    async with trio.open_nursery() as nursery:
        for number in range(5):
            caller = Caller(kind="agent", header=header(f"agent{number}"), source="elsewhere")
            nursery.start_soon(world.service.call_tool, "session_search", {"query": "stored"}, caller)
    assert sorted(provider.inspected()) == ["a", "b"]


async def test_14_L6_the_answer_after_a_failure_is_whole(world: World) -> None:
    """Fault injection: after every fault of every operation the next search is as if nothing had been."""
    provider = world.mounted("a", "b", "c")
    faults: list[Any] = [*FAILURES, CORRUPT, returns(None), returns([1]), returns("x")]
    for operation in ("list_snapshots", "inspect", "inspect b"):
        for fault in faults:
            world.service.mount("p", provider)  # everything is inspected anew
            provider.faults = {operation: fault}
            await world.door.query("search_sessions", {"query": "stored"})
            provider.faults = {}
            for stored in provider.sessions.values():
                stored.revision += "'"
            assert sorted(await found(world)) == ["a", "b", "c"]


async def test_4_5_the_failure_keeps_its_cause(world: World) -> None:
    provider, gone = world.mounted("x"), OSError("gone")
    provider.faults = {"list": gone}
    with pytest.raises(QueryError) as caught:
        await world.text_of("x")
    assert caught.value.__cause__ is gone
