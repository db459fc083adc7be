"""Runtimes that append and agents that search and read, over the wire, at a steady pace.

Open loop: everybody has a schedule and keeps to it, so that a stall of the service is seen by all whose
turn came meanwhile. A turn's time counts from when it was due. The client is one process on the same two
cores, so its own lag is in the numbers; it is measured and told beside them.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final

import attrs
import trio

from ...protocol.json_value import JSON
from .child import Child
from .lines import Line, Refused, open_line
from .material import Material, header
from .measuring import percentile, resident_bytes

WORKSPACES: Final = 8
LAG_EVERY_S: Final = 0.02
ERRORS_KEPT: Final = 20


@attrs.frozen(kw_only=True)
class Plan:
    """Who works, how often, for how long. Rates are turns a second of each."""

    runtimes: int
    agents: int
    idle: int
    seconds: float
    appends_per_s: float = 2.0
    questions_per_s: float = 1.0
    events: int = 2
    stored: int = 0
    """Events of ended sessions that are there before."""


@attrs.define
class Seen:
    """What the workers saw. Times in ms by kind of turn; ``acknowledged``: events by session."""

    times: dict[str, list[float]] = attrs.field(factory=dict)
    errors: list[str] = attrs.field(factory=list)
    acknowledged: dict[str, int] = attrs.field(factory=dict)
    lag: list[float] = attrs.field(factory=list)
    memory: list[int] = attrs.field(factory=list)

    def took(self, kind: str, ms: float) -> None:
        self.times.setdefault(kind, []).append(ms)

    def failed(self, what: str) -> None:
        if len(self.errors) < ERRORS_KEPT:
            self.errors.append(what)

    def told(self, kind: str) -> str:
        """Percentiles of one kind, for people."""
        times = self.times.get(kind, [])
        shares = ", ".join(f"{name} {percentile(times, share):.1f}" for name, share in _SHARES)
        return f"{kind}: {len(times)} turns, ms {shares}, most {max(times, default=0.0):.1f}"


_SHARES: Final = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


async def work(service: Child, plan: Plan) -> Seen:
    """Run a plan against a service to its end."""
    seen = Seen()
    async with AsyncExitStack() as stack:
        for _ in range(plan.idle):
            await stack.enter_async_context(open_line(service.url))
        runtimes = [await stack.enter_async_context(open_line(service.url)) for _ in range(plan.runtimes)]
        searching = [await stack.enter_async_context(open_line(service.url)) for _ in range(plan.agents)]
        reading = [await stack.enter_async_context(open_line(service.url)) for _ in range(plan.agents)]
        with trio.move_on_after(plan.seconds):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, service, plan, seen)
                for number, line in enumerate(runtimes):
                    nursery.start_soon(_publish, line, number, plan, seen)
                for number, line in enumerate(searching):
                    nursery.start_soon(_search, line, number, plan, seen)
                for number, line in enumerate(reading):
                    nursery.start_soon(_read, line, number, plan, seen)
    return seen


async def _in_time(
    seen: Seen, rng: random.Random, every_s: float, turn: Callable[[], Awaitable[str]]
) -> None:
    """One turn after the other, each when it is due; late ones at once."""
    due = trio.current_time() + rng.random() * every_s
    while True:
        await trio.sleep_until(due)
        try:
            kind = await turn()
        except (Refused, OSError) as exc:
            seen.failed(repr(exc))
            kind = "failed"
        if kind != "nothing yet":
            seen.took(kind, (trio.current_time() - due) * 1e3)
        due += every_s


async def _publish(line: Line, number: int, plan: Plan, seen: Seen) -> None:
    rng, material = random.Random(number), Material(number)
    session_id, length = f"work-{number}", 0
    answer = await line.ask("attach", session=header(session_id, f"/bench/{number % WORKSPACES}"))
    length = int(str(answer["next_seq"]))

    async def append() -> str:
        nonlocal length
        events: list[JSON] = material.events(plan.events, length)
        await line.append(session_id, length, events)
        length += len(events)
        seen.acknowledged[session_id] = length
        return "append"

    await _in_time(seen, rng, 1 / plan.appends_per_s, append)


async def _search(line: Line, number: int, plan: Plan, seen: Seen) -> None:
    """Half of an agent's questions, on a line and a schedule of their own: a read that was due while its
    agent still waited for a search would tell of the search.
    """
    rng, material = random.Random(-1 - number), Material(number)
    workspace = f"/bench/{number % WORKSPACES}"

    async def ask() -> str:
        words = material.text().split()[: rng.randrange(1, 4)]
        await line.call("session_search", {"query": " ".join(words)}, workspace)
        return "search"

    await _in_time(seen, rng, 2 / plan.questions_per_s, ask)


async def _read(line: Line, number: int, plan: Plan, seen: Seen) -> None:
    """The other half: reads, and some traces, of events that were acknowledged."""
    rng = random.Random(-1_001 - number)
    workspace = f"/bench/{number % WORKSPACES}"

    async def ask() -> str:
        target = f"work-{rng.randrange(plan.runtimes) // WORKSPACES * WORKSPACES + number % WORKSPACES}"
        known = seen.acknowledged.get(target, 0)
        if not known:
            return "nothing yet"
        seq = rng.randrange(known)
        tool = "session_event_read" if rng.random() < 0.8 else "session_event_trace"
        text = await line.call(tool, {"session_id": target, "seq": seq}, workspace)
        if str(seq) not in text:
            seen.failed(f"{tool} of {target} {seq} told of something else")
        return tool

    await _in_time(seen, rng, 2 / plan.questions_per_s, ask)


async def _watch(service: Child, plan: Plan, seen: Seen) -> None:
    """The client's own lag, and the service's memory, from time to time."""
    next_look = 0.0
    while True:
        due = trio.current_time() + LAG_EVERY_S
        await trio.sleep_until(due)
        seen.lag.append((trio.current_time() - due) * 1e3)
        if trio.current_time() >= next_look:
            seen.memory.append(resident_bytes(service.pid))
            next_look = trio.current_time() + max(0.2, plan.seconds / 60)
