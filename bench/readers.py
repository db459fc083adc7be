"""How fast readers read: MB/s of each format beside ``json.loads`` over the same lines, in one run.

    python bench/readers.py [--mb 16] [--repeat 5] [--format dsh] [--log FORMAT=PATH] [--json]

CPU seconds of this process; the floor and the reader take turns, so that both see the same machine. A
reader decodes, maps, folds and builds events; nothing is stored.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from session_query.bench.reader_log_form import write_log
from session_query.bench.reader_logs import FORMATS
from session_query.storage.readers.registry import READERS, reader_named
from session_query.storage.readers.seam import LogUnit, Reader


@attrs.frozen(kw_only=True)
class Result:
    """Medians over the repeats; ``spread`` is (max - min) / median of the reader's times."""

    format: str
    mb: float
    records: int
    events: int
    lost: int
    floor_mb_s: float
    reader_mb_s: float
    floor_ratio: float
    events_per_s: float
    spread: float


def measure(reader: Reader, log: Path, repeat: int) -> Result:
    """Read one log ``repeat`` times and parse its lines as often."""
    (unit,) = [unit for unit in reader.units(log) if isinstance(unit, LogUnit)]
    floors, reads = [], []
    counts = (0, 0, 0)
    for _ in range(repeat):
        floors.append(_cpu_seconds(lambda: _floor(log))[0])
        seconds, counts = _cpu_seconds(lambda: _read(reader, unit))
        reads.append(seconds)
    mb = log.stat().st_size / 1e6
    floor, read = statistics.median(floors), statistics.median(reads)
    return Result(
        format=reader.format,
        mb=mb,
        records=counts[0],
        events=counts[1],
        lost=counts[2],
        floor_mb_s=mb / floor,
        reader_mb_s=mb / read,
        floor_ratio=read / floor,
        events_per_s=counts[1] / read,
        spread=(max(reads) - min(reads)) / read,
    )


def _cpu_seconds(work: Callable[[], tuple[int, int, int]]) -> tuple[float, tuple[int, int, int]]:
    start = time.process_time()
    counts = work()
    return time.process_time() - start, counts


def _floor(log: Path) -> tuple[int, int, int]:
    with log.open("rb") as file:
        return sum(1 for line in file if json.loads(line) is not None), 0, 0


def _read(reader: Reader, unit: LogUnit) -> tuple[int, int, int]:
    records = events = held = 0
    for batch in reader.read(unit, None, lambda: False):
        records += batch.records
        held += batch.held
        events += sum(len(delta.events) for delta in batch.sessions)
    return records, events, records - held


def table(results: list[Result]) -> str:
    lines = [
        f"{platform.machine()}, Python {platform.python_version()}, CPU time",
        f"{'format':<14}{'MB':>7}{'records':>9}{'events':>9}{'lost':>6}"
        f"{'json.loads MB/s':>17}{'reader MB/s':>13}{'x floor':>9}{'events/s':>11}{'spread':>8}",
    ]
    lines += [
        f"{r.format:<14}{r.mb:>7.1f}{r.records:>9}{r.events:>9}{r.lost:>6}"
        f"{r.floor_mb_s:>17.0f}{r.reader_mb_s:>13.0f}{r.floor_ratio:>9.2f}{r.events_per_s:>11.0f}{r.spread:>8.0%}"
        for r in results
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=float, default=16.0, help="size of each synthetic log")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--format", action="append", choices=sorted(FORMATS), help="only these formats")
    parser.add_argument(
        "--log", action="append", default=[], metavar="FORMAT=PATH", help="measure a real log too"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    results = []
    with tempfile.TemporaryDirectory(prefix="session-query-bench-") as folder:
        for name in args.format or [name for name in FORMATS if name in READERS]:
            log = write_log(FORMATS[name], Path(folder) / name, int(args.mb * 1e6))
            results.append(measure(reader_named(name), log, args.repeat))
        for named in args.log:
            name, _, path = named.partition("=")
            results.append(measure(reader_named(name), Path(path), args.repeat))
    print(json.dumps([attrs.asdict(result) for result in results], indent=2) if args.json else table(results))


if __name__ == "__main__":
    main(sys.argv[1:])
