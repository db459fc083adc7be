"""A host's own store of sessions, in memory, that can be told to misbehave in every way a store can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio

from session_query import CorruptLog, Event, Inspected, SessionHeader, SessionSnapshot, Signal


class NotAnException(BaseException):
    """What a careless library raises outside the family of ``Exception``."""


@attrs.define(eq=False)
class Stored:
    header: SessionHeader
    events: list[Event]
    revision: str


@attrs.define(eq=False)
class FakeProvider:
    """``calls``: (operation, session id or ""); ``signals``: the signal object of each call.

    ``faults``: by operation (``list``, ``list_snapshots``, ``inspect``) or by operation and id
    (``inspect x``): an exception to raise, or a function of the signal to run instead; what an
    asynchronous one returns is the answer. ``before``: run before each call, to move things around.
    ``running`` and ``most_running`` count inspections under way; ``held`` logs handed out last.
    """

    name: str = "p"
    sessions: dict[str, Stored] = attrs.field(factory=dict)
    calls: list[tuple[str, str]] = attrs.field(factory=list)
    signals: list[Signal] = attrs.field(factory=list)
    faults: dict[str, Any] = attrs.field(factory=dict)
    before: Callable[[str, str], None] | None = None
    running: int = 0
    most_running: int = 0
    settled: int = 0
    _revisions: int = 0

    def put(self, header: SessionHeader, events: Sequence[Event], revision: str | None = None) -> None:
        self._revisions += 1
        self.sessions[header.id] = Stored(header, list(events), revision or f"{self.name}-{self._revisions}")

    def count(self, operation: str) -> int:
        return sum(name == operation for name, _ in self.calls)

    def inspected(self) -> list[str]:
        return [session_id for name, session_id in self.calls if name == "inspect"]

    def forget_calls(self) -> None:
        self.calls.clear()
        self.signals.clear()

    async def list(self, signal: Signal) -> Any:
        return await self._answer("list", "", signal, lambda: [s.header for s in self.sessions.values()])

    async def list_snapshots(self, signal: Signal) -> Any:
        return await self._answer(
            "list_snapshots",
            "",
            signal,
            lambda: [SessionSnapshot(header=s.header, revision=s.revision) for s in self.sessions.values()],
        )

    async def inspect(self, session_id: str, signal: Signal) -> Any:
        def found() -> Inspected:
            stored = self.sessions[session_id]
            return Inspected(header=stored.header, events=list(stored.events))

        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await self._answer("inspect", session_id, signal, found)
        finally:
            self.running -= 1
            self.settled += 1

    async def read_from(self, session_id: str, seq: int, signal: Signal) -> Any:
        self.calls.append(("read_from", session_id))
        return self.sessions[session_id].events[seq:]

    async def _answer(self, operation: str, session_id: str, signal: Signal, usual: Callable[[], Any]) -> Any:
        self.calls.append((operation, session_id))
        self.signals.append(signal)
        if self.before is not None:
            self.before(operation, session_id)
        fault = self.faults.get(f"{operation} {session_id}", self.faults.get(operation))
        if isinstance(fault, BaseException):
            raise fault
        if fault is not None:
            instead = await fault(signal)
            if instead is not PASS:
                return instead
        await trio.lowlevel.checkpoint()
        return usual()


PASS: Any = object()
"""What a fault returns to let the usual answer through, late."""


@attrs.define(eq=False)
class Hang:
    """Hangs until let go; ``entered`` is set when somebody hangs. ``stubborn``: cancellation is ignored."""

    stubborn: bool = False
    entered: trio.Event = attrs.field(factory=trio.Event)
    go: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, signal: Signal) -> Any:
        self.entered.set()
        with trio.CancelScope(shield=self.stubborn):
            await self.go.wait()
        return PASS


async def fails_when_aborted(signal: Signal) -> Any:
    """Cooperates with the signal in its own way: settles, then raises an error of its own."""
    aborted = trio.Event()
    forget = signal.on_abort(aborted.set)
    try:
        with trio.CancelScope(shield=True):
            await aborted.wait()
    finally:
        forget()
    raise RuntimeError("told to stop")


def returns(value: object) -> Callable[[Signal], Any]:
    """A fault that answers with something else."""

    async def answer(signal: Signal) -> object:
        return value

    return answer


FAILURES: list[BaseException] = [
    OSError("the disk is gone"),
    RuntimeError("broken"),
    KeyError("x"),
    NotAnException("odd"),
    ExceptionGroup("several", [ValueError("one"), OSError("two")]),
    BaseExceptionGroup("odd ones", [NotAnException("inside")]),
]
"""Every way to fail that is not Trio's or Python's own."""

CORRUPT = CorruptLog("garbage at byte 7")
