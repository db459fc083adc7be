"""The search actor: one search at a time for each caller, several callers at once, fairly (SPEC 16.5).

Cursor use is bound to a generation, so two searches of one caller never overlap and keep their
order: each caller has a lane. Lanes of one workspace share a turn, and turns go round the
workspaces, so that one busy workspace cannot starve another. The actor runs no SQL itself.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import attrs
import outcome
import trio

from ..protocol.errors import Busy, Code, QueryError
from ..protocol.signal import Signal

T = TypeVar("T")
RETRY_AFTER_MS = 250


@attrs.define(eq=False)
class _Job(Generic[T]):
    """One search. Touched by its asker and by the actor, both on the loop's thread."""

    lane: Hashable
    workspace: Hashable
    work: Callable[[], Awaitable[T]]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    done: trio.Event = attrs.field(factory=trio.Event)
    answer: outcome.Outcome[T] | None = None
    started: bool = False

    def settle(self, answer: outcome.Outcome[T]) -> None:
        """The first answer wins; later ones are dropped."""
        if self.answer is None:
            self.answer = answer
            self.done.set()


@attrs.frozen
class SearchStatistics:
    queued: int
    running: int
    served: int
    refused: int


@attrs.define(eq=False)
class SearchActor:
    """Owner task: ``run``. ``ask`` may be called from any task of the same loop.

    ``exact_reasons``: an aborted search raises its signal's reason instead of ABORTED (SPEC 14 L37).
    """

    concurrency: int
    max_queued: int
    exact_reasons: bool = False
    _turns: OrderedDict[Hashable, OrderedDict[Hashable, deque[_Job[object]]]] = attrs.field(
        factory=OrderedDict, init=False, repr=False
    )
    _busy_lanes: set[Hashable] = attrs.field(factory=set, init=False, repr=False)
    _held: Counter[Hashable] = attrs.field(factory=Counter, init=False, repr=False)
    _wake: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)
    _idle: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)
    _closed: bool = attrs.field(default=False, init=False)
    _queued: int = attrs.field(default=0, init=False)
    _running: int = attrs.field(default=0, init=False)
    _served: int = attrs.field(default=0, init=False)
    _refused: int = attrs.field(default=0, init=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until ``close`` and the last started search is done, or until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                task_status.started()
                while not self._closed:
                    self._wake = trio.Event()
                    while (job := self._next_startable()) is not None:
                        nursery.start_soon(self._serve, job)
                    await self._wake.wait()
        finally:
            self._closed = True
            self._refuse_waiting()
            self._idle.set()

    def close(self) -> None:
        """Refuse queued and later searches with INDEX_FAILED; let running ones finish (SPEC 6.14.6)."""
        self._closed = True
        self._refuse_waiting()
        self._wake.set()

    async def wait_idle(self) -> None:
        """Wait until ``run`` has ended."""
        await self._idle.wait()

    async def ask(
        self, lane: Hashable, workspace: Hashable, work: Callable[[], Awaitable[T]], signal: Signal
    ) -> T:
        """Run ``work`` when the caller's lane and a slot are free; return its result.

        Raises: QueryError ABORTED when the signal aborts (at once while queued, after the work has
        settled once started), INDEX_FAILED when the actor is closed; Busy when the line is full.
        Cancellation: a queued job is let go at once; a started one is cancelled and awaited.
        """
        self._raise_if_aborted(signal)
        job: _Job[T] = _Job(lane, workspace, work)
        self._enqueue(job)
        forget = signal.on_abort(lambda: self._stop(job))
        try:
            await job.done.wait()
        except trio.Cancelled:
            self._stop(job)
            with trio.CancelScope(shield=True):  # SPEC 6.14.3: a started source settles first
                await job.done.wait()
            raise
        finally:
            forget()
        self._raise_if_aborted(signal)
        assert job.answer is not None
        return job.answer.unwrap()

    def _raise_if_aborted(self, signal: Signal) -> None:
        if self.exact_reasons:
            signal.raise_if_aborted()
        if signal.aborted:
            raise QueryError(Code.ABORTED)

    def statistics(self) -> SearchStatistics:
        return SearchStatistics(self._queued, self._running, self._served, self._refused)

    def _enqueue(self, job: _Job[T]) -> None:
        if self._closed:
            raise QueryError(Code.INDEX_FAILED, "the search engine is closed")
        if self._queued >= self.max_queued:
            self._refused += 1
            raise Busy(RETRY_AFTER_MS)
        lanes = self._turns.setdefault(job.workspace, OrderedDict())
        lanes.setdefault(job.lane, deque()).append(job)  # type: ignore[arg-type]  # results are opaque here
        self._queued += 1
        self._wake.set()

    def _stop(self, job: _Job[T]) -> None:
        if job.started:
            job.scope.cancel()
            return
        lanes = self._turns.get(job.workspace)
        lane = lanes.get(job.lane) if lanes is not None else None
        if lanes is not None and lane is not None and job in lane:
            lane.remove(job)  # type: ignore[arg-type]
            self._queued -= 1
            self._drop_if_empty(job.workspace, job.lane)
        job.settle(outcome.Error(QueryError(Code.ABORTED)))

    def _next_startable(self) -> _Job[object] | None:
        """Take the next job: workspaces in turn, inside one its lanes in turn, skipping busy lanes.

        When all places are taken there is one more, for a workspace that has none: slow searches of some
        others may not make it wait.
        """
        if self._running > self.concurrency:
            return None
        full = self._running == self.concurrency
        for workspace, lanes in self._turns.items():
            if full and self._held[workspace]:
                continue
            for lane, jobs in lanes.items():
                if lane in self._busy_lanes:
                    continue
                job = jobs.popleft()
                self._queued -= 1
                self._running += 1
                self._busy_lanes.add(lane)
                self._held[workspace] += 1
                job.started = True
                lanes.move_to_end(lane)
                self._turns.move_to_end(workspace)
                self._drop_if_empty(workspace, lane)
                return job
        return None

    def _drop_if_empty(self, workspace: Hashable, lane: Hashable) -> None:
        lanes = self._turns[workspace]
        if not lanes[lane]:
            del lanes[lane]
        if not lanes:
            del self._turns[workspace]

    async def _serve(self, job: _Job[object]) -> None:
        answer: outcome.Outcome[object] = outcome.Error(QueryError(Code.ABORTED))
        try:
            with job.scope:
                await trio.lowlevel.checkpoint()  # aborted between queue and start: touch no source
                try:
                    answer = outcome.Value(await job.work())
                except Exception as exc:  # every failure is the asker's: the others' searches go on
                    answer = outcome.Error(exc)
        finally:
            self._running -= 1
            self._served += 1
            self._busy_lanes.discard(job.lane)
            self._held[job.workspace] -= 1
            if not self._held[job.workspace]:
                del self._held[job.workspace]
            self._wake.set()
            job.settle(answer)

    def _refuse_waiting(self) -> None:
        refusal = QueryError(Code.INDEX_FAILED, "the search engine is closed")
        for lanes in self._turns.values():
            for jobs in lanes.values():
                for job in jobs:
                    job.settle(outcome.Error(refusal))
        self._turns.clear()
        self._queued = 0
