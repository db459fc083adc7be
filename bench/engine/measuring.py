"""One run: build both databases, measure everything turn about, say on what machine."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ...storage import sqlite
from .appending import append_rows, length_rows
from .building import BuildFigures, build, peak_rss_mb
from .queries import confined_rows, exact_rows, first_time_rows, inside_rows, sentence_rows
from .results import Result, Row, at_least, at_most, single, spread
from .timing import Times, calibrate
from .together import cancel_rows, thread_rows

ROOT: Final = Path(__file__).resolve().parents[2]
QUIET_LOAD: Final = 0.5
"""Above this many waiting processes in the minute before the run, others share the cores."""


def measure(folder: Path, events: int, *, quick: bool, say: Callable[[str], None]) -> Result:
    """Build in ``folder``, an empty directory, and measure. ``say`` is told what comes next.

    Appends come last: until then the index is as the build left it.
    """
    calibration = Times()
    load, busy = _load(), os.getloadavg()[0] > QUIET_LOAD
    rounds, appends, sentences = (3, 100, 20) if quick else (9, 2_000, 200)
    calibrate(calibration)
    say(f"building, {events:,} events twice")
    bench = build(folder, events)
    try:
        rows = list(_build_rows(bench.figures))
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "exact searches": lambda: exact_rows(bench, rounds, quick=quick),
            "rare words": lambda: first_time_rows(bench),
            "all tiers": lambda: sentence_rows(bench, sentences),
            "confined searches": lambda: confined_rows(bench, rounds),
            "one session": lambda: inside_rows(bench, rounds * 3),
            "two threads": lambda: thread_rows(bench, 2 if quick else 5, 0.2 if quick else 2),
            "cancelling": lambda: cancel_rows(bench),
            "appends": lambda: append_rows(bench, appends),
            "appends by length": lambda: length_rows(bench, 20 if quick else 200, quick=quick),
        }
        for name, part in parts.items():
            say(name)
            rows += part()
            calibrate(calibration)
        rows += _memory_rows(bench.figures)
    finally:
        bench.close()
    return Result(
        events=events,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=_machine(),
        load=f"{'other' if busy else 'no other'} load present (average {load} before, {_load()} after)",
        revision=_revision(),
        quick=quick,
        characters=bench.figures.characters,
        calibration_ms=spread(calibration.cpu),
        rows=rows,
    )


def _build_rows(figures: BuildFigures) -> Iterator[Row]:
    rate = figures.events / figures.cpu_s
    merged = figures.events / (figures.cpu_s + figures.merge_cpu_s)
    other = figures.events / figures.comparison_cpu_s
    tenths = spread(figures.rates or [rate])
    yield Row(
        operation="first build",
        case="until all is searchable",
        unit="events/s",
        ours=tenths,
        comparison=single(other),
        gate=(at_least(rate, 15_000, "≥ 15,000 events a CPU second"),),
        aim=(at_least(rate, 25_000, "≥ 25,000"),),
        note=f"{rate:,.0f} over all; {figures.cpu_s:.1f} s CPU, {figures.wall_s:.1f} s wall; by tenths",
    )
    yield Row(
        operation="first build",
        case="idle merging included",
        unit="events/s",
        ours=single(merged),
        note=f"merging took {figures.merge_cpu_s:.1f} s CPU more, {figures.merge_wall_s:.1f} s wall",
    )
    for case, size in (("file", figures.file_bytes), ("pages in use", figures.used_bytes)):
        value = size / figures.text_bytes
        yield Row(
            operation="index on disk over text",
            case=case,
            unit="×",
            ours=single(value),
            comparison=single(figures.comparison_bytes / figures.text_bytes),
            note="made-up words compress badly; the gate of 0.85 is for real logs" if case == "file" else "",
        )


def _memory_rows(figures: BuildFigures) -> Iterator[Row]:
    yield Row(
        operation="peak memory",
        case="while building",
        unit="MB",
        ours=single(figures.rss_mb),
        gate=(at_most(figures.rss_mb, 250, "≤ 250 MB"),),
        aim=(at_most(figures.rss_mb, 150, "≤ 150 MB"),),
        note=f"{figures.rss_before_mb:.0f} before; whole process, with corpus and comparison",
    )
    yield Row(
        operation="peak memory",
        case="whole run",
        unit="MB",
        ours=single(peak_rss_mb()),
        note="with the floor's lists of row ids and the comparison's searches",
    )


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    library = ".".join(map(str, sqlite.VERSION))
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()},"
        f" Python {platform.python_version()}, SQLite {library} ({sqlite.LIBRARY})"
    )


def _load() -> str:
    return " / ".join(f"{value:.1f}" for value in os.getloadavg())


def _revision() -> str:
    """The commit measured, with a mark if the tree differs; empty outside a checkout."""

    def ask(*words: str) -> str:
        done = subprocess.run(("git", "-C", str(ROOT), *words), capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = ask("rev-parse", "--short", "HEAD")
    changed = ask("status", "--porcelain", "--untracked-files=no", "storage", "protocol", "bench")
    return commit + (" with uncommitted changes" if changed else "")
