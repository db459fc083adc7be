"""Rows as a table for people, as JSON for programs, as Markdown for result files."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...protocol.json_value import JSON
from .measuring import Row, Spread, machine

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


def print_rows(rows: Sequence[Row]) -> None:
    """A table on standard output."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*HEADINGS, title=f"session-query, service bench: {machine()}")
    for row in rows:
        table.add_row(*cells(row))
    Console(width=220).print(table)


def as_json(rows: Sequence[Row], scale: str) -> JSON:
    """Everything, with the machine."""
    return {
        "scale": scale,
        "machine": dict(machine()),
        "rows": [attrs.asdict(row) | {"holds": row.holds} for row in rows],
    }


def as_markdown(rows: Sequence[Row], scale: str) -> str:
    """The same as a Markdown table, for ``bench/results/``."""
    shape = ", ".join(f"{name} {value}" for name, value in machine().items())
    lines = [f"Scale {scale}. {shape}.", "", "| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"
