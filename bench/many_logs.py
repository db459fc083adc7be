"""What many logs cost when nothing changed: CPU beside a bare walk, files opened, memory.

    python bench/many_logs.py [--files 100000] [--gb 0] [--folder DIR] [--json]

Makes so many logs in a temporary folder, indexes them, looks again with nothing changed, and removes them.
``--gb``: their size together; 0 makes each one prompt long, the swarm of small sessions. The floor is a bare
``os.scandir`` with one ``stat`` a file, in the same run on the same tree. CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from session_query.storage.readers.registry import reader_named
from session_query.storage.sources.spec import SourceSpec
from session_query.storage.store import Store, StoreSettings, open_store

FORMAT: Final = "claude-code"
FILES_A_FOLDER: Final = 200
LINE_BYTES: Final = 4_000
"""Of a log that is long: about what real ones have."""


@attrs.frozen(kw_only=True)
class Result:
    """CPU seconds unless the name says otherwise; ``opens`` are files under the logs' folder."""

    files: int
    folders: int
    bytes: int
    floor_s: float
    listing_s: float
    first_index_s: float
    first_index_wall_s: float
    first_index_opens: int
    unchanged_s: float
    unchanged_opens: int
    unmarked_s: float
    reopened_s: float
    reopened_opens: int
    rss_before_mb: float
    rss_indexed_mb: float
    rss_reopened_mb: float
    index_mb: float

    @property
    def unchanged_ratio(self) -> float:
        """An unchanged look beside a bare walk."""
        return self.unchanged_s / self.floor_s


