"""Rows as a table for people, as JSON for programs, as Markdown for result files."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...protocol.json_value import JSON
from .measuring import Machine, Row, Spread, machine

_VERDICTS = {True: "holds", False: "MISSED", None: ""}


def number(value: float) -> str:
    """Three figures, no exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2g}"


def spread(found: Spread | None) -> str:
    """``median [low–high]``; the median alone where there was one round."""
    if found is None:
        return ""
    if found.low == found.high:
        return number(found.median)
    return f"{number(found.median)} [{number(found.low)}–{number(found.high)}]"


def cells(row: Row) -> list[str]:
    sign = "≤" if row.bound == "at most" else "≥"
    gate = "" if row.gate is None else f"{sign} {number(row.gate)}{'×' if row.ratio else ''}"
    return [
        row.case, row.what, row.unit, spread(row.ours), spread(row.floor), spread(row.ratio), gate,
        _VERDICTS[row.holds], row.note,
    ]  # fmt: skip


HEADINGS = ("case", "what", "unit", "ours", "floor", "ratio", "gate", "", "note")


def print_rows(rows: Sequence[Row], shape: Machine | None = None) -> None:
    """A table on standard output. ``shape``: the machine, by default as it is now."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*HEADINGS, title=f"session-query, service bench: {shape or machine()}")
    for row in rows:
        table.add_row(*cells(row))
    Console(width=220).print(table)


def as_json(rows: Sequence[Row], scale: str, shape: Machine | None = None) -> JSON:
    """Everything, with the machine."""
    return {
        "scale": scale,
        "machine": dict(shape or machine()),
        "rows": [attrs.asdict(row) | {"holds": row.holds} for row in rows],
    }


def as_markdown(rows: Sequence[Row], scale: str, shape: Machine | None = None) -> str:
    """The same as a page for ``bench/results/``: when, on what, the table, the gates that were missed."""
    told = shape or machine()
    lines = [
        "# The service under work",
        "",
        f"Measured on {told['date']} by `python -m session_query.bench.service`,",
    ]
    lines += [
        f"scale {scale}. "
        + ", ".join(f"{name} {value}" for name, value in told.items() if name != "date")
        + ".",
        "",
    ]
    lines += ["Median [least–greatest] of the rounds; a ratio is taken inside each round.", ""]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in rows]
    judged = [row for row in rows if row.holds is not None]
    missed = [row for row in judged if row.holds is False]
    lines += ["", f"Gates: {len(judged) - len(missed)} of {len(judged)} held."]
    lines += [f"- missed: {row.case}, {row.what}: {spread(row.ratio or row.ours)}" for row in missed]
    return "\n".join(lines) + "\n"
