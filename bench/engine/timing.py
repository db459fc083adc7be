"""CPU time first, wall time beside it, in rounds; and a query that tells one machine from another."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Final

import attrs

from ...storage import sqlite
from .results import Spread, spread

_CALIBRATION: Final = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000)"
    " SELECT sum(x * 7 % 13), count(DISTINCT x % 1000) FROM n"
)


@attrs.define
class Times:
    """Milliseconds of every round."""

    cpu: list[float] = attrs.field(factory=list)
    wall: list[float] = attrs.field(factory=list)

    def take(self, work: Callable[[], object]) -> None:
        """Run ``work`` once more."""
        cpu, wall = time.thread_time(), time.perf_counter()
        work()
        self.cpu.append((time.thread_time() - cpu) * 1e3)
        self.wall.append((time.perf_counter() - wall) * 1e3)


def repeated(work: Callable[[], object], *, rounds: int, most_ms: float = 4_000) -> Times:
    """``work`` in up to ``rounds`` rounds after one that does not count; fewer once ``most_ms`` are spent."""
    times = Times()
    work()
    while len(times.cpu) < rounds and (not times.cpu or sum(times.wall) < most_ms):
        times.take(work)
    return times


def alternating(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> tuple[Times, Times]:
    """Two things turn about, so that both meet the same machine; one round of each does not count."""
    ours, other = Times(), Times()
    first()
    second()
    for _ in range(rounds):
        ours.take(first)
        other.take(second)
    return ours, other


def ratio(ours: Times, other: Times) -> Spread:
    """CPU of one over CPU of the other, round by round."""
    return spread([a / b for a, b in zip(ours.cpu, other.cpu, strict=True)])


def calibrate(times: Times, rounds: int = 3) -> None:
    """Time a fixed query in memory, which uses neither file nor full-text index."""
    with closing(sqlite.open_uri("file::memory:")) as connection:
        for _ in range(rounds):
            times.take(lambda: connection.execute(_CALIBRATION).fetchall())
