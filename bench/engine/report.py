"""A result as a table of Markdown, and as plain sentences about what it misses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from .results import Check, Result, Row

PROMISED: Final = 1_000_000
"""The number of events all gates and aims are meant for."""
_HEAD: Final = (
    "operation", "case", "unit", "ours", "× calibration", "wall", "floor", "ours / floor", "row-at-a-time",
    "row / ours", "gate", "", "aim", "", "remarks",
)  # fmt: skip


def as_text(result: Result) -> str:
    """The whole report."""
    return "\n".join((*_opening(result), "", *_table(result), "", *_closing(result)))


def _opening(result: Result) -> Iterator[str]:
    yield f"# The engine at {result.events:,} events"
    yield ""
    yield (
        f"Measured on {result.date} by `python -m session_query.bench.engine"
        f"{' --quick' if result.quick else ''}`; {result.machine}; {result.load}."
    )
    yield f"Commit {result.revision or 'unknown'}. {result.characters / 1e6:,.0f} million characters of text."
    if result.events != PROMISED:
        yield f"Gates and aims are meant for {PROMISED:,} events; here they only show the distance."
    yield ""
    yield (
        "Times are ms of CPU, wall beside them: the median of the rounds with least and greatest. *Floor*"
        " is the bare full-text match with all row ids fetched. *Row-at-a-time* is the straightforward"
        " schema over the same corpus. Ratios hold inside one run; ours / floor is taken inside each round."
        f" A fixed query in memory, without index or file, took {result.calibration_ms} ms through the run:"
        " *× calibration*."
    )


def _table(result: Result) -> Iterator[str]:
    yield _line(_HEAD)
    yield _line(["---"] * len(_HEAD))
    for row in result.rows:
        yield _line(_cells(row, result.calibration_ms.median))


def _cells(row: Row, calibration_ms: float) -> Sequence[str]:
    def shown(value: object) -> str:
        return "" if value is None else str(value)

    return (
        row.operation,
        row.case,
        row.unit,
        str(row.ours),
        f"{row.ours.median / calibration_ms:.3f}" if row.unit == "ms" else "",
        shown(row.wall),
        shown(row.floor),
        shown(row.to_floor),
        shown(row.comparison),
        "" if row.faster is None else str(row.faster),
        *_checks(row.gate),
        *_checks(row.aim),
        row.note,
    )


def _checks(checks: Sequence[Check]) -> tuple[str, str]:
    if not checks:
        return "", ""
    return "; ".join(check.text for check in checks), "PASS" if all(c.held for c in checks) else "MISS"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _closing(result: Result) -> Iterator[str]:
    yield from _missed("Gates", result.rows, lambda row: row.gate)
    yield from _missed("Aims", result.rows, lambda row: row.aim)
    yield (
        "Not measured here: a bare journal commit beside an append, starting with an existing index, reads,"
        " the wire, connections."
    )


def _missed(word: str, rows: Sequence[Row], promised: Callable[[Row], Sequence[Check]]) -> Iterator[str]:
    """How many of the rows keep what is promised, and each one that does not by name."""
    named = []
    for row in rows:
        if failed := [check.text for check in promised(row) if not check.held]:
            above = "" if row.to_floor is None else f", {row.to_floor} × floor"
            faster = "" if row.faster is None else f", {row.faster} × faster than row-at-a-time"
            named.append(f"- {row.name}: {' and '.join(failed)} missed; {row.ours} {row.unit}{above}{faster}")
    counted = sum(bool(promised(row)) for row in rows)
    yield f"{word}: {counted - len(named)} of {counted} held." + (" Missed:" if named else "")
    yield ""
    yield from named
    if named:
        yield ""
