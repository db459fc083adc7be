"""A thread with a line of jobs: order, grouping, failures, cancellation, its end."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import outcome
import pytest
import trio
import trio.testing

from session_query.actors import worker as worker_module
from session_query.actors.bell import Bell, open_bell
from session_query.actors.worker import TOGETHER_MAX, GroupWorker, Worker
from support.gate import Gate


async def test_jobs_are_done_one_after_the_other_in_the_order_they_came(nursery: trio.Nursery) -> None:
    worker, seen = Worker("test"), list[int]()
    gate = Gate()
    nursery.start_soon(worker.call, gate)
    await gate.reached()
    for number in range(20):
        nursery.start_soon(worker.call, lambda number=number: seen.append(number))
        await trio.testing.wait_all_tasks_blocked()
    assert worker.queued == 20
    gate.opened.set()
    await worker.close()
    assert seen == list(range(20))


async def test_what_a_job_raises_is_its_askers() -> None:
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 // 0)
    assert await worker.call(threading.get_ident) != threading.get_ident()
    await worker.close()


async def test_a_cancelled_asker_waits_until_its_job_is_done() -> None:
    worker, gate, done = Worker("test"), Gate(), list[bool]()

    def job() -> None:
        done.append(gate())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.call, job)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        gate.opened.set()
    assert done == [True]
    await worker.close()


def _doubled(groups: list[list[int]], items: Sequence[int]) -> list[outcome.Outcome[int]]:
    groups.append(list(items))
    return [outcome.Value(2 * item) if item >= 0 else outcome.Error(KeyError(item)) for item in items]


async def _ask_all(worker: GroupWorker[int, int], items: Sequence[int]) -> dict[int, object]:
    """Put items in line while the thread is busy; what came of each."""
    came: dict[int, object] = {}

    async def ask(item: int) -> None:
        try:
            came[item] = await worker.do(item)
        except KeyError as error:
            came[item] = error.args

    gate = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.call, gate)
        await gate.reached()
        for item in items:
            nursery.start_soon(ask, item)
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()
    return came


async def test_items_in_line_together_are_handed_over_together_each_with_its_own_outcome() -> None:
    groups: list[list[int]] = []
    worker = GroupWorker[int, int]("test", lambda items: _doubled(groups, items))
    assert await worker.do(7) == 14
    came = await _ask_all(worker, [1, -2, 3])
    await worker.close()
    assert came == {1: 2, -2: (-2,), 3: 6}
    assert [sorted(group) for group in groups] == [[7], [-2, 1, 3]]


async def test_a_group_is_bounded() -> None:
    groups: list[list[int]] = []
    worker = GroupWorker[int, int]("test", lambda items: _doubled(groups, items))
    await _ask_all(worker, range(TOGETHER_MAX + 5))
    await worker.close()
    assert [len(group) for group in groups] == [TOGETHER_MAX, 5]


async def test_a_job_between_items_keeps_its_place() -> None:
    groups: list[list[int]] = []
    worker = GroupWorker[int, int]("test", lambda items: _doubled(groups, items))
    gate = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.call, gate)
        await gate.reached()
        for number in (1, 2):
            nursery.start_soon(worker.do, number)
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(worker.call, lambda: groups.append([]))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(worker.do, 3)
        await trio.testing.wait_all_tasks_blocked()
        gate.opened.set()
    await worker.close()
    assert groups == [[1, 2], [], [3]]


async def test_a_failing_group_reaches_everybody() -> None:
    def fail(items: Sequence[int]) -> list[outcome.Outcome[int]]:
        raise KeyError("all of it")

    worker = GroupWorker[int, int]("test", fail)
    came = await _ask_all(worker, [1, 2])
    assert came == {1: ("all of it",), 2: ("all of it",)}
    assert await worker.call(lambda: 5) == 5
    await worker.close()


async def test_whoever_waits_longest_listens_next_and_everybody_gets_their_own_answer() -> None:
    worker, came = Worker("test"), list[int]()
    gates = [Gate() for _ in range(5)]

    async def ask(number: int) -> None:
        def job() -> int:
            gates[number]()
            return number

        came.append(await worker.call(job))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
            await trio.testing.wait_all_tasks_blocked()
        for number, gate in enumerate(gates):
            await gate.reached()
            gate.opened.set()
            while len(came) <= number:
                await trio.lowlevel.checkpoint()
    assert came == [0, 1, 2, 3, 4]
    await worker.close()


async def test_a_listener_that_is_cancelled_goes_on_handing_out_answers() -> None:
    worker, gate = Worker("test"), Gate()
    came = list[str]()

    async def ask(name: str) -> None:
        came.append(await worker.call(lambda: name))

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_reached, gate, scope)
            nursery.start_soon(ask, "beside it")
            await worker.call(gate)
            came.append("its own")
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught, "what was swallowed is said again at the next checkpoint"
    assert sorted(came) == ["beside it", "its own"]
    await worker.close()


async def _cancel_when_reached(gate: Gate, scope: trio.CancelScope) -> None:
    await gate.reached()
    scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    gate.opened.set()


class _Interrupted(Bell):
    """Somebody presses Ctrl-C while a task listens: trio raises it in the main task, wherever that waits."""

    def __init__(self, times: int, *, asleep: bool) -> None:
        self.bell, self.times, self.asleep = open_bell(), times, asleep

    async def heard(self) -> None:
        if not self.times:
            await self.bell.heard()
            return
        self.times -= 1
        if self.asleep:
            await trio.lowlevel.checkpoint()
        raise KeyboardInterrupt

    def ring(self) -> None:
        self.bell.ring()

    def still(self) -> None:
        self.bell.still()

    def close(self) -> None:
        self.bell.close()


@pytest.mark.parametrize("times", [1, 3])
async def test_an_interrupt_is_raised_when_the_answer_is_known(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(worker_module, "open_bell", lambda: _Interrupted(times, asleep=True))
    worker, done = Worker("test"), list[int]()
    with pytest.raises(KeyboardInterrupt):
        await worker.call(lambda: done.append(1))
    assert done == [1]
    assert await worker.call(lambda: 2) == 2
    await worker.close()


async def test_an_interrupt_before_the_thread_was_told_leaves_the_job_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "open_bell", lambda: _Interrupted(1, asleep=False))
    worker, done = Worker("test"), list[int]()
    with pytest.raises(KeyboardInterrupt):
        await worker.call(lambda: done.append(1))
    assert await worker.call(lambda: 2) == 2
    assert done == []
    await worker.close()
