"""What is measured, and how: CPU time of the measuring thread, medians and spread, in one run."""

from __future__ import annotations

import itertools
import os
import random
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from ...protocol.cursor import Position
from ...protocol.documents import Document
from ...protocol.records import Match
from ...protocol.tokens import tokens
from ...storage import sqlite
from ...storage.index import Reach, SearchSpec, create_index
from ...storage.index.bodies import Bodies
from ...storage.index.exact import ExactSearch, exact_sessions
from ...storage.index.looking import Looking
from ...storage.index.reader import Reader, open_reader
from ...storage.index.scope import open_scope
from ...storage.index.writer import Writer, open_writer
from ...storage.text_codec import TextCodec
from .corpus import LARGE_WORKSPACE, PHRASE, PLANTED, SMALL_WORKSPACE, Corpus, MadeSession

Case: TypeAlias = dict[str, float | int | str]
MATCHES: Final[tuple[Match, ...]] = ("exact", "auto")
PER_TRANSACTION: Final = 10_000
SECONDS_EACH: Final = 4.0
"""Wall time after which a case is repeated no more, once it ran three times."""
READER_CACHE_KIB: Final = 65_536


@attrs.frozen
class Spread:
    """Milliseconds of repeated runs."""

    median: float
    low: float
    high: float
    runs: int

    def fields(self, name: str) -> Case:
        return {name: self.median, f"{name}_low": self.low, f"{name}_high": self.high}


