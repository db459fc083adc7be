"""Measure the search engine alone over a made-up corpus, beside its floor and a straightforward schema.

    python -m session_query.bench.engine [--events 10k|100k|1m] [--quick] [--json] [--out DIR] [--folder DIR]

Both databases are made anew in a temporary directory, or below ``--folder``, and removed. A million events
need about 3 GB there and a quarter of an hour. ``--out`` writes ``engine-SIZE.md`` and ``.json``.
Exit status 1 if a gate is missed at a million events, the size all promises are made for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from .measuring import measure
from .report import PROMISED, as_text

SIZES: Final = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; returns the exit status."""
    options = _parser().parse_args(arguments)
    events = SIZES[options.events]
    with tempfile.TemporaryDirectory(prefix="session-query-bench-", dir=options.folder) as folder:
        result = measure(Path(folder), events, quick=options.quick, say=_say)
    encoded = msgspec.json.format(msgspec.json.encode(result), indent=1).decode()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"engine-{options.events}.md").write_text(as_text(result) + "\n", "utf-8")
        (options.out / f"engine-{options.events}.json").write_text(encoded + "\n", "utf-8")
    print(encoded if options.json else as_text(result))
    return 1 if events == PROMISED and result.missed() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m session_query.bench.engine")
    parser.add_argument("--events", choices=SIZES, default="100k", help="size of the corpus (100k)")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it runs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write table and JSON there")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the databases may stand")
    return parser


def _say(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
