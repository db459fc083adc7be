"""SPEC 12.2, 16.13: deadlines."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from session_query.actors.policies.compose import compose
from session_query.actors.policies.deadline import TimeoutReason, with_deadline
from session_query.actors.policies.stage import ToolCall
from session_query.actors.scoping import run_exact
from session_query.actors.tools.registry import ToolRegistry, ToolResult, ToolSettings
from session_query.protocol.errors import Busy, ToolCode
from session_query.protocol.signal import Aborted, Signal
from support.fake_tools import FakeToolService, agent, corpus

SEARCH = ToolCall(tool="session_search", arguments={"query": "q"}, caller=agent(), signal=Signal())
DONE = ToolResult(text="done", card={})


def search(signal: Signal | None = None, **changes: Any) -> ToolCall:
    return attrs.evolve(SEARCH, signal=signal or Signal(), **changes)


@attrs.define
class Inner:
    """A stage that works ``seconds``, whatever happens; then returns or raises."""

    seconds: float = 0
    error: Exception | None = None
    seen: list[Signal] = attrs.field(factory=list)
    ended_expired: bool = False

    async def __call__(self, call: ToolCall) -> ToolResult:
        self.seen.append(call.signal)
        with trio.CancelScope(shield=True):
            await trio.sleep(self.seconds)
        self.ended_expired = call.signal.aborted
        if self.error is not None:
            raise self.error
        return DONE


async def long_work() -> None:
    await trio.sleep(10_000)


async def test_12_2_1_a_call_in_time_is_left_alone(autojump_clock: trio.abc.Clock) -> None:
    inner, call = Inner(0.9), search()
    assert await with_deadline(inner, {"session_search": 1000})(call) is DONE
    assert inner.seen[0] is not call.signal
    assert not inner.seen[0].aborted
    assert trio.current_time() == 0.9  # the timer is released at once
    assert not call.signal.aborted


async def test_12_2_2_expiry_only_notifies_and_the_call_is_awaited(autojump_clock: trio.abc.Clock) -> None:
    inner = Inner(7)
    result = await with_deadline(inner, {"session_search": 1000})(search())
    assert trio.current_time() == 7
    assert (result.code, result.is_error, result.receipt) == (ToolCode.TOOL_TIMEOUT, True, None)
    assert "1000 ms" in result.text
    assert result.card == {"kind": "search", "title": "Search prior sessions", "raw_input": "q"}
    assert inner.seen[0].reason == TimeoutReason(1000)
    assert inner.seen[0].reason.code is ToolCode.TOOL_TIMEOUT


@pytest.mark.parametrize("error", [ValueError("x"), Aborted("x"), Busy(5)])
async def test_12_2_2_whatever_the_late_call_raises_is_replaced(
    error: Exception, autojump_clock: trio.abc.Clock
) -> None:
    result = await with_deadline(Inner(2, error), {"session_search": 1000})(search())
    assert result.code == ToolCode.TOOL_TIMEOUT


@pytest.mark.parametrize("error", [ValueError("x"), Busy(5)])
async def test_what_a_call_raises_in_time_comes_through_as_it_is(
    error: Exception, autojump_clock: trio.abc.Clock
) -> None:
    with pytest.raises(type(error)) as caught:
        await with_deadline(Inner(0.5, error), {"session_search": 1000})(search())
    assert caught.value is error


async def test_12_2_2_the_callers_abort_stands_if_it_was_first(
    nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    signal, reason = Signal(), RuntimeError("user")

    async def abort_at(time: float) -> None:
        await trio.sleep_until(time)
        signal.abort(reason)

    async def inner(call: ToolCall) -> ToolResult:
        await run_exact(call.signal, long_work)
        return DONE

    nursery.start_soon(abort_at, 0.5)
    with pytest.raises(RuntimeError) as caught:
        await with_deadline(inner, {"session_search": 1000})(search(signal))
    assert caught.value is reason
    assert trio.current_time() == 0.5


async def test_12_2_2_expiry_stands_if_it_was_first(
    nursery: trio.Nursery, autojump_clock: trio.abc.Clock
) -> None:
    signal = Signal()

    async def abort_later() -> None:
        await trio.sleep(2)
        signal.abort(RuntimeError("user"))

    nursery.start_soon(abort_later)
    result = await with_deadline(Inner(3), {"session_search": 1000})(search(signal))
    assert result.code == ToolCode.TOOL_TIMEOUT


async def test_expiry_and_answer_on_one_tick_give_one_of_two_whole_outcomes(
    autojump_clock: trio.abc.Clock,
) -> None:
    for _ in range(50):
        inner = Inner(1)
        result = await with_deadline(inner, {"session_search": 1000})(search())
        if inner.ended_expired:
            assert result.code == ToolCode.TOOL_TIMEOUT
        else:
            assert result is DONE


@pytest.mark.parametrize(
    ("tool_ms", "own_ms", "effective"),
    [(1000, 300, 300), (300, 1000, 300), (None, 400, 400), (500, None, 500)],
)
async def test_16_13_the_smaller_deadline_counts(
    tool_ms: int | None, own_ms: int | None, effective: int, autojump_clock: trio.abc.Clock
) -> None:
    inner = Inner(9)
    result = await with_deadline(inner, {"session_search": tool_ms})(search(deadline_ms=own_ms))
    assert f"{effective} ms" in result.text
    assert inner.seen[0].reason == TimeoutReason(effective)


async def test_12_2_3_tools_without_a_deadline_are_untouched(autojump_clock: trio.abc.Clock) -> None:
    inner, call = Inner(10_000), search()
    assert await with_deadline(inner, {"session_search": None})(call) is DONE
    assert inner.seen == [call.signal]


async def test_an_aborted_signal_reaches_the_call_at_once(autojump_clock: trio.abc.Clock) -> None:
    signal = Signal()
    signal.abort("before")
    inner = Inner(0.1)
    assert await with_deadline(inner, {"session_search": 1000})(search(signal)) is DONE
    assert inner.seen[0].reason == "before"


async def test_a_cancelled_host_is_obeyed_and_the_listener_released(autojump_clock: trio.abc.Clock) -> None:
    signal = Signal()
    with trio.move_on_after(1) as scope:
        await with_deadline(Inner(3), {"session_search": 60_000})(search(signal))
    assert scope.cancelled_caught
    assert trio.current_time() == 3
    assert not signal._callbacks


@pytest.mark.parametrize(
    ("tool", "arguments", "operation"),
    [
        ("session_search", {"query": "q", "parent_session_ids": ["sibling"]}, "filter_sessions"),
        ("session_search", {"query": "q"}, "collect_sessions"),
        ("session_event_search", {"query": "q", "session_id": "sibling"}, "filter_sessions"),
        ("session_event_search", {"query": "q"}, "own_cut"),
        ("session_event_search", {"query": "q"}, "collect_events"),
        ("session_event_search", {"query": "q", "seq_from": 50}, "read_titles"),
    ],
)
async def test_12_2_4_the_derived_signal_covers_every_step(
    tool: str, arguments: object, operation: str, autojump_clock: trio.abc.Clock
) -> None:
    service = corpus()

    async def hanging(*_: object) -> None:
        await run_exact(service.signals[-1], long_work)

    service.instead[operation] = hanging
    registry = ToolRegistry(service=service, settings=ToolSettings(search_timeout_ms=250))
    stage = compose(registry, None)
    result = await stage(ToolCall(tool=tool, arguments=arguments, caller=agent(), signal=Signal()))
    assert (result.code, trio.current_time()) == (ToolCode.TOOL_TIMEOUT, 0.25)
    assert "250 ms" in result.text


async def test_10_1_exact_tools_have_no_deadline_of_their_own(autojump_clock: trio.abc.Clock) -> None:
    service: FakeToolService = corpus()

    async def slow(*_: object) -> list[object]:
        await trio.sleep(100)
        service.instead.clear()
        return list(await service.read_titles(agent(), ("me",), signal=Signal()))

    service.instead["read_titles"] = slow
    stage = compose(ToolRegistry(service=service, settings=ToolSettings(search_timeout_ms=1)), None)
    call = ToolCall(tool="session_trace", arguments={}, caller=agent(), signal=Signal())
    assert not (await stage(call)).is_error
    bounded = attrs.evolve(call, deadline_ms=50)
    service.instead["read_titles"] = slow
    assert (await stage(bounded)).code == ToolCode.TOOL_TIMEOUT