class Opens:
    """Counts what this process opens below one folder, as the interpreter tells it."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self.count = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
            self.count += os.fsencode(arguments[0]).startswith(self._folder)


def make_logs(folder: Path, files: int, size_bytes: int) -> int:
    """Write the logs; returns the bytes written."""
    written = 0
    words = " ".join(f"word{n}" for n in range(LINE_BYTES // 8))
    lines = max(1, size_bytes // max(1, files) // LINE_BYTES)
    for number in range(files):
        session = f"{number:08x}-0000-4000-8000-000000000000"
        inside = folder / f"-work-{number // FILES_A_FOLDER}"
        if number % FILES_A_FOLDER == 0:
            inside.mkdir(parents=True)
        text = words if size_bytes else f"task {number}"
        record = {
            "type": "user",
            "uuid": session,
            "sessionId": session,
            "cwd": f"/projects/{number // FILES_A_FOLDER}",
            "timestamp": "2026-09-01T00:00:00.000Z",
            "version": "2.1.0",
            "isSidechain": False,
            "parentUuid": None,
            "message": {"role": "user", "content": text},
        }
        content = b"".join(
            json.dumps({**record, "uuid": f"{session}-{at}"}).encode() + b"\n" for at in range(lines)
        )
        (inside / f"{session}.jsonl").write_bytes(content)
        written += len(content)
    return written


def bare_walk(folder: Path) -> int:
    """The floor: every folder listed, every file looked at once."""
    count, stack = 0, [str(folder)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    os.stat(entry.path)
                    count += 1
    return count


def measure(folder: Path, files: int, size_bytes: int) -> Result:
    """Make, index, look again, open again."""
    logs, data = folder / "logs", folder / "data"
    logs.mkdir()
    written = make_logs(logs, files, size_bytes)
    settle(logs)
    opens = Opens(logs)
    floor_s = min(_cpu(lambda: bare_walk(logs)) for _ in range(3))
    reader = reader_named(FORMAT)
    listing_s = _cpu(lambda: sum(1 for _ in reader.units(logs)))
    before = rss_mb()
    wall = time.monotonic()
    with _store(data, logs) as store:
        began, opened = time.process_time(), opens.count
        refresh(store)
        first_s, first_opens = time.process_time() - began, opens.count - opened
        wall = time.monotonic() - wall
        indexed = rss_mb()
        opened = opens.count
        unchanged_s = min(_cpu(lambda: refresh(store)) for _ in range(3))
        unchanged_opens = opens.count - opened
        store.sources.freshness.watched = True
        unmarked_s = _cpu(lambda: list(store.sources.refresh()))
    opened = opens.count

    def reopen() -> None:
        with _store(data, logs) as again:
            refresh(again)

    reopened_s = _cpu(reopen)
    return Result(
        files=files,
        folders=-(-files // FILES_A_FOLDER),
        bytes=written,
        floor_s=floor_s,
        listing_s=listing_s,
        first_index_s=first_s,
        first_index_wall_s=wall,
        first_index_opens=first_opens,
        unchanged_s=unchanged_s,
        unchanged_opens=unchanged_opens,
        unmarked_s=unmarked_s,
        reopened_s=reopened_s,
        reopened_opens=opens.count - opened,
        rss_before_mb=before,
        rss_indexed_mb=indexed,
        rss_reopened_mb=rss_mb(),
        index_mb=(data / "index.db").stat().st_size / 1e6,
    )


def settle(folder: Path) -> None:
    """Let every log be older than the span in which a stamp is not trusted."""
    past = time.time() - 3_600
    for inside in folder.iterdir():
        for log in inside.iterdir():
            os.utime(log, (past, past))


@contextmanager
def _store(data: Path, logs: Path) -> Iterator[Store]:
    sources = (SourceSpec(format=FORMAT, root=logs),)
    store = open_store(StoreSettings(data_dir=data, sources=sources))
    try:
        yield store
    finally:
        store.close()


def refresh(store: Store) -> None:
    """Walk everything and read what changed."""
    store.sources.freshness.mark_everything()
    for _ in store.sources.refresh():
        pass


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def rss_mb() -> float:
    """The largest resident set until now, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(result: Result) -> str:
    """The result for people."""
    per_file = 1e6 / result.files
    rows = [
        ("bare scandir and stat (floor)", result.floor_s, None),
        ("listing, by the reader", result.listing_s, None),
        ("first index", result.first_index_s, result.first_index_opens),
        ("looking again, nothing changed", result.unchanged_s, result.unchanged_opens),
        ("a search's look with a watch, nothing marked", result.unmarked_s, 0),
        ("open the store again and look", result.reopened_s, result.reopened_opens),
    ]
    lines = [
        f"{result.files:,} logs in {result.folders:,} folders, {result.bytes / 1e6:,.0f} MB;"
        f" {platform.machine()}, Python {platform.python_version()}, CPU time",
        "",
        "| | CPU s | us a log | x floor | logs opened |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {seconds:.3f} | {seconds * per_file:.1f} | {seconds / result.floor_s:.2f} |"
            f" {'' if opened is None else f'{opened:,}'} |"
            for name, seconds, opened in rows
        ),
        "",
        f"Largest resident set: {result.rss_before_mb:.0f} MB before, {result.rss_indexed_mb:.0f} MB"
        f" indexed and looked at, {result.rss_reopened_mb:.0f} MB in all. First index"
        f" {result.first_index_wall_s:.1f} s of wall time, {result.bytes / 1e6 / result.first_index_s:.1f} MB"
        f" a CPU second; index {result.index_mb:.0f} MB.",
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--gb", type=float, default=0.0)
    parser.add_argument("--folder", type=Path, default=None, help="where to make them [default: temporary]")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    size_bytes = int(args.gb * 1e9)
    needed = size_bytes * 3 + args.files * 16_384
    if shutil.disk_usage(args.folder or tempfile.gettempdir()).free < needed:
        raise SystemExit(f"{needed / 1e9:.1f} GB of free space are needed")
    with tempfile.TemporaryDirectory(prefix="session-query-bench-", dir=args.folder) as folder:
        result = measure(Path(folder), args.files, size_bytes)
    if args.json:
        print(json.dumps(attrs.asdict(result) | {"unchanged_ratio": result.unchanged_ratio}, indent=2))
    else:
        print(table(result))


if __name__ == "__main__":
    main(sys.argv[1:])
