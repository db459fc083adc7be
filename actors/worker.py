"""One thread with one line of jobs: how the loop hands work to the owner of a database connection.

A hop through a general thread pool costs 70-170 us of CPU there and back (2 cores, Python 3.11; the upper
figure when the thread slept meanwhile, as it does in every fsync); a thread of one's own that waits on a
queue takes half of that. Items that stand in line together are handed over together, so that whoever
commits them can commit them at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar, cast

import attrs
import outcome
import trio

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")

TOGETHER_MAX: Final = 128
"""Items handed over together at most: more are no cheaper each than 16, and the first waits for the last."""


@attrs.frozen(eq=False)
class _Job:
    """``task`` sleeps until it is answered. ``work`` None: ``item`` may be done together with others."""

    task: trio.lowlevel.Task
    work: Callable[[], object] | None = None
    item: object = None


class Worker:
    """Made in the loop it answers to, in whose thread all methods are called.

    Asking is not cancellable: what was begun is awaited to its end, for a commit may not be half known.
    """

    def __init__(self, name: str) -> None:
        self._line: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """How many jobs stand in line, the one being done not counted."""
        return self._line.qsize()

    async def call(self, work: Callable[[], T]) -> T:
        """``work()``, done in the thread alone and in its turn. Raises: what it raised."""
        return cast(T, await self._ask(_Job(trio.lowlevel.current_task(), work)))

    async def close(self) -> None:
        """Let everything in line be done, then end the thread. Nothing may be asked afterwards.

        Waits without bound, also when cancelled: the jobs are bounded.
        """
        self._line.put(None)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._thread.join)

    async def _ask(self, job: _Job) -> object:
        self._line.put(job)
        return await trio.lowlevel.wait_task_rescheduled(_stay)

    def _run(self) -> None:
        job = self._line.get()
        while job is not None:
            jobs, job = self._gather(job)
            self._token.run_sync_soon(_wake, jobs, self._done(jobs))
            if job is _NOTHING:
                job = self._line.get()

    def _gather(self, first: _Job) -> tuple[list[_Job], _Job | None]:
        """The jobs to do now, and the one that was met behind them: ``_NOTHING`` if the line is empty."""
        jobs = [first]
        while first.work is None and len(jobs) < TOGETHER_MAX:
            try:
                job = self._line.get_nowait()
            except queue.Empty:
                break
            if job is None or job.work is not None:
                return jobs, job
            jobs.append(job)
        return jobs, _NOTHING

    def _done(self, jobs: Sequence[_Job]) -> Sequence[outcome.Outcome[object]]:
        """Do them; one outcome for each."""
        return [outcome.capture(job.work) for job in jobs if job.work is not None]


class GroupWorker(Worker, Generic[Item, Result]):
    """A worker with common work for items: ``together`` takes them in order, one outcome for each."""

    def __init__(
        self, name: str, together: Callable[[Sequence[Item]], Sequence[outcome.Outcome[Result]]]
    ) -> None:
        self._together = together
        super().__init__(name)

    async def do(self, item: Item) -> Result:
        """What ``together`` gives for this item, done with those beside it in line. Raises: as it says."""
        return cast(Result, await self._ask(_Job(trio.lowlevel.current_task(), item=item)))

    def _done(self, jobs: Sequence[_Job]) -> Sequence[outcome.Outcome[object]]:
        if jobs[0].work is not None:
            return super()._done(jobs)
        try:
            return self._together([cast(Item, job.item) for job in jobs])
        except BaseException as exc:  # everybody hears of it, nobody hangs
            return [outcome.Error(exc) for _ in jobs]


_NOTHING: Final = _Job(cast("trio.lowlevel.Task", None))


def _wake(jobs: Sequence[_Job], results: Sequence[outcome.Outcome[object]]) -> None:
    """In the loop: everybody gets their own answer."""
    for job, result in zip(jobs, results, strict=True):
        trio.lowlevel.reschedule(job.task, result)


def _stay(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
