"""Both databases over the same corpus, made in one pass, timed apart from making the corpus up."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Final

import attrs

from ...storage import sqlite
from ...storage.guard import open_guarded
from ...storage.index import IndexWriter, open_reader, open_writer
from ...storage.index.reader import Reader
from ...storage.sqlite import Connection
from ...storage.store import INDEX_SCHEMA
from .corpus import Corpus, MadeSession
from .rowatatime import RowAtATime, create_row_at_a_time

EVENTS_A_TRANSACTION: Final = 10_000
MERGE_PAGES: Final = 2_000
"""A step of the merge that follows a build; the service takes smaller ones, when nobody writes."""


@attrs.define(eq=False)
class Bench:
    """What is measured: our index with its writer and one reader, and the comparison."""

    path: Path
    corpus: Corpus
    connection: Connection
    writer: IndexWriter
    reads: Connection
    reader: Reader
    comparison: RowAtATime
    figures: BuildFigures

    def close(self) -> None:
        """Close every connection."""
        for connection in (self.reads, self.connection, self.comparison.connection):
            connection.close()


@attrs.define(eq=False)
class BuildFigures:
    """CPU and wall seconds, bytes and characters of the build."""

    events: int = 0
    characters: int = 0
    text_bytes: int = 0
    sessions: int = 0
    cpu_s: float = 0
    wall_s: float = 0
    rates: list[float] = attrs.field(factory=list)
    """Events a CPU second of each tenth of the build."""
    merge_cpu_s: float = 0
    merge_wall_s: float = 0
    comparison_cpu_s: float = 0
    comparison_wall_s: float = 0
    file_bytes: int = 0
    used_bytes: int = 0
    comparison_bytes: int = 0
    rss_before_mb: float = 0
    rss_mb: float = 0


def build(folder: Path, events: int) -> Bench:
    """Make the corpus up and put it into both databases, ours as a first build does it.

    Raises: FileExistsError if ``folder`` holds the databases already.
    """
    corpus = Corpus(events)
    path = folder / "index.db"
    if path.exists():
        raise FileExistsError(path)
    connection, _ = open_guarded(path, INDEX_SCHEMA)  # as the service makes it, page bookkeeping included
    writer = open_writer(connection)
    comparison = create_row_at_a_time(folder / "rows.db")
    figures = BuildFigures(rss_before_mb=peak_rss_mb())
    _fill(corpus, writer, comparison, figures)
    _merge(writer, figures)
    for each in (connection, comparison.connection):
        sqlite.empty_log(each)
    figures.rss_mb = peak_rss_mb()
    figures.file_bytes = path.stat().st_size
    figures.used_bytes = _used_bytes(connection)
    figures.comparison_bytes = (folder / "rows.db").stat().st_size
    reads = sqlite.connect_reader(path)
    return Bench(path, corpus, connection, writer, reads, open_reader(reads), comparison, figures)


def _fill(corpus: Corpus, writer: IndexWriter, comparison: RowAtATime, figures: BuildFigures) -> None:
    writer.bulk(True)
    waiting: list[MadeSession] = []
    size = 0
    tenth, tenth_events, tenth_cpu = max(1, corpus.events // 10), 0, 0.0
    for session in corpus.sessions():
        waiting.append(session)
        size += len(session.documents)
        if size < EVENTS_A_TRANSACTION and figures.events + size < corpus.events:
            continue
        before = figures.cpu_s
        _flush(waiting, writer, comparison, figures)
        tenth_events += size
        tenth_cpu += figures.cpu_s - before
        if tenth_events >= tenth:
            figures.rates.append(tenth_events / tenth_cpu)
            tenth_events, tenth_cpu = 0, 0.0
        waiting, size = [], 0
    writer.bulk(False)


def _flush(
    sessions: list[MadeSession], writer: IndexWriter, comparison: RowAtATime, figures: BuildFigures
) -> None:
    cpu, wall = time.thread_time(), time.perf_counter()
    with writer.transaction():
        for session in sessions:
            writer.append(writer.put_session(session.key, session.state), session.documents)
    figures.cpu_s += time.thread_time() - cpu
    figures.wall_s += time.perf_counter() - wall
    cpu, wall = time.thread_time(), time.perf_counter()
    comparison.add(sessions)
    figures.comparison_cpu_s += time.thread_time() - cpu
    figures.comparison_wall_s += time.perf_counter() - wall
    figures.sessions += len(sessions)
    for session in sessions:
        figures.events += len(session.documents)
        figures.characters += sum(len(document.text) for document in session.documents)
        figures.text_bytes += sum(len(document.text.encode()) for document in session.documents)


def _merge(writer: IndexWriter, figures: BuildFigures) -> None:
    cpu, wall = time.thread_time(), time.perf_counter()
    while writer.merge_step(MERGE_PAGES):
        pass
    figures.merge_cpu_s = time.thread_time() - cpu
    figures.merge_wall_s = time.perf_counter() - wall


def _used_bytes(connection: Connection) -> int:
    size, count, free = (
        connection.execute(f"PRAGMA {name}").fetchall()[0][0]
        for name in ("page_size", "page_count", "freelist_count")
    )
    used: int = size * (count - free)
    return used


def peak_rss_mb() -> float:
    """The most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1024)
