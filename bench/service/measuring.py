"""Clocks, spreads, rows: what every case of the bench is made of.

CPU time first, wall time beside it: the machine is shared, and CPU time is what stays comparable. A ratio
is taken inside one round, of two measurements that saw the same machine, and then over the rounds.
"""

from __future__ import annotations

import datetime
import gc
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from ...storage import sqlite

PAGE_BYTES: Final = 4096

Bound = Literal["at most", "at least"]


@attrs.frozen
class Spread:
    """Median, smallest and largest of some rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@attrs.frozen(kw_only=True)
class Row:
    """One line of the result. ``floor``: what it is compared with, in the same unit and the same run.

    ``gate`` holds for ``ratio`` where there is a floor, else for ``ours``. None: told, not judged.
    """

    case: str
    what: str
    unit: str
    ours: Spread
    floor: Spread | None = None
    ratio: Spread | None = None
    bound: Bound = "at most"
    gate: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the gate holds in the median; None without one."""
        if self.gate is None:
            return None
        value = (self.ratio or self.ours).median
        return value <= self.gate if self.bound == "at most" else value >= self.gate


@attrs.frozen(kw_only=True)
class Scale:
    """How much work a run does. ``full`` is for results that are kept, ``quick`` for a first look."""

    name: str
    rounds: int
    appends: int
    long_session: int
    reads: int
    requests: int
    stored_sessions: int
    search_events: int
    cancels: int
    connections: int
    build_mb: float
    load_s: float
    soak_s: float
    minute_s: float
    soak_stored: int


FULL: Final = Scale(
    name="full", rounds=7, appends=300, long_session=10_000, reads=2_000, requests=2_000,
    stored_sessions=10_000, search_events=200_000, cancels=60, connections=1_000, build_mb=64.0,
    load_s=30.0, soak_s=600.0, minute_s=60.0,
    soak_stored=60_000,
)  # fmt: skip
QUICK: Final = Scale(
    name="quick", rounds=3, appends=100, long_session=2_000, reads=500, requests=300, stored_sessions=300,
    search_events=10_000, cancels=12, connections=100, build_mb=4.0, load_s=5.0, soak_s=5.0, minute_s=5.0,
    soak_stored=3_000,
)  # fmt: skip
SMOKE: Final = Scale(
    name="smoke", rounds=2, appends=8, long_session=100, reads=20, requests=12, stored_sessions=8,
    search_events=300, cancels=2, connections=4, build_mb=0.2, load_s=0.5, soak_s=1.0, minute_s=1.0,
    soak_stored=150,
)  # fmt: skip
"""Only to see that every case runs."""


@attrs.define
class Clock:
    """CPU seconds of this process, all threads, and wall seconds, of one block."""

    cpu_s: float = 0.0
    wall_s: float = 0.0


@contextmanager
def clock() -> Iterator[Clock]:
    """Time a block. Collection of garbage that others left is not the block's."""
    gc.collect()
    taken = Clock()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        yield taken
    finally:
        taken.cpu_s, taken.wall_s = time.process_time() - cpu, time.perf_counter() - wall


def ratios(ours: Sequence[float], floor: Sequence[float]) -> Spread:
    """Ours by floor, round by round."""
    return Spread.of([one / max(other, 1e-12) for one, other in zip(ours, floor, strict=True)])


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def process_cpu_s(pid: int) -> float:
    """Seconds that the threads of another process have run so far, as its scheduler counts them, in ns.

    Not the ticks of 10 ms in ``stat``: a quick round is twenty of them, and its ratio was off by a third.
    Threads that have ended are missing; those of a service at work stay.
    """
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def resident_bytes(pid: int) -> int:
    """Resident memory of a process now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def peak_bytes(pid: int) -> int:
    """The most memory a process has held resident so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


Machine: TypeAlias = "dict[str, str | int | float]"


def machine() -> Machine:
    """What the numbers are measured on, and when."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "sqlite": f"{'.'.join(map(str, sqlite.VERSION))} ({sqlite.LIBRARY})",
        "system": f"{platform.system()} {platform.machine()}",
        "load_1min": round(os.getloadavg()[0], 2),
    }


def _commit() -> str:
    """The commit of the tree the bench stands in, if it stands in one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
