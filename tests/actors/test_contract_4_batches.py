"""SPEC 4.6-4.8: titles of many sessions at once, and how cancelling reaches a store."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from session_query import Aborted, Caller, Code, Inspected, QueryError, ServiceConfig, Signal
from session_query.protocol.records import TitleItem
from support.doors import World, open_world
from support.events import event, user
from support.providers import CORRUPT, PASS, FakeProvider, Hang, fails_when_aborted, returns
from support.sessions import header, log, prompts, title

OPERATOR = Caller(kind="operator")
NOT_FOUND = Code.SESSION_NOT_FOUND.value
FAILED = Code.PERSISTENCE_FAILED.value


def codes(items: list[TitleItem]) -> list[str | None]:
    """Each item's failure, or None."""
    return [item.error.code.value if isinstance(item.error, QueryError) else None for item in items]


# -- 4.6: batches -------------------------------------------------------------------------------------


def named_provider(world: World, count: int) -> FakeProvider:
    provider = FakeProvider()
    for number in range(count):
        provider.put(header(f"s{number}"), log(user(0, "x"), title(f"title {number}")))
    world.service.mount("p", provider)
    return provider


async def test_4_6_ids_are_taken_once_in_first_order_with_one_listing(either: World) -> None:
    provider = named_provider(either, 3)
    await either.publish("live", log(user(0, "x"), title("the live one")))
    found = await either.door.query("read_titles", {"session_ids": ["s2", "live", "s0", "s2", "no", "live"]})
    assert [(row["session_id"], row.get("title"), row.get("error")) for row in found.value["titles"]] == [
        ("s2", "title 2", None),
        ("live", "the live one", None),
        ("s0", "title 0", None),
        ("no", None, NOT_FOUND),
    ]
    assert found.value["titles"][0]["header"]["id"] == "s2"
    assert provider.count("list") == 1
    assert provider.inspected() == ["s2", "s0"]


async def test_4_6_only_live_ids_touch_no_store(world: World) -> None:
    provider = named_provider(world, 1)
    await world.publish("live", log(title("t")))
    await world.titles("live")
    await world.titles()
    assert provider.calls == []


async def test_4_6_nothing_mounted_each_remaining_id_is_not_found(world: World) -> None:
    assert codes(await world.titles("a", "b")) == [NOT_FOUND, NOT_FOUND]


async def test_4_6_a_failing_listing_keeps_the_live_results(world: World) -> None:
    provider = named_provider(world, 2)
    await world.publish("live", log(title("t")))
    provider.faults = {"list": OSError("gone")}
    assert codes(await world.titles("s0", "live", "s1")) == [FAILED, None, FAILED]


@pytest.mark.parametrize(("workers", "ids"), [(1, 5), (4, 9), (7, 3)])
async def test_4_6_at_most_n_workers_in_request_order(workers: int, ids: int) -> None:
    async with open_world(ServiceConfig(persisted_inspect_concurrency=workers), wire=False) as world:
        provider = named_provider(world, ids)
        order = [f"s{number}" for number in reversed(range(ids))]
        gate = Hang()
        provider.faults = {"inspect": gate}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.titles, *order)
            await gate.entered.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert provider.running == min(workers, ids)
            gate.go.set()
        assert provider.most_running == min(workers, ids)
        assert provider.inspected() == order


async def test_4_6_an_id_that_comes_to_live_during_the_listing_is_no_miss(world: World) -> None:
    hang = Hang()
    named_provider(world, 1).faults = {"list": hang}
    found: list[TitleItem] = []
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            found.extend(await world.titles("s0", "late"))

        nursery.start_soon(read)
        await hang.entered.wait()
        await world.publish("late", log(title("made it")))
        hang.go.set()
    assert [item.title and item.title.title for item in found] == ["title 0", "made it"]


async def test_4_6_each_failure_is_its_items_own(world: World) -> None:
    provider = named_provider(world, 4)
    provider.faults = {
        "inspect s0": OSError("gone"),
        "inspect s1": CORRUPT,
        "inspect s2": returns(Inspected(header=header("s2", at=7), events=[])),
    }
    found = await world.titles("s0", "s1", "s2", "s3")
    assert codes(found) == [FAILED, Code.CORRUPT_SESSION.value, Code.SOURCE_CONFLICT.value, None]


async def test_9_2_a_malformed_last_title_fails_that_session_alone(either: World) -> None:
    bad = event("session/title", 0, {"title": "no messageSeqs", "source": {"kind": "user"}})
    await either.publish("live-bad", log(title("good"), bad))
    await either.publish("good", log(title("fine")))
    await either.publish("stored-bad", log(title("good"), bad), detach=True)
    provider = named_provider(either, 1)
    provider.put(header("told-bad"), log(title("good"), bad))
    ids = ["live-bad", "good", "stored-bad", "told-bad", "s0"]
    found = await either.door.query("read_titles", {"session_ids": ids})
    corrupt = Code.CORRUPT_SESSION.value
    assert [row.get("error") for row in found.value["titles"]] == [corrupt, None, corrupt, corrupt, None]
    assert (await either.door.query("read_title", {"session_id": "told-bad"})).code == corrupt


