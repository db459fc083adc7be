"""The service bench: ``python -m session_query.bench.service [--quick] [--json] [--out DIR] [CASE ...]``.

``--out`` also writes ``service-SCALE.md`` and ``.json`` (with the cases in the name if some were chosen).
Everything runs on loopback, with data in a temporary directory, and ends with the program.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import trio

from . import appending, memory, reading, searching, soak, starting, wire
from .measuring import FULL, QUICK, SMOKE, Row, Scale, machine
from .report import as_json, as_markdown, print_rows

Case = Callable[[Path, Scale], Awaitable[list[Row]]]

CASES: Final[dict[str, Case]] = {
    "append": appending.measure,
    "read": reading.measure,
    "unchanged": searching.measure_unchanged,
    "start": starting.measure,
    "cancel": searching.measure_cancel,
    "two-readers": searching.measure_two,
    "wire": wire.measure_reads,
    "connections": wire.measure_connections,
    "memory": memory.measure,
    "load": soak.measure_load,
    "soak-minute": soak.measure_minute,
    "soak": soak.measure_soak,
}


async def run_cases(names: list[str], scale: Scale, base: Path | None = None) -> list[Row]:
    """Run cases in their order, each in a directory of its own that is removed afterwards."""
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="session-query-bench-", dir=base) as directory:
            rows += await CASES[name](Path(directory), scale)
    return rows


def main() -> int:
    """Returns 1 when a gate was missed."""
    parser = argparse.ArgumentParser(prog="python -m session_query.bench.service", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes: a first look in a minute or two")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only to see that all of it runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write table and JSON there")
    parser.add_argument("--dir", type=Path, help="where the data lies while the bench runs")
    given = parser.parse_args()
    unknown = [name for name in given.cases if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    scale = SMOKE if given.smoke else QUICK if given.quick else FULL
    shape = machine()
    rows = trio.run(run_cases, given.cases or list(CASES), scale, given.dir)
    shape["load_after"] = machine()["load_1min"]
    encoded = json.dumps(as_json(rows, scale.name, shape), indent=2)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        name = "-".join(["service", scale.name, *given.cases])
        (given.out / f"{name}.md").write_text(as_markdown(rows, scale.name, shape), "utf-8")
        (given.out / f"{name}.json").write_text(encoded + "\n", "utf-8")
    if given.json:
        print(encoded)
    elif given.markdown:
        print(as_markdown(rows, scale.name, shape))
    else:
        print_rows(rows, shape)
    return 1 if any(row.holds is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
