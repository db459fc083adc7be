"""Load and soak: many clients at once, and afterwards the index held against the journal.

python -m session_query.bench.service.soak [--seconds 600] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Final

import attrs
import trio

from ...actors.config import ServiceConfig
from ...actors.service import open_service
from ...storage.doctor import Check, examine
from ...storage.journal import PUBLISHED
from ...storage.readers.registry import READERS
from ...storage.store import StoreSettings, open_store
from .child import child
from .material import Material, header
from .measuring import Row, Scale, Spread, percentile
from .work import WORKSPACES, Plan, Seen, work

STORED_EACH: Final = 150
READS: Final = ("session_event_read", "session_event_trace")


@attrs.frozen(kw_only=True)
class Verdict:
    """What the files say when the service has stopped. ``lost``: events acknowledged and not there."""

    checks: tuple[Check, ...]
    lost: int
    stored: int

    @property
    def good(self) -> bool:
        return not self.lost and all(check.ok for check in self.checks)


def verify(data_dir: Path, acknowledged: dict[str, int]) -> Verdict:
    """Hold journal and index against what was acknowledged, and every session's documents against its log."""
    store = open_store(StoreSettings(data_dir=data_dir))
    try:
        reader = store.open_reader()
        try:
            stored = {session.key.id: session.length for session in reader.journal.sessions(PUBLISHED)}
            with reader.index.snapshot():
                found = examine(reader, READERS, samples=len(stored))
        finally:
            reader.close()
    finally:
        store.close()
    lost = sum(max(0, length - stored.get(session, 0)) for session, length in acknowledged.items())
    return Verdict(checks=found.checks, lost=lost, stored=sum(stored.values()))


async def measure_load(directory: Path, scale: Scale) -> list[Row]:
    """64 runtimes and 64 agents among 1,000 connections (all in proportion for smaller runs)."""
    share = scale.connections / 1_000
    plan = Plan(
        runtimes=max(2, int(64 * share)),
        agents=max(2, int(64 * share)),
        idle=max(0, scale.connections - 3 * int(64 * share)),
        seconds=scale.load_s,
    )
    return await _measured("load", directory, plan)


async def measure_soak(directory: Path, scale: Scale) -> list[Row]:
    """50 appending sessions and 20 searching callers for ten minutes, beside what was there before."""
    plan = Plan(runtimes=50, agents=20, idle=0, seconds=scale.soak_s, stored=scale.soak_stored)
    return await _measured("soak", directory, plan)


async def measure_minute(directory: Path, scale: Scale) -> list[Row]:
    """The same for one minute, over a store that begins empty."""
    plan = Plan(runtimes=50, agents=20, idle=0, seconds=scale.minute_s)
    return await _measured("soak-minute", directory, plan)


async def _measured(case: str, directory: Path, plan: Plan) -> list[Row]:
    data = directory / "data"
    await _fill(data, plan.stored)
    async with child("serve", str(data)) as service:
        seen = await work(service, plan)
    verdict = await trio.to_thread.run_sync(verify, data, seen.acknowledged)
    return rows(case, plan, seen, verdict)


async def _fill(data: Path, events: int) -> None:
    """Sessions of 150 events that ended before, in the workspaces that are searched.

    Page caches are bounded, but they grow as long as the files do: over a store that begins empty they are
    still filling after a third of ten minutes (93 MiB then, 119 at the end), which hid any leak.
    """
    if not events:
        return
    material = Material(seed=0)
    async with open_service(ServiceConfig(data_dir=data)) as service:
        for number in range(-(-events // STORED_EACH)):
            handle = await service.attach(header(f"stored-{number}", f"/bench/{number % WORKSPACES}"))
            await handle.append(material.events(STORED_EACH))
            await handle.detach()


def rows(case: str, plan: Plan, seen: Seen, verdict: Verdict) -> list[Row]:
    """What came out, as rows."""
    crowd = f"{plan.runtimes} runtimes, {plan.agents} agents, {plan.idle} idle, {plan.seconds:.0f} s"
    crowd += f", {plan.stored} events stored before" if plan.stored else ""
    lag = f"the client's own lag p50 {percentile(seen.lag, 0.5):.1f}, p99 {percentile(seen.lag, 0.99):.1f} ms"
    reads = [ms for kind in READS for ms in seen.times.get(kind, [])]
    found = [_times(case, kind, times, lag) for kind, times in sorted(seen.times.items())]
    p99 = percentile(reads, 0.99)
    found.append(
        Row(case=case, what="reads, p99, wall", unit="ms", ours=_one(p99), gate=250.0, note=f"{crowd}; {lag}")
    )
    failures = f"{seen.errors[:3]}" if seen.errors else crowd
    found.append(Row(case=case, what="errors", unit="", ours=_one(len(seen.errors)), gate=0.0, note=failures))
    found.append(_growth(case, seen))
    wrong = "; ".join(check.detail for check in verdict.checks if not check.ok)
    found.append(
        Row(
            case=case, what="acknowledged events lost", unit="", ours=_one(verdict.lost), gate=0.0,
            note=f"{verdict.stored} stored",
        )
    )  # fmt: skip
    found.append(
        Row(
            case=case, what="checks of index against journal that fail", unit="", gate=0.0,
            ours=_one(sum(not check.ok for check in verdict.checks)), note=wrong or "every session compared",
        )
    )  # fmt: skip
    return found


def _times(case: str, kind: str, times: list[float], lag: str) -> Row:
    spread = Spread(percentile(times, 0.5), min(times, default=0.0), percentile(times, 0.99))
    note = f"{len(times)} turns; high is p99, the most {max(times, default=0.0):.0f}; {lag}"
    return Row(case=case, what=f"{kind}, p50 and p99, wall", unit="ms", ours=spread, note=note)


def _growth(case: str, seen: Seen) -> Row:
    """Memory at the end beside memory after a third: caches have filled by then."""
    memory = [size / 2**20 for size in seen.memory] or [0.0]
    settled = memory[len(memory) // 3]
    grown = max(memory[-max(1, len(memory) // 5) :]) - settled
    note = f"MiB: {memory[0]:.0f} at first, {settled:.0f} after a third, {memory[-1]:.0f} at the end"
    return Row(
        case=case, what="memory gained after a third", unit="MiB", ours=Spread(grown, grown, grown),
        gate=16.0, note=note,
    )  # fmt: skip


def _one(value: float) -> Spread:
    return Spread(value, value, value)


def main() -> None:
    """The soak alone, for as long as asked."""
    from .report import print_rows

    parser = argparse.ArgumentParser(prog="python -m session_query.bench.service.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--runtimes", type=int, default=50)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--stored", type=int, default=60_000, help="events that are there before")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    plan = Plan(
        runtimes=given.runtimes, agents=given.agents, idle=0, seconds=given.seconds, stored=given.stored
    )
    with tempfile.TemporaryDirectory(prefix="session-query-soak-") as directory:
        found = trio.run(_measured, "soak", Path(directory), plan)
    if given.json:
        print(json.dumps([attrs.asdict(row) | {"holds": row.holds} for row in found], indent=2))
    else:
        print_rows(found)


if __name__ == "__main__":
    main()
