"""What one measurement says: rows of figures with their spread, and the promises they are held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True):
    """The median of repeated rounds, with the least and the greatest of them."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return _short(self.median)
        return f"{_short(self.median)} ({_short(self.low)}–{_short(self.high)})"


class Check(msgspec.Struct, frozen=True):
    """One promise, a gate that must hold or an aim, and whether the measured figure keeps it."""

    text: str
    held: bool


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the table. All figures have ``unit``, of CPU where time is meant; ``wall`` is ms beside it.

    ``floor``: the bare full-text match. ``comparison``: the row-at-a-time schema. ``to_floor``: ours over
    floor, taken inside each round, and ``faster`` comparison over ours. No ``gate``: the figure is reported.
    """

    operation: str
    case: str
    unit: str = "ms"
    ours: Spread
    wall: Spread | None = None
    floor: Spread | None = None
    comparison: Spread | None = None
    to_floor: Spread | None = None
    faster: Spread | None = None
    gate: tuple[Check, ...] = ()
    aim: tuple[Check, ...] = ()
    note: str = ""

    @property
    def gate_held(self) -> bool:
        return all(check.held for check in self.gate)

    @property
    def name(self) -> str:
        return f"{self.operation}, {self.case}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. ``calibration_ms``: CPU of a fixed query that touches no file, over the whole run."""

    events: int
    date: str
    machine: str
    load: str
    revision: str
    quick: bool
    characters: int
    calibration_ms: Spread
    rows: list[Row]

    def missed(self) -> list[Row]:
        """The rows whose gate is not held."""
        return [row for row in self.rows if not row.gate_held]


def spread(values: Sequence[float]) -> Spread:
    """Median, least and greatest."""
    return Spread(statistics.median(values), min(values), max(values))


def single(value: float) -> Spread:
    """A figure that was taken once."""
    return Spread(value, value, value)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def at_most(value: float, limit: float, text: str) -> Check:
    return Check(text, value <= limit)


def at_least(value: float, limit: float, text: str) -> Check:
    return Check(text, value >= limit)


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
