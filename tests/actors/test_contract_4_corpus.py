"""SPEC 4, 16.6: the logical corpus over live sessions, the journal and mounted providers."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from session_query import (
    Caller,
    Code,
    Inspected,
    QueryError,
    ServiceConfig,
    SessionHeader,
    Signal,
)
from session_query.storage.index.door import SessionKey, SessionState
from session_query.storage.store import Store
from support.doors import World, open_world
from support.providers import CORRUPT, FAILURES, FakeProvider, Hang, returns
from support.sessions import HERE, T0, THERE, head, header, prompts, sent

OPERATOR = Caller(kind="operator")
NOT_FOUND = Code.SESSION_NOT_FOUND.value
FAILED = Code.PERSISTENCE_FAILED.value


# -- 4.1-4.3: records and their order ---------------------------------------------------------------


async def test_4_2_the_flags_say_where_a_session_is(either: World) -> None:
    await either.publish("both", prompts("x"), at=T0 + 3)
    await either.publish("stored", prompts("x"), at=T0 + 2, detach=True)
    either.mounted("told")
    listed = await either.door.query("list_sessions")
    flags = {
        row["header"]["id"]: (row["live"], row["persisted"], row["source"])
        for row in listed.value["sessions"]
    }
    assert flags == {
        "both": (True, True, "journal"),
        "stored": (False, True, "journal"),
        "told": (False, True, "p"),
    }


async def test_4_3_newest_first_then_by_code_points(either: World) -> None:
    for session_id in ("b", "B", "ä", "\U0001f600", "\ufffd"):
        await either.publish(session_id, at=5)
    await either.publish("new", at=9)
    await either.publish("z", at=1)
    listed = await either.door.query("list_sessions")
    assert listed.ids() == ["new", "B", "b", "ä", "\ufffd", "\U0001f600", "z"]


async def test_4_3_listing_reads_no_log(world: World) -> None:
    provider = world.mounted("a", "b")
    await world.door.query("list_sessions")
    assert {name for name, _ in provider.calls} == {"list"}


async def test_4_3_all_header_fields_come_back(either: World) -> None:
    full = head("x", parent="gone", seed=0, origin="subagent", depth=2, preset="strict")
    await either.service.attach(full)
    listed = await either.door.query("list_sessions")
    assert listed.value["sessions"][0]["header"] == full


async def unjournaled(world: World, session_id: str = "x", **more: Any) -> Any:
    return await world.publish(session_id, prompts("live words"), **more)


NO_JOURNAL = ServiceConfig(journal=False)


async def test_4_2_a_live_session_shadows_the_stored_one_and_stays_persisted() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = world.mounted("x")
        handle = await unjournaled(world)
        listed = await world.door.query("list_sessions")
        (row,) = listed.value["sessions"]
        assert (row["live"], row["persisted"], row["source"]) == (True, True, "live")
        assert await world.text_of("x") == "live words"
        provider.sessions.clear()
        listed = await world.door.query("list_sessions")
        assert listed.value["sessions"][0]["persisted"] is False
        await handle.detach()
        assert (await world.door.query("list_sessions")).ids() == []


@pytest.mark.parametrize("changed", [{"seed": 3}, {"parent": "p"}, {"depth": 1}, {"at": T0 + 1}])
async def test_16_6_2_an_incompatible_header_makes_two_sessions_marked_conflicted(
    changed: dict[str, Any],
) -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = FakeProvider()
        provider.put(header("x", **{"at": T0, **changed}), prompts("stored words"))
        world.service.mount("p", provider)
        await unjournaled(world)
        listed = await world.door.query("list_sessions")
        rows = {row["header"]["id"]: row.get("conflicted") for row in listed.value["sessions"]}
        assert rows == {"live:x": True, "p:x": True}
        assert await world.text_of("live:x") == "live words"
        assert await world.text_of("p:x") == "stored words"
        assert await world.text_of("x") == "live words"  # 4.4.1: no store can take its id away
        page = await world.door.query("search_sessions", {"query": "words"})
        assert sorted(page.ids()) == ["live:x", "p:x"]
        assert await world.text_of("x") == "live words"


async def test_14_L2_strict_mode_fails_the_listing_and_the_search() -> None:
    async with open_world(ServiceConfig(journal=False, strict_conflicts=True), wire=False) as world:
        provider = FakeProvider()
        provider.put(header("x", seed=3), prompts("stored"))
        world.service.mount("p", provider)
        handle = await unjournaled(world)
        assert (await world.door.query("list_sessions")).code == Code.SOURCE_CONFLICT.value
        page = await world.door.query("search_sessions", {"query": "live"})
        assert page.code == Code.SOURCE_CONFLICT.value
        await handle.detach()
        assert (await world.door.query("list_sessions")).ids() == ["x"]


@pytest.mark.parametrize("changed", [{"origin": "subagent"}, {"preset": "other"}])
async def test_1_1_3_soft_differences_are_no_conflict(changed: dict[str, Any]) -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = FakeProvider()
        provider.put(header("x", **changed), prompts("stored"))
        world.service.mount("p", provider)
        await unjournaled(world)
        listed = await world.door.query("list_sessions")
        assert [(row["header"]["id"], row.get("conflicted")) for row in listed.value["sessions"]] == [
            ("x", None)
        ]


async def test_16_6_3_the_same_session_in_two_stores_is_one_answered_by_the_better(world: World) -> None:
    first, second = world.mounted("x", name="first"), FakeProvider("second")
    second.put(header("x"), prompts("from the second"))
    world.service.mount("second", second)
    assert (await world.door.query("list_sessions")).ids() == ["x"]
    assert await world.text_of("x") == "stored x"
    world.service.unmount("first")
    assert await world.text_of("x") == "from the second"
    assert first.inspected() == ["x"]


async def test_16_6_3_the_lower_source_is_the_fallback(either: World) -> None:
    first, second = either.mounted("x", name="first"), FakeProvider("second")
    second.put(header("x"), prompts("from the second"))
    either.service.mount("second", second)
    for failure in (OSError("gone"), CORRUPT, returns(None)):
        first.faults = {"inspect": failure}
        assert await either.text_of("x") == "from the second"
        assert (await either.door.query("search_sessions", {"query": "second"})).ids() == ["x"]
    second.faults = {"inspect": OSError("gone as well")}
    assert (await either.door.query("read_session", {"session_id": "x"})).code == FAILED
    first.faults = {"inspect": CORRUPT}  # of two failures the better source's is told
    assert (await either.door.query("read_session", {"session_id": "x"})).code == Code.CORRUPT_SESSION.value


async def test_16_6_3_a_provider_steps_in_for_a_log_that_cannot_be_read(either: World) -> None:
    house = await either.service.house()
    bad = SessionState(header=header("x"), rank=2, error=Code.CORRUPT_SESSION.value)

    def put(store: Store) -> None:
        with store.index.transaction():
            store.index.put_session(SessionKey("codex", "", "x"), bad)

    await house.storage.write(put)
    ask = either.door.query
    assert (await ask("search_events", {"session_id": "x", "query": "stored"})).code == bad.error
    assert (await ask("read_session", {"session_id": "x"})).code == bad.error
    either.mounted("x")
    assert await either.text_of("x") == "stored x"
    assert (await ask("search_sessions", {"query": "stored"})).ids() == ["x"]
    assert (await ask("list_sessions")).ids() == ["x"]
    either.service.unmount("p")
    assert (await ask("read_session", {"session_id": "x"})).code == bad.error


async def test_16_6_1_equal_ids_get_names_with_their_source(either: World) -> None:
    await either.publish("x", prompts("published"), at=T0 + 9, detach=True)
    either.mounted("x", "y")
    assert (await either.door.query("list_sessions")).ids() == ["journal:x", "y", "p:x"]
    titles = await either.door.query("read_titles", {"session_ids": ["x", "p:x", "journal:x", "y"]})
    assert [row.get("error") for row in titles.value["titles"]] == [NOT_FOUND, None, None, None]


async def test_16_6_1_hidden_namesakes_have_no_part_in_a_name(either: World) -> None:
    await either.publish("x", prompts("here"))
    await either.publish("x", prompts("there"), cwd=THERE)
    assert (await either.door.query("list_sessions", who="here")).ids() == ["x"]
    assert (await either.door.query("list_sessions", who="there")).ids() == ["x"]
    everything = (await either.door.query("list_sessions")).ids()
    assert everything == [f"journal/{HERE}:x", f"journal/{THERE}:x"]


# -- 4.4: load ----------------------------------------------------------------------------------------


async def test_4_4_1_a_live_session_needs_no_store(world: World) -> None:
    provider = world.mounted("a")
    provider.faults = {"list": OSError("gone"), "list_snapshots": OSError("gone")}
    await world.publish("x", prompts("live"))
    assert await world.text_of("x") == "live"
    assert provider.calls == []


async def test_4_4_2_nothing_mounted_means_not_found(either: World) -> None:
    assert (await either.door.query("read_session", {"session_id": "x"})).code == NOT_FOUND


async def test_4_4_3_one_listing_and_one_inspection(world: World) -> None:
    provider = world.mounted("a")
    assert await world.text_of("a") == "stored a"
    assert provider.calls == [("list", ""), ("inspect", "a")]
    assert (await world.door.query("read_session", {"session_id": "b"})).code == NOT_FOUND
    assert provider.calls[2:] == [("list", "")]


async def test_14_L29_a_session_that_comes_to_live_during_the_listing_is_found(world: World) -> None:
    hang = Hang()
    world.mounted("a").faults = {"list": hang}
    async with trio.open_nursery() as nursery:
        found: list[str] = []

        async def read() -> None:
            found.append(await world.text_of("late"))

        nursery.start_soon(read)
        await hang.entered.wait()
        await world.publish("late", prompts("just in time"))
        hang.go.set()
    assert found == ["just in time"]


async def test_4_4_4_a_live_owner_during_the_inspection_wins() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        hang = Hang()
        world.mounted("x").faults = {"inspect": hang}
        found: list[str] = []
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                found.append(await world.text_of("x"))

            nursery.start_soon(read)
            await hang.entered.wait()
            await unjournaled(world)
            hang.go.set()
        assert found == ["live words"]


async def test_4_4_4_also_when_the_inspection_then_fails() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        provider = world.mounted("x")

        async def attach_and_fail(signal: Signal) -> None:
            await unjournaled(world)
            raise OSError("gone")

        provider.faults = {"inspect": attach_and_fail}
        assert await world.text_of("x") == "live words"


async def test_4_4_5_listed_and_inspected_headers_must_agree(either: World) -> None:
    provider = either.mounted("x")
    provider.faults["inspect"] = returns(Inspected(header=header("x", at=T0 + 5), events=[]))
    assert (await either.door.query("read_session", {"session_id": "x"})).code == Code.SOURCE_CONFLICT.value


async def test_4_4_6_results_are_detached(world: World) -> None:
    provider = world.mounted("x")
    exact = await world.service.exact()
    for read in range(2):
        whole = await exact.read_session(OPERATOR, "x", signal=Signal())
        window = await exact.read_event(OPERATOR, "x", 0, signal=Signal())
        for one in (whole.events[0], window.target):
            data: Any = one.data
            assert data["content"] == [{"type": "text", "text": "stored x"}], f"read {read}"
            data["content"].append("changed by a caller")
    assert provider.sessions["x"].events == prompts("stored x")


async def test_1_2_3_a_live_log_in_memory_is_detached_from_host_and_readers() -> None:
    async with open_world(NO_JOURNAL, wire=False) as world:
        given: Any = sent(prompts("mine"))
        handle = await world.service.attach(head("x"))
        await handle.append(given)
        given[0]["data"]["content"].clear()
        for _ in range(2):
            window = await (await world.service.exact()).read_event(OPERATOR, "x", 0, signal=Signal())
            data: Any = window.target.data
            assert data["content"] == [{"type": "text", "text": "mine"}]
            data["content"].clear()


# -- 4.5: failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", FAILURES, ids=lambda exc: type(exc).__name__)
@pytest.mark.parametrize("operation", ["list", "inspect"])
async def test_4_5_any_failure_of_a_store_is_persistence_failed(
    world: World, failure: BaseException, operation: str
) -> None:
    provider = world.mounted("x")
    provider.faults = {operation: failure}
    assert (await world.door.query("read_session", {"session_id": "x"})).code == FAILED
    provider.faults = {}
    assert await world.text_of("x") == "stored x"


async def test_4_5_the_corruption_type_is_told_apart_and_the_cause_is_kept(world: World) -> None:
    provider = world.mounted("x")
    provider.faults = {"inspect": CORRUPT}
    exact = await world.service.exact()
    with pytest.raises(QueryError) as caught:
        await exact.read_session(OPERATOR, "x", signal=Signal())
    assert caught.value.code is Code.CORRUPT_SESSION
    assert caught.value.__cause__ is CORRUPT
    provider.faults = {"list": CORRUPT}  # a listing has no corruption of its own
    assert (await world.door.query("read_session", {"session_id": "x"})).code == FAILED


NONSENSE_HEADERS: list[object] = [
    None,
    {"a": 1},
    "text",
    ["no header"],
    [header("a"), header("a")],
    [SessionHeader(id="", created_at=1)],
    [SessionHeader(id="a", created_at=-1)],
    [SessionHeader(id="a", created_at=1.5)],  # type: ignore[arg-type]
    [SessionHeader(id="a", created_at=1, cwd=7)],  # type: ignore[arg-type]
]


@pytest.mark.parametrize("nonsense", NONSENSE_HEADERS, ids=range(len(NONSENSE_HEADERS)))
async def test_4_5_nonsense_from_a_listing_is_a_failure(world: World, nonsense: object) -> None:
    provider = world.mounted("x")
    provider.faults = {"list": returns(nonsense)}
    assert (await world.door.query("read_session", {"session_id": "x"})).code == FAILED
    assert (await world.door.query("list_sessions")).ids() == []  # 16.6.4: it does not fail the rest


ANYTHING: Any = Inspected
NONSENSE_LOGS = [
    None,
    "x",
    ANYTHING(header=None, events=[]),
    ANYTHING(header=header("x"), events=["no event"]),
]


@pytest.mark.parametrize("nonsense", NONSENSE_LOGS, ids=range(len(NONSENSE_LOGS)))
async def test_4_5_nonsense_from_an_inspection_is_a_failure(world: World, nonsense: object) -> None:
    provider = world.mounted("x")
    provider.faults = {"inspect": returns(nonsense)}
    assert (await world.door.query("read_session", {"session_id": "x"})).code == FAILED


async def test_4_5_and_16_6_4_a_failing_store_is_no_absence_and_no_obstacle(either: World) -> None:
    await either.publish("ours", prompts("x"))
    either.mounted("theirs").faults = {"list": OSError("gone")}
    assert (await either.door.query("list_sessions")).ids() == ["ours"]
    assert (await either.door.query("trace_session", {"session_id": "ours"})).code is None
    assert (await either.door.query("trace_session", {"session_id": "nowhere"})).code == FAILED
    titles = await either.door.query("read_titles", {"session_ids": ["ours", "nowhere"]})
    assert [row.get("error") for row in titles.value["titles"]] == [None, FAILED]


async def test_4_5_strict_mode_lets_a_failing_listing_fail() -> None:
    async with open_world(ServiceConfig(strict_conflicts=True), wire=False) as world:
        world.mounted("x").faults = {"list": OSError("gone"), "list_snapshots": OSError("gone")}
        assert (await world.door.query("list_sessions")).code == FAILED
        assert (await world.door.query("search_sessions", {"query": "x"})).code == FAILED


async def test_16_6_4_what_is_known_of_a_failing_store_stays_known(world: World) -> None:
    provider = world.mounted("x")
    assert (await world.door.query("search_sessions", {"query": "stored"})).ids() == ["x"]
    provider.faults = {"list": OSError("gone"), "list_snapshots": OSError("gone"), "inspect": OSError("gone")}
    assert (await world.door.query("list_sessions")).ids() == ["x"]
    page = await world.door.query("search_sessions", {"query": "stored"})
    assert page.ids() == ["x"]
    assert page.value["receipt"]["checked_ago_s"] >= 0  # 16.3: answered, but not current
    assert (await world.door.query("read_session", {"session_id": "x"})).code == FAILED


async def test_4_9_settings_are_judged_before_anything_is_visible() -> None:
    for bad in (
        {"read_window_max": -1},
        {"read_window_max": True},
        {"read_window_max": 1.5},
        {"persisted_inspect_concurrency": 0},
        {"persisted_inspect_concurrency": 2**53},
        {"persisted_inspect_concurrency": None},
    ):
        with pytest.raises(QueryError) as caught:
            ServiceConfig(**bad)
        assert caught.value.code is Code.INVALID_CONFIG
    assert ServiceConfig(read_window_max=0, persisted_inspect_concurrency=1).read_window_max == 0


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "journal", "live", "dsh", "codex"])
async def test_4_1_a_provider_takes_no_name_that_is_ours(world: World, name: str) -> None:
    with pytest.raises(QueryError) as caught:
        world.service.mount(name, FakeProvider())
    assert caught.value.code is Code.INVALID_CONFIG


async def test_4_1_an_operation_uses_what_is_bound_when_it_starts(world: World) -> None:
    first, gate = world.mounted("x"), Hang()
    first.faults = {"inspect": gate}
    second = FakeProvider()
    second.put(header("x"), prompts("from the new one"))
    found: list[str] = []
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            found.append(await world.text_of("x"))

        nursery.start_soon(read)
        await gate.entered.wait()
        world.service.mount("p", second)
        gate.go.set()
    assert found == ["stored x"]
    assert await world.text_of("x") == "from the new one"


async def test_6_10_3_unmounting_hides_at_once_and_mounting_shows_at_once(either: World) -> None:
    provider = either.mounted("x")
    assert (await either.door.query("search_sessions", {"query": "stored"})).ids() == ["x"]
    assert either.service.unmount("p")
    assert not either.service.unmount("p")
    assert (await either.door.query("list_sessions")).ids() == []
    for method in ("read_session", "trace_session", "list_events", "read_title"):
        assert (await either.door.query(method, {"session_id": "x"})).code == NOT_FOUND
    either.service.mount("p", provider)
    assert (await either.door.query("list_sessions")).ids() == ["x"]