# -- 4.7-4.8: cancellation ----------------------------------------------------------------------------


class Reason(Exception):
    """An abort reason of a caller's own."""


READS: dict[str, tuple[Any, ...]] = {
    "filter_sessions": ((),),
    "trace_session": ("x",),
    "trace_event": ("x", 0),
    "list_events": ("x",),
    "filter_events": ("x", ()),
    "read_surface": ("x",),
    "read_session": ("x",),
    "read_event": ("x", 0),
    "read_titles": (["x", "live"],),
    "read_title": ("x",),
}


@pytest.mark.parametrize("method", READS)
@pytest.mark.parametrize("reason", [Reason("mine"), "just text", None], ids=["exception", "text", "none"])
async def test_4_8_an_aborted_signal_touches_no_source_and_gives_its_reason_back(
    world: World, method: str, reason: object
) -> None:
    provider = world.mounted("x")
    await world.publish("live")
    signal = Signal()
    signal.abort(reason)
    exact = await world.service.exact()
    with pytest.raises((Reason, Aborted)) as caught:
        await getattr(exact, method)(OPERATOR, *READS[method], signal=signal)
    given = caught.value.reason if isinstance(caught.value, Aborted) else caught.value
    assert given is reason
    assert provider.calls == []


@pytest.mark.parametrize("method", READS)
async def test_4_8_also_for_a_live_target(world: World, method: str) -> None:
    await world.publish("x", prompts("live"))
    signal, reason = Signal(), Reason()
    signal.abort(reason)
    with pytest.raises(Reason) as caught:
        await getattr(await world.service.exact(), method)(OPERATOR, *READS[method], signal=signal)
    assert caught.value is reason


async def late(signal: Signal) -> Any:
    """Settles only after the abort, and then answers as if nothing had happened."""
    aborted = trio.Event()
    signal.on_abort(aborted.set)
    with trio.CancelScope(shield=True):
        await aborted.wait()
    return PASS


@pytest.mark.parametrize("fault", [late, fails_when_aborted, Hang()], ids=["answers", "fails", "trio"])
@pytest.mark.parametrize("operation", ["list", "inspect"])
async def test_4_8_a_started_call_settles_and_then_the_exact_reason_is_raised(
    world: World, operation: str, fault: Any
) -> None:
    provider = world.mounted("x")
    provider.faults = {operation: fault}
    signal, reason = Signal(), Reason()
    exact = await world.service.exact()
    async with trio.open_nursery() as nursery:

        async def abort() -> None:
            await trio.testing.wait_all_tasks_blocked()
            signal.abort(reason)

        nursery.start_soon(abort)
        with pytest.raises(Reason) as caught:
            await exact.read_session(OPERATOR, "x", signal=signal)
    assert caught.value is reason
    assert provider.running == 0
    assert all(given is signal for given in provider.signals)


async def test_4_7_cancelling_a_batch_starts_no_queued_id_and_settles_the_started(world: World) -> None:
    provider = named_provider(world, 9)
    gate = Hang(stubborn=True)
    provider.faults = {"inspect": gate}
    signal, reason = Signal(), Reason()
    ended = trio.Event()

    async def read() -> None:
        with pytest.raises(Reason) as caught:
            await world.service.read_titles(OPERATOR, [f"s{n}" for n in range(9)], signal=signal)
        assert caught.value is reason
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await gate.entered.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert len(provider.inspected()) == 4
        signal.abort(reason)
        await trio.testing.wait_all_tasks_blocked()
        assert not ended.is_set()  # the started inspections ignore it
        gate.go.set()
    assert (len(provider.inspected()), provider.settled) == (4, 4)


async def test_4_8_a_hanging_store_holds_no_read_of_another_session(world: World) -> None:
    provider = world.mounted("x")
    gate = Hang()
    provider.faults = {"inspect": gate}
    await world.publish("live", prompts("still here"))
    async with trio.open_nursery() as nursery:
        for _ in range(40):  # more than there are threads
            nursery.start_soon(world.text_of, "x")
        await gate.entered.wait()
        with trio.fail_after(30):
            assert await world.text_of("live") == "still here"
        nursery.cancel_scope.cancel()


async def test_17_6_too_many_reads_under_way_are_answered_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_query.actors.pool.UNDER_WAY_PER_THREAD", 1)
    async with open_world(ServiceConfig(max_parallel_reads=2)) as world:
        provider, gate = world.mounted("x"), Hang()
        provider.faults = {"inspect": gate}
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(world.text_of, "x")
            await gate.entered.wait()
            await trio.testing.wait_all_tasks_blocked(0.005)
            for door in world.doors.values():
                assert (await door.query("read_session", {"session_id": "x"})).code == "BUSY"
                assert (await door.call("session_event_read", {"session_id": "x", "seq": 0})).code == "BUSY"
            gate.go.set()
        assert await world.text_of("x") == "stored x"
