"""One thread with one line of jobs: how the loop hands work to the owner of a database connection.

Around a commit with its ``fsync`` a hop through a general thread pool costs 130 us of CPU there and back (2
cores, Python 3.11), one through a thread of one's own that answers with ``run_sync_soon`` 90, and one through
this one 55: the thread rings a bell, and one of those who wait hears it by itself, without a task of the
loop's own between. Items that stand in line together are handed over together, so that whoever commits them
can commit them at once.
"""

from __future__ import annotations

import queue
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Final, Generic, TypeVar, cast

import attrs
import outcome
import trio

from .bell import open_bell

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
    One asker listens, for its own answer and for those of all who asked after it; when it has its own,
    another one listens.
    """

    def __init__(self, name: str) -> None:
        self._line: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._bell = open_bell()
        self._answers: deque[tuple[Sequence[_Job], Sequence[outcome.Outcome[object]]]] = deque()
        self._sleeping: dict[_Job, None] = {}
        self._listening = self._ended = False
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
        self._ended = True
        if not self._listening:
            self._bell.close()

    # -- in the loop -----------------------------------------------------------------------------

    async def _ask(self, job: _Job) -> object:
        told = self._listening
        if told:
            self._line.put(job)
            self._sleeping[job] = None
            answer: object = await trio.lowlevel.wait_task_rescheduled(_stay)
            if answer is not _LISTEN:
                return answer
        self._listening = True
        try:
            return (await self._listen(job, told)).unwrap()
        finally:
            self._pass_on()

    async def _listen(self, job: _Job, told: bool) -> outcome.Outcome[object]:
        """Hand out answers until the one to ``job`` is among them. A Ctrl-C is raised behind that.

        A scope that shields costs 5-10 us, so there is none until somebody wants to cancel. ``told``: the
        thread knows of the job.
        """

        def tell() -> None:
            nonlocal told
            self._line.put(job)
            told = True

        interrupt: BaseException | None = None
        result: outcome.Outcome[object] | None = None
        while result is None:
            try:
                if not told:
                    await _asleep_then(self._bell.heard(), tell)
                elif interrupt is None:
                    await self._bell.heard()
                else:
                    with trio.CancelScope(shield=True):
                        await self._bell.heard()
            except (trio.Cancelled, KeyboardInterrupt) as exc:
                if not told:
                    raise
                interrupt = exc  # kept until the answer is known
            else:
                result = self._hand_out(job)
        if isinstance(interrupt, KeyboardInterrupt):
            raise interrupt
        return result  # a scope that was cancelled still is: the next checkpoint says so again

    def _hand_out(self, mine: _Job) -> outcome.Outcome[object] | None:
        """Wake whoever has an answer. Returns: the one to ``mine``, if it is there."""
        found: outcome.Outcome[object] | None = None
        self._bell.still()
        while self._answers:
            for job, result in zip(*self._answers.popleft(), strict=True):
                if job is mine:
                    found = result
                elif job in self._sleeping:  # else a Ctrl-C took its asker away
                    del self._sleeping[job]
                    trio.lowlevel.reschedule(job.task, result)
        return found

    def _pass_on(self) -> None:
        """Let another one listen, if anybody waits."""
        self._listening = bool(self._sleeping)
        if self._sleeping:
            job = next(iter(self._sleeping))
            del self._sleeping[job]
            trio.lowlevel.reschedule(job.task, outcome.Value(_LISTEN))
        elif self._ended:
            self._bell.close()

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        job = self._line.get()
        while job is not None:
            jobs, job = self._gather(job)
            self._answers.append((jobs, self._done(jobs)))
            self._bell.ring()
            if job is _NOTHING:
                job = self._line.get()

    def _gather(self, first: _Job) -> tuple[list[_Job], _Job | None]:
        """The jobs to do now, and the one that was met behind them: ``_NOTHING`` if the line is empty."""
        jobs = [first]
        while first.work is None and len(jobs) < TOGETHER_MAX and not self._line.empty():
            job = self._line.get()  # nobody else takes any
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
_LISTEN: Final = object()


@types.coroutine
def _asleep_then(
    wait: Coroutine[object, object, None], act: Callable[[], None]
) -> Generator[object, object, None]:
    """``await wait``, and ``act()`` at the moment the task has nothing left to do but to sleep.

    A thread that is told earlier wakes up to wait for the interpreter's lock, which the loop gives up and
    wants back at every system call on its way to sleep.
    """
    try:
        trap = wait.send(None)
    except StopIteration:  # it was not long
        act()
        return
    act()
    try:
        while True:
            try:
                answer = yield trap
            except BaseException as exc:
                trap = wait.throw(exc)
            else:
                trap = wait.send(answer)
    except StopIteration:
        return


def _stay(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
