"""What the readers hold of a folder of real logs, and what they lose: one row a log.

    python bench/loss_table.py [CORPUS] [--out bench/results/loss-table.md] [--json]

CORPUS is a folder with one sub-folder a format (default: ``SESSION_QUERY_CORPUS``, else
``../shared/corpus`` beside the checkout). *Physical* records are counted by ``physical_records.py``, apart
from the readers; held + lost = physical must hold in every row, and lost = 0 in every healthy log.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs

from session_query.bench.physical_records import physical_records
from session_query.storage.readers.collect import collect
from session_query.storage.readers.registry import READERS
from session_query.storage.readers.seam import LogUnit, Reader

ROOT = Path(__file__).resolve().parents[1]
NO_READER = "no reader"

FORMAT_OF_FOLDER = {
    "acp": "acp",
    "claude-code": "claude-code",
    "codex": "codex",
    "copilot": "copilot",
    "dsh": "dsh",
    "gemini": "gemini",
    "opencode": "opencode",
    "pi": "pi",
    "droid": "droid",
    "hermes": "hermes",
    "kimi": "kimi",
    "omp": "pi",
    "openclaw": "pi",
    "qwen": "qwen",
    "splitrail": "qwen",
    "goose-deja-vu": "goose",
}
"""The folder nearest to the root that has a name here decides, except below ``others``: the second."""
TREES = ("opencode/agent-sessions/storage_legacy", "opencode/agent-sessions/storage_v2")
"""Logs that are folders of small files: one row a folder, each file a record."""
BESIDE = ("history.jsonl", "session_index.jsonl", "sessions.json", "state.json", "summary.json")
"""Files that lie beside logs and are none, as are all ``*.meta.json``."""


@attrs.frozen
class Row:
    """One log. ``note`` is the cause of what is lost, or why nothing is read."""

    format: str
    path: str
    physical: int
    held: int
    lost: int
    sessions: int
    events: int
    note: str

    @property
    def adds_up(self) -> bool:
        return self.held + self.lost == self.physical


def rows(corpus: Path) -> Iterator[Row]:
    """A row for every file of the corpus; folders that are one store have one together."""
    for path in sorted(path for path in corpus.rglob("*") if path.is_file() and path.suffix != ".md"):
        relative = path.relative_to(corpus).as_posix()
        if not relative.startswith(TREES):
            yield _row(path, relative)
    for tree in TREES:
        yield _tree_row(corpus / tree, tree)


def format_of(relative: str) -> str:
    parts = relative.split("/")[:-1]
    names = parts if parts[0] != "others" else parts[1:]
    return next((FORMAT_OF_FOLDER[name] for name in names if name in FORMAT_OF_FOLDER), NO_READER)


def _row(path: Path, relative: str) -> Row:
    name = format_of(relative)
    reader = READERS.get(name)
    if reader is None:
        count = physical_records(path)
        return Row(NO_READER, relative, count, 0, count, 0, 0, "a program without a reader")
    if path.name in BESIDE or path.name.endswith((".meta.json", ".state.json")):
        return Row(name, relative, 0, 0, 0, 0, 0, "beside a log")
    units = [unit for unit in reader.units(path) if isinstance(unit, LogUnit)]
    return _units_row(reader, units, relative, physical_records(path))


def _tree_row(root: Path, relative: str) -> Row:
    reader = READERS[format_of(relative)]
    units = [unit for unit in reader.units(root) if isinstance(unit, LogUnit)]
    return _units_row(reader, units, relative, sum(1 for path in root.rglob("*.json")))


def _units_row(reader: Reader, units: list[LogUnit], relative: str, physical: int) -> Row:
    found = [collect(reader.read(unit, None, lambda: False)) for unit in units]
    sessions = [session for collected in found for session in collected.sessions.values()]
    held = sum(collected.held for collected in found)
    losses = [loss for collected in found for loss in collected.losses]
    lost = sum(loss.records for loss in losses)
    causes = Counter(loss.cause for loss in losses)
    notes = [f"{cause} × {count}" if count > 1 else cause for cause, count in sorted(causes.items())]
    for collected in found:
        if collected.refusal is not None:
            # Nothing of a refused log is kept: all of it is lost, for the reason given.
            notes, lost = [f"refused: {collected.refusal.message}"], physical - held
    events = sum(len(session.events) for session in sessions)
    return Row(reader.format, relative, physical, held, lost, len(sessions), events, "; ".join(notes))


def markdown(found: list[Row], date: str) -> str:
    """The table as committed: totals, every log that loses something, the unread ones, all that is read."""
    lines = [
        "# What is held of real logs",
        "",
        f"Written on {date} by `python bench/loss_table.py`; `tests/storage/test_loss_table.py` holds it.",
        "Physical records are counted apart from the readers; held + lost = physical in every row.",
        "",
        "| format | logs | physical | held | lost | events |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted({row.format for row in found}):
        of = [row for row in found if row.format == name]
        sums = [sum(getattr(row, key) for row in of) for key in ("physical", "held", "lost", "events")]
        lines.append(f"| {name} | {len(of)} | " + " | ".join(map(str, sums)) + " |")
    read = [row for row in found if row.format != NO_READER]
    lines += ["", "## Logs that lose something", "", *_table([row for row in read if row.lost])]
    unread = [row for row in found if row.format == NO_READER]
    lines += ["", "## Logs of programs without a reader", "", *_table(unread)]
    lines += ["", "## Every log that is read", "", *_table(read)]
    return "\n".join(lines) + "\n"


def _table(found: list[Row]) -> list[str]:
    head = ["| log | format | physical | held | lost | sessions | events | |", "|---|---|" + "---|" * 6]
    for row in found:
        numbers = (row.physical, row.held, row.lost, row.sessions, row.events)
        head.append(f"| {row.path} | {row.format} | " + " | ".join(map(str, numbers)) + f" | {row.note} |")
    return head


def default_corpus() -> Path:
    named = os.environ.get("SESSION_QUERY_CORPUS")
    return Path(named) if named else ROOT.parent / "shared" / "corpus"


def main(argv: list[str]) -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("corpus", nargs="?", type=Path, default=default_corpus())
    parser.add_argument("--out", type=Path, help="write the table here instead of printing it")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    found = list(rows(args.corpus))
    if args.json:
        print(json.dumps([attrs.asdict(row) for row in found], indent=2, ensure_ascii=False))
    else:
        text = markdown(found, datetime.datetime.now(datetime.UTC).date().isoformat())
        if args.out is None:
            print(text, end="")
        else:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.write_text(text, encoding="utf-8")
    return int(not all(row.adds_up for row in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
