"""The search actor: lanes, fairness, bounds, cancellation, close (SPEC 6.14, 16.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from session_query.actors.search import SearchActor
from session_query.protocol.errors import Busy, Code, QueryError
from session_query.protocol.signal import Signal


async def _started(nursery: trio.Nursery, **settings: int) -> SearchActor:
    actor = SearchActor(concurrency=settings.get("concurrency", 2), max_queued=settings.get("max_queued", 8))
    await nursery.start(actor.run)
    return actor


def _work(log: list[str], name: str, seconds: float = 1) -> Callable[[], Awaitable[str]]:
    async def work() -> str:
        log.append(f"+{name}")
        await trio.sleep(seconds)
        log.append(f"-{name}")
        return name

    return work


async def test_two_searches_of_one_caller_never_overlap_and_keep_their_order(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery)
    log: list[str] = []
    async with trio.open_nursery() as askers:
        for name in ("a", "b", "c"):
            askers.start_soon(actor.ask, "lane", "w", _work(log, name), Signal())
            await trio.testing.wait_all_tasks_blocked()
    assert log == ["+a", "-a", "+b", "-b", "+c", "-c"]
    nursery.cancel_scope.cancel()


async def test_different_callers_overlap_up_to_the_concurrency(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery)
    log: list[str] = []
    async with trio.open_nursery() as askers:
        for name in ("a", "b", "c"):
            askers.start_soon(actor.ask, name, "w", _work(log, name), Signal())
            await trio.testing.wait_all_tasks_blocked()
        assert log == ["+a", "+b"]
    assert trio.current_time() == pytest.approx(2)
    nursery.cancel_scope.cancel()


async def test_a_busy_workspace_does_not_starve_another(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery, concurrency=1)
    log: list[str] = []
    async with trio.open_nursery() as askers:
        for number in range(4):
            askers.start_soon(actor.ask, number, "busy", _work(log, f"busy{number}"), Signal())
            await trio.testing.wait_all_tasks_blocked()
        askers.start_soon(actor.ask, "x", "quiet", _work(log, "quiet"), Signal())
    assert log.index("+quiet") <= 4  # second in line at the latest
    nursery.cancel_scope.cancel()


async def test_a_queued_search_is_let_go_at_once_and_touches_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery, concurrency=1)
    log: list[str] = []
    signal = Signal()
    async with trio.open_nursery() as askers:
        askers.start_soon(actor.ask, 1, "w", _work(log, "first", 5), Signal())
        await trio.testing.wait_all_tasks_blocked()

        async def queued() -> None:
            with pytest.raises(QueryError) as caught:
                await actor.ask(2, "w", _work(log, "second"), signal)
            assert caught.value.code is Code.ABORTED
            assert trio.current_time() == 0

        askers.start_soon(queued)
        await trio.testing.wait_all_tasks_blocked()
        signal.abort("changed my mind")
    assert log == ["+first", "-first"]
    assert actor.statistics().queued == 0
    nursery.cancel_scope.cancel()


async def test_a_started_search_settles_before_its_asker_is_released(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery)

    async def stubborn() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(7)

    with trio.move_on_after(1) as scope:
        await actor.ask("x", "w", stubborn, Signal())
    assert scope.cancelled_caught
    assert trio.current_time() == 7
    assert await actor.ask("x", "w", _work([], "next"), Signal()) == "next"
    nursery.cancel_scope.cancel()


async def test_an_aborted_search_reports_aborted_after_it_settled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery)
    signal = Signal()
    async with trio.open_nursery() as askers:

        async def ask() -> None:
            with pytest.raises(QueryError) as caught:
                await actor.ask("x", "w", _work([], "slow", 60), signal)
            assert caught.value.code is Code.ABORTED

        askers.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        signal.abort(object())
    assert trio.current_time() < 1
    nursery.cancel_scope.cancel()


async def test_a_pre_aborted_search_never_starts(nursery: trio.Nursery) -> None:
    actor = await _started(nursery)
    signal, log = Signal(), []
    signal.abort("before")
    with pytest.raises(QueryError) as caught:
        await actor.ask("x", "w", _work(log, "never"), signal)
    assert caught.value.code is Code.ABORTED
    assert log == []
    nursery.cancel_scope.cancel()


async def test_a_full_line_says_busy_with_a_hint(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery, concurrency=1, max_queued=1)
    async with trio.open_nursery() as askers:
        askers.start_soon(actor.ask, 1, "w", _work([], "a"), Signal())
        await trio.testing.wait_all_tasks_blocked()
        askers.start_soon(actor.ask, 2, "w", _work([], "b"), Signal())
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Busy) as caught:
            await actor.ask(3, "w", _work([], "c"), Signal())
        assert caught.value.retry_after_ms > 0
    assert actor.statistics().refused == 1
    nursery.cancel_scope.cancel()


async def test_close_lets_the_running_finish_and_refuses_the_rest(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery, concurrency=1)
    log: list[str] = []
    async with trio.open_nursery() as askers:
        askers.start_soon(actor.ask, 1, "w", _work(log, "running", 3), Signal())
        await trio.testing.wait_all_tasks_blocked()

        async def queued() -> None:
            with pytest.raises(QueryError) as caught:
                await actor.ask(2, "w", _work(log, "queued"), Signal())
            assert caught.value.code is Code.INDEX_FAILED

        askers.start_soon(queued)
        await trio.testing.wait_all_tasks_blocked()
        actor.close()
        await actor.wait_idle()
    assert log == ["+running", "-running"]
    with pytest.raises(QueryError) as caught:
        await actor.ask(3, "w", _work(log, "later"), Signal())
    assert caught.value.code is Code.INDEX_FAILED


async def test_a_failing_search_fails_its_asker_alone(nursery: trio.Nursery) -> None:
    actor = await _started(nursery)

    async def broken() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await actor.ask("x", "w", broken, Signal())
    assert await actor.ask("x", "w", _work([], "next", 0), Signal()) == "next"
    nursery.cancel_scope.cancel()


async def test_slow_searches_of_one_workspace_keep_no_other_workspace_waiting(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    actor = await _started(nursery, concurrency=2, max_queued=20)
    log: list[str] = []
    async with trio.open_nursery() as askers:
        for number in range(3):
            askers.start_soon(actor.ask, number, "slow", _work(log, f"slow{number}", 60), Signal())
            await trio.testing.wait_all_tasks_blocked()
        for number in range(3):
            askers.start_soon(actor.ask, f"q{number}", "quick", _work(log, f"quick{number}"), Signal())
        await trio.sleep(10)
        assert log[:2] == ["+slow0", "+slow1"]
        assert sorted(log[2:]) == sorted(f"{sign}quick{number}" for sign in "+-" for number in range(3))
        assert actor.statistics().running == 2
    nursery.cancel_scope.cancel()
