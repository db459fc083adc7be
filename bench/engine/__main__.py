"""``python -m session_query.bench.engine``: build, measure, print tables; ``--json``, ``--plots`` keep them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...storage import sqlite
from . import measure
from .corpus import Corpus
from .report import Results, print_results, save_plots
from .row_at_a_time import build_rows, search_rows


def run(events: int, directory: Path, compare: bool, appended: int) -> Results:
    """All measurements at one size."""
    corpus = Corpus(events)
    built, build = measure.build(directory / f"index-{events}.db", corpus)
    try:
        rows = None
        if compare:
            other = build_rows(directory / f"rows-{events}.db", corpus.sessions())
            rows = lambda phrase: search_rows(other, phrase)  # noqa: E731 - bound to this connection
        return {
            "events": events,
            "build": [build],
            "exact": measure.exact(built, rows),
            "inside_session": measure.inside_session(built),
            "sentences": [measure.sentences(built)],
            "pages": [measure.pages(built)],
            "two_readers": [measure.two_readers(built)],
            "cancel": [measure.cancels(built)],
            "append": [measure.appends(built, appended), measure.appends(built, appended // 8, 16)],
        }
    finally:
        built.close()


def machine() -> dict[str, str | int]:
    """The shape of the machine, without its name."""
    return {
        "cores": os.cpu_count() or 0,
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": ".".join(map(str, sqlite.VERSION)),
        "sqlite_from": sqlite.LIBRARY,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. ``--smoke`` is the same at 2,000 events: does it run at all."""
    parser = argparse.ArgumentParser(prog="session_query.bench.engine", description=__doc__)
    parser.add_argument("events", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--compare", action="store_true", help="measure one row an event as well")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--plots", type=Path, help="draw the numbers into this folder")
    parser.add_argument("--directory", type=Path, help="where the databases are made")
    parser.add_argument("--smoke", action="store_true", help="2,000 events, compared")
    chosen = parser.parse_args(arguments)
    sizes, compare, appended = chosen.events, chosen.compare, 2_000
    if chosen.smoke:
        sizes, compare, appended = [2_000], True, 160
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
        results = [run(size, Path(directory), compare, appended) for size in sizes]
    print_results(results, machine())
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"machine": machine(), "results": results}, indent=1) + "\n")
    if chosen.plots is not None:
        save_plots(results, chosen.plots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
