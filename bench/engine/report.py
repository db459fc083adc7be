"""The numbers as tables for people, and as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from .measure import Case

Results: TypeAlias = dict[str, int | list[Case]]


def print_results(results: Sequence[Results], machine: Mapping[str, str | int]) -> None:
    """One table for each kind of measurement. CPU milliseconds, medians; ratios hold within one run."""
    console = Console(width=160)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    for result in results:
        for kind, cases in result.items():
            if isinstance(cases, list) and cases:
                console.print(_table(f"{kind}, {result['events']:,} events", cases))


def _table(title: str, cases: Sequence[Case]) -> Table:
    table = Table(title=title, title_justify="left")
    columns = [name for name in cases[0] if not name.endswith(("_low", "_high"))]
    for name in columns:
        table.add_column(name, justify="left" if isinstance(cases[0][name], str) else "right")
    for case in cases:
        table.add_row(*(_cell(case, name) for name in columns))
    return table


def _cell(case: Case, name: str) -> str:
    value = case.get(name, "")
    if not isinstance(value, float):
        return str(value)
    low, high = case.get(f"{name}_low"), case.get(f"{name}_high")
    digits = 0 if abs(value) >= 1_000 else 2 if abs(value) >= 0.1 else 3
    shown = f"{value:,.{digits}f}"
    return shown if low is None or high is None else f"{shown} ({float(low):.2f}-{float(high):.2f})"


def save_plots(results: Sequence[Results], folder: Path) -> None:
    """``exact.png`` (times of the exact tier beside the floor) and ``size.png`` (build and file size)."""
    import matplotlib as mpl  # optional and slow to import

    mpl.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(1, len(results), figsize=(6 * len(results), 4), squeeze=False)
    for axis, result in zip(axes[0], results, strict=True):
        cases = result["exact"]
        assert isinstance(cases, list), "run() makes lists"
        names = [str(case["query"]) for case in cases]
        for offset, (key, label) in enumerate(
            (("floor_ms", "bare matches"), ("exact_ms", "top 20"), ("workspace_1%_ms", "in 1 % of sessions"))
        ):
            axis.bar(
                [at + offset * 0.27 for at in range(len(names))],
                [float(c[key]) for c in cases],
                0.25,
                label=label,
            )
        axis.set_xticks([at + 0.27 for at in range(len(names))], names, rotation=20)
        axis.set_yscale("log")
        axis.set_ylabel("CPU ms")
        axis.set_title(f"{result['events']:,} events")
        axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "exact.png", dpi=110)
    pyplot.close(figure)
    figure, axis = pyplot.subplots(figsize=(6, 4))
    sizes, rates, files = [], [], []
    for result in results:
        cases = result["build"]
        assert isinstance(cases, list), "run() makes lists"
        sizes.append(int(cases[0]["events"]))
        rates.append(float(cases[0]["events_per_cpu_s"]))
        files.append(float(cases[0]["used_per_text"]))
    axis.plot(sizes, rates, "o-", label="events per CPU second")
    axis.set_xscale("log")
    axis.set_xlabel("events")
    axis.set_ylim(bottom=0)
    other = axis.twinx()
    other.plot(sizes, files, "s--", color="tab:orange", label="index bytes per character of text")
    other.set_ylim(bottom=0)
    figure.legend(loc="lower center", ncols=2)
    figure.tight_layout()
    figure.savefig(folder / "size.png", dpi=110)
    pyplot.close(figure)
