"""Draw results: latency by match share, cost by corpus size, append cost by session length.

    python -m session_query.bench.engine.plots RESULT.json... [--out DIR]

Several results of different sizes make the curves of cost by corpus size. Needs the extra ``bench``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from .results import Result, Row, Spread

OUT: Final = Path(__file__).resolve().parents[1] / "out"
_SERIES: Final = (("ours", "ours"), ("floor", "bare match"), ("comparison", "row-at-a-time"))
_EXACT: Final = "exact top 20"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw three pictures; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m session_query.bench.engine.plots")
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULT.json")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="default: bench/out")
    options = parser.parse_args(arguments)
    decoder = msgspec.json.Decoder(Result)
    results = sorted((decoder.decode(path.read_bytes()) for path in options.results), key=lambda r: r.events)
    for path in draw(results, options.out):
        print(path)
    return 0


def draw(results: Sequence[Result], out: Path) -> list[Path]:
    """Write the pictures as PNG into ``out``; the largest result is drawn where only one can be.

    Raises: ModuleNotFoundError without matplotlib.
    """
    from matplotlib.figure import Figure  # the one heavy import, and an optional one

    out.mkdir(parents=True, exist_ok=True)
    largest = results[-1]
    exact = _of(largest, _EXACT)
    lengths = _of(largest, "append by session length")
    made = []
    for name, title in (
        ("latency-by-share", f"Exact top 20 by match share, {largest.events:,} events"),
        ("cost-by-size", "Exact top 20 by corpus size"),
        ("append-by-length", f"One append by session length, {largest.events:,} events"),
    ):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot(title=title, ylabel="CPU ms", yscale="log")
        if name == "cost-by-size":
            for case in [row.case for row in exact]:
                points = [(r.events, row.ours) for r in results for row in _of(r, _EXACT) if row.case == case]
                _line(axes, [x for x, _ in points], [y for _, y in points], case)
            axes.set(xscale="log", xlabel="events")
        else:
            rows = exact if name == "latency-by-share" else lengths
            for field, label in _SERIES:
                known: list[tuple[int, Spread]] = [
                    (place, value)
                    for place, row in enumerate(rows)
                    if (value := getattr(row, field)) is not None
                ]
                _line(axes, [x for x, _ in known], [y for _, y in known], label)
            axes.set_xticks(range(len(rows)), [row.case for row in rows])
            axes.tick_params(axis="x", labelsize="small")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        made.append(out / f"{name}.png")
        figure.savefig(made[-1], dpi=120)
    return made


def _of(result: Result, operation: str) -> list[Row]:
    return [row for row in result.rows if row.operation == operation]


def _line(axes, places: Sequence[int], values: Sequence[Spread], label: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - matplotlib is optional and untyped here
    """One curve with its least and greatest as bars."""
    if not places:
        return
    middle = [value.median for value in values]
    below = [value.median - value.low for value in values]
    above = [value.high - value.median for value in values]
    axes.errorbar(places, middle, yerr=(below, above), marker="o", capsize=3, label=label)


if __name__ == "__main__":
    sys.exit(main())
