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


def beside(
    ours: Callable[[], object],
    floor: Callable[[], object],
    comparison: Callable[[], object],
    rounds: int,
    slow: int,
) -> tuple[Times, Times, Times]:
    """Three things turn about, the slow third in its first ``slow`` rounds alone.

    It walks over so much that it empties the processor's caches: after it the first two are done once more,
    which does not count.
    """
    taken = Times(), Times(), Times()
    for round_ in range(rounds):
        if round_ < slow:
            taken[2].take(comparison)
            ours()
            floor()
        taken[0].take(ours)
        taken[1].take(floor)
    return taken


def ratio(ours: Times, other: Times) -> Spread:
    """CPU of one over CPU of the other, round by round, as far as both went."""
    return spread([a / b for a, b in zip(ours.cpu, other.cpu, strict=False)])


def calibrate(times: Times, rounds: int = 3) -> None:
    """Time a fixed query in memory, which uses neither file nor full-text index."""
    with closing(sqlite.open_uri("file::memory:")) as connection:
        for _ in range(rounds):
            times.take(lambda: connection.execute(_CALIBRATION).fetchall())