def cpu_ms(work: Callable[[], object], runs: int = 15) -> Spread:
    """CPU milliseconds of ``work``, after one run that warms up."""
    work()
    times = []
    began = time.monotonic()
    for _ in range(runs):
        start = time.thread_time()
        work()
        times.append((time.thread_time() - start) * 1e3)
        if len(times) >= 3 and time.monotonic() - began > SECONDS_EACH:
            break
    times.sort()
    return Spread(times[len(times) // 2], times[0], times[-1], len(times))


@attrs.define(eq=False)
class Built:
    """An index under measurement."""

    path: Path
    corpus: Corpus
    connection: sqlite.Connection
    writer: Writer
    reader_connection: sqlite.Connection
    reader: Reader

    def search(self, query: str, **more: object) -> object:
        workspace = more.pop("workspace", None)
        reach = Reach(workspaces=None if workspace is None else (str(workspace),))
        with self.reader.snapshot():
            return self.reader.search_sessions(SearchSpec(query=query, **more), reach)  # type: ignore[arg-type]

    def rank(self, phrase: str) -> object:
        """The first 20 sessions in order, without their texts and titles."""
        looking = Looking(
            self.reader_connection,
            Bodies(self.reader_connection, TextCodec()),
            open_scope(self.reader_connection, Reach(), (), ()),
            phrase,
            False,
        )
        return exact_sessions(ExactSearch(looking, tokens(phrase), False, False), 21, None)

    def floor(self, phrase: str) -> object:
        """The bare list of matches, fetched whole: what any search built on it has to pay."""
        match = f'text : "{phrase}"'
        return self.reader_connection.execute("SELECT rowid FROM fts WHERE fts MATCH ?", (match,)).fetchall()

    def close(self) -> None:
        self.reader_connection.close()
        self.connection.close()


def batches(sessions: Iterable[MadeSession], size: int) -> Iterator[list[MadeSession]]:
    """Sessions in groups of about ``size`` events."""
    waiting: list[MadeSession] = []
    events = 0
    for session in sessions:
        waiting.append(session)
        events += len(session.documents)
        if events >= size:
            yield waiting
            waiting, events = [], 0
    if waiting:
        yield waiting


def build(path: Path, corpus: Corpus) -> tuple[Built, Case]:
    """A first build; only the writer's own CPU time counts, not the making of the corpus."""
    path.touch()
    connection = sqlite.connect_writer(path)
    with sqlite.transaction(connection):
        create_index(connection)
    writer = open_writer(connection)
    writer.bulk(True)
    spent = longest = 0.0
    chars = events = 0
    for batch in batches(corpus.sessions(), PER_TRANSACTION):
        start = time.thread_time()
        with writer.transaction():
            for session in batch:
                writer.append(writer.put_session(session.key, session.state), session.documents)
        last = time.thread_time() - start
        spent, longest = spent + last, max(longest, last)
        events += sum(len(session.documents) for session in batch)
        chars += sum(len(document.text) for session in batch for document in session.documents)
    start = time.thread_time()
    writer.bulk(False)
    while writer.merge_step(1_000):
        pass
    idle = time.thread_time() - start
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    reader_connection = sqlite.connect_reader(path, cache_kib=READER_CACHE_KIB)
    built = Built(path, corpus, connection, writer, reader_connection, open_reader(reader_connection))
    ((free,),) = connection.execute("PRAGMA freelist_count").fetchall()
    ((page,),) = connection.execute("PRAGMA page_size").fetchall()
    size = os.path.getsize(path)
    return built, {
        "events": events,
        "text_mb": chars / 1e6,
        "cpu_s": spent,
        "events_per_cpu_s": events / spent,
        "longest_transaction_cpu_s": longest,
        "idle_cpu_s": idle,
        "file_per_text": size / chars,
        "used_per_text": (size - free * page) / chars,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def exact(built: Built, rows: Callable[[str], object] | None) -> list[Case]:
    """Top 20 sessions of one phrase, with everything a page shows, against the floor and other ways."""
    found = []
    for name, phrase in {"no match": "zqnone", **{w: w for w in PLANTED}, "phrase": PHRASE[0]}.items():
        floor = cpu_ms(partial(built.floor, phrase))
        whole = cpu_ms(partial(built.search, phrase))
        case: Case = {"query": name, **floor.fields("floor_ms"), **whole.fields("exact_ms")}
        case["rank_ms"] = cpu_ms(partial(built.rank, phrase)).median
        case["of_floor"] = whole.median / floor.median
        for share, workspace in (("1%", SMALL_WORKSPACE), ("10%", LARGE_WORKSPACE)):
            inside = cpu_ms(partial(built.search, phrase, workspace=workspace))
            case[f"workspace_{share}_ms"] = inside.median
        case["tools_ms"] = cpu_ms(partial(built.search, phrase, tools=True)).median
        if rows is not None:
            other = cpu_ms(partial(rows, phrase), runs=3)
            case["rows_ms"] = other.median
            case["faster_than_rows"] = other.median / whole.median
        found.append(case)
    return found


def inside_session(built: Built) -> list[Case]:
    """Searches of one session of about 300 events."""
    row = built.reader_connection.execute(
        "SELECT sid FROM session ORDER BY abs(documents - 300) LIMIT 1"
    ).fetchone()
    sid = 0 if row is None else row[0]
    found: list[Case] = []
    for query in ("zqnone", "zqten", "zqhalf", PHRASE[0], *built.corpus.sentences(2)):
        for match in MATCHES:
            spec = SearchSpec(query=query, match=match)

            def work(spec: SearchSpec = spec) -> object:
                with built.reader.snapshot():
                    return built.reader.search_events(spec, Reach(), sid)

            found.append({"query": query[:40], "match": match, **cpu_ms(work).fields("ms")})
    return found


def sentences(built: Built, count: int = 100) -> Case:
    """Ten-word queries through all tiers, as the tools ask them; the first 100 hits."""
    times = []
    for query in built.corpus.sentences(count):
        start = time.thread_time()
        built.search(query, match="auto", tools=True, limit=100)
        times.append((time.thread_time() - start) * 1e3)
    times.sort()
    return {"p50_ms": times[count // 2], "p95_ms": times[int(count * 0.95)], "max_ms": times[-1]}


def appends(built: Built, count: int = 2_000, batch: int = 1) -> Case:
    """Events that become searchable one commit at a time (or ``batch``), with idle steps between."""
    rng = random.Random(9)
    live = [session for session, _ in zip(Corpus(20_000, seed=77).sessions(), range(10), strict=False)]
    seqs = itertools.count(1_000_000 * batch)
    times, idle = [], 0.0
    writer = built.writer
    with writer.transaction():
        sids = [writer.put_session(session.key, session.state) for session in live]
    for number in range(count):
        documents = [
            Document(
                seq=next(seqs),
                type="tool/result",
                time=number,
                surface="current",
                text=built.corpus.text(rng),
            )
            for _ in range(batch)
        ]
        start = time.thread_time()
        with writer.transaction():
            writer.append(rng.choice(sids), documents)
        times.append((time.thread_time() - start) * 1e3 / batch)
        if number % 16 == 15:
            start = time.thread_time()
            writer.merge_step()
            idle += time.thread_time() - start
    times.sort()
    return {
        "batch": batch,
        "p50_ms": times[count // 2],
        "p99_ms": times[int(count * 0.99)],
        "max_ms": times[-1],
        "idle_ms_an_event": idle * 1e3 / count / batch,
    }


def two_readers(built: Built) -> Case:
    """Throughput of one hot query on one and on two threads, each with its own connection (wall time)."""

    def run(threads: int, seconds: float = 3.0) -> float:
        done = [0] * threads
        stop = time.monotonic() + seconds

        def loop(at: int) -> None:
            connection = sqlite.connect_reader(built.path, cache_kib=READER_CACHE_KIB)
            reader = open_reader(connection)
            while time.monotonic() < stop:
                with reader.snapshot():
                    reader.search_sessions(SearchSpec(query="zqten"), Reach())
                done[at] += 1
            connection.close()

        pool = [threading.Thread(target=loop, args=(at,)) for at in range(threads)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
        return sum(done) / seconds

    one, two = run(1), run(2)
    return {"one_per_s": one, "two_per_s": two, "ratio": two / one}


def cancels(built: Built, count: int = 25) -> Case:
    """How long a running search takes to leave its thread once it is interrupted (wall time)."""
    times = []
    for number in range(count):
        finished = threading.Event()

        def work(finished: threading.Event = finished) -> None:
            try:
                built.search(PHRASE[0] if finished.is_set() else "zqhalf", match="auto")
            except sqlite.OperationalError:
                pass
            finally:
                finished.set()

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.002 + 0.001 * (number % 5))
        start = time.monotonic()
        while not finished.is_set():
            built.reader_connection.interrupt()
            finished.wait(0.005)
        times.append((time.monotonic() - start) * 1e3)
        thread.join()
    times.sort()
    return {"p50_ms": times[count // 2], "max_ms": times[-1]}


def pages(built: Built, count: int = 5) -> Case:
    """Following cursors: the fifth page of a hot query against its first."""
    after: Position | None = None
    times = []
    for _ in range(count):
        start = time.thread_time()
        with built.reader.snapshot():
            page = built.reader.search_sessions(SearchSpec(query="zqten", after=after), Reach())
        times.append((time.thread_time() - start) * 1e3)
        if not page.more:
            break
        after = page.hits[-1].position
    return {"first_ms": times[0], "last_ms": times[-1], "pages": len(times)}
