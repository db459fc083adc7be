"""Measure the search engine alone over a made-up corpus, beside its floor and a straightforward schema.

    python -m session_query.bench.engine [--events 10k|100k|1m] [--quick] [--json] [--out DIR] [--folder DIR]
    python -m session_query.bench.engine --size-of CORPUS [--json] [--out DIR] [--folder DIR]

Both databases are made anew in a temporary directory, or below ``--folder``, and removed. A million events
need about 3 GB there and a quarter of an hour. ``--out`` writes ``engine-SIZE.md`` and ``.json``.
``--size-of`` weighs an index of real logs instead; CORPUS has one sub-folder a format (``size.md``).
Exit status 1 if a gate is missed at a million events, the size all promises are made for, or by the size on
disk; 2 if there is no such corpus, and nothing was measured.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from .measuring import measure
from .report import PROMISED, as_text
from .sizing import GATE, measure_sizes
from .sizing import as_text as as_table

SIZES: Final = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.size_of is not None:
        return _size(options.size_of, options)
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


def _size(corpus: Path, options: argparse.Namespace) -> int:
    if not corpus.is_dir():
        print(f"no logs at {corpus}: nothing was measured", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="session-query-bench-", dir=options.folder) as folder:
        sizes = measure_sizes(corpus, Path(folder))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        head = f"# What an index of real logs weighs\n\nMeasured on {date} by `--size-of`: "
        (options.out / "size.md").write_text(f"{head}{as_table(sizes)}\n", "utf-8")
    print(msgspec.json.encode(sizes).decode() if options.json else as_table(sizes))
    return 1 if sizes.file_ratio > GATE else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m session_query.bench.engine")
    parser.add_argument("--events", choices=SIZES, default="100k", help="size of the corpus (100k)")
    parser.add_argument("--size-of", type=Path, metavar="CORPUS", help="weigh an index of real logs instead")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it runs")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write table and JSON there")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the databases may stand")
    return parser


def _say(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
