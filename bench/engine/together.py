"""What happens beside a search: a second reader thread, and a caller that changes its mind."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Final

import attrs
import trio

from ...storage import sqlite
from ...storage.index import Reach, SearchSpec, open_reader
from ...storage.index.reader import Reader
from ...storage.run_query import run_query
from ...storage.sqlite import Connection
from .building import Bench
from .queries import LIMIT, hot_ms
from .results import Row, Spread, at_least, at_most, percentile, spread

CANCELS: Final = 25
_TWO: Final = 2


def thread_rows(bench: Bench, rounds: int, seconds: float) -> Iterator[Row]:
    """Searches a second of two threads over one, each with its own reader. Wall time: it is the point."""
    ten_words = tuple(
        SearchSpec(query=query, match="auto", limit=LIMIT, tools=True) for query in bench.corpus.sentences(20)
    )
    cases = (
        ("word in 10 %, exact", (SearchSpec(query="zqten", limit=LIMIT),)),
        ("ten-word sentences, all tiers", ten_words),
    )
    for case, specs in cases:
        gains: list[float] = []
        with ExitStack() as open_readers:
            readers = [
                open_reader(open_readers.enter_context(closing(sqlite.connect_reader(bench.path))))
                for _ in range(_TWO)
            ]
            _per_second(readers, specs, 0.1)
            for _ in range(rounds):
                one = _per_second(readers[:1], specs, seconds)
                gains.append(_per_second(readers, specs, seconds) / one)
        gain = spread(gains)
        exact = case.endswith("exact")
        yield Row(
            operation="two reader threads over one",
            case=case,
            unit="×",
            ours=gain,
            gate=(at_least(gain.median, 1.7, "≥ 1.7 ×"),) if exact else (),
            note="wall time; other load on the machine counts against it",
        )


def _per_second(readers: list[Reader], specs: tuple[SearchSpec, ...], seconds: float) -> float:
    """Searches a second of all readers together, each in a thread."""
    done = [0.0] * len(readers)
    start = threading.Barrier(len(readers))

    def work(number: int) -> None:
        start.wait()
        began, count = time.perf_counter(), 0
        while (spent := time.perf_counter() - began) < seconds or not count:
            with readers[number].snapshot():
                readers[number].search_sessions(specs[count % len(specs)], Reach())
            count += 1
        done[number] = count / spent

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(readers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def cancel_rows(bench: Bench) -> Iterator[Row]:
    """Wall time from cancelling a running search until its thread is quiet; the connection answers after."""
    waits = trio.run(_cancels, bench, hot_ms(bench))
    for name, share, limit in (("p50", 0.5, 5), ("p99", 0.99, 50)):
        value = percentile(waits, share)
        yield Row(
            operation="cancel to quiet",
            case=name,
            ours=Spread(value, min(waits), max(waits)),
            gate=(at_most(value, limit, f"≤ {limit} ms"),),
            note=f"wall; {CANCELS} cancels of searches without end; the connection answered after each",
        )


async def _cancels(bench: Bench, search_ms: float) -> list[float]:
    waits: list[float] = []
    rng = random.Random(11)
    with closing(sqlite.connect_reader(bench.path)) as connection:
        reader = open_reader(connection)
        for _ in range(CANCELS):
            began = trio.Event()
            token = trio.lowlevel.current_trio_token()
            stopping = _Stopping()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stopping.run, connection, _endless(reader, token, began))
                await began.wait()
                await trio.sleep(rng.random() * min(0.2, search_ms / 1e3))
                stopping.cancel()
            waits.append(stopping.wait_ms)
            found = await run_query(connection, lambda _: connection.execute("SELECT 1").fetchone())
            assert found == (1,), "the connection is usable after a cancel"
    return waits


@attrs.define(eq=False)
class _Stopping:
    """One cancelled call. Owner: the task that cancels."""

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    wait_ms: float = 0
    _cancelled_at: float = 0

    async def run(self, connection: Connection, query: Callable[[Connection], None]) -> None:
        with self.scope:
            await run_query(connection, query)
        self.wait_ms = (time.perf_counter() - self._cancelled_at) * 1e3

    def cancel(self) -> None:
        self._cancelled_at = time.perf_counter()
        self.scope.cancel(reason="the bench changed its mind")


def _endless(
    reader: Reader, token: trio.lowlevel.TrioToken, began: trio.Event
) -> Callable[[Connection], None]:
    """One expensive search after the other until SQLite is interrupted, which raises out of the loop."""
    spec = SearchSpec(query="zqhalf", limit=LIMIT)

    def search(_: Connection) -> None:
        token.run_sync_soon(began.set)
        while True:
            with reader.snapshot():
                reader.search_sessions(spec, Reach())

    return search
