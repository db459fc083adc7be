"""Appends: what the index's part of one costs, by itself, in batches, and by the session's length."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import attrs

from ...protocol.documents import Document
from ...protocol.header import SessionHeader
from ...storage.index import SessionKey, SessionState
from .building import Bench
from .corpus import Corpus, MadeSession
from .results import Row, Spread, at_most, percentile, single, spread
from .timing import Times

MERGE_EVERY: Final = 16
MERGE_PAGES: Final = 64
"""As the service merges: 64 pages a step, when nobody writes."""
LENGTHS: Final = (100, 1_000, 10_000)
COMPARED_LENGTHS: Final = (100, 1_000)
_BASE_MS: Final = 1_800_000_000_000


@attrs.define(eq=False)
class _Live:
    """A session that grows. ``log`` holds what the comparison has to write anew."""

    bench: Bench
    made: MadeSession
    log: list[Document]

    def grow(self, more: list[Document]) -> None:
        """Append to our index: the row's new state, then the documents, in one transaction."""
        writer = self.bench.writer
        length = len(self.log) + len(more)
        state = attrs.evolve(self.made.state, length=length, revision=str(length))
        with writer.transaction():
            writer.append(writer.put_session(self.made.key, state), more)
        self.log += more

    def next(self, count: int, rng: random.Random) -> list[Document]:
        """The next ``count`` events."""
        start = len(self.log)
        return [_document(self.bench.corpus, rng, start + n) for n in range(count)]


def _document(corpus: Corpus, rng: random.Random, seq: int) -> Document:
    return Document(
        seq=seq,
        type="assistant/message",
        time=_BASE_MS + seq,
        surface="current",
        text=corpus.text(rng),
    )


def _live(bench: Bench, name: str, length: int) -> _Live:
    header = SessionHeader(id=name, created_at=_BASE_MS, cwd="/proj/growing")
    made = MadeSession(SessionKey("journal", "", name), SessionState(header=header, rank=1), [])
    live = _Live(bench, made, [])
    rng = random.Random(name)
    while len(live.log) < length:
        live.grow(live.next(min(1_000, length - len(live.log)), rng))
    return live


def append_rows(bench: Bench, appends: int) -> Iterator[Row]:
    """One event a commit, merges between the appends and timed apart; then batches of 16."""
    live, rng = _live(bench, "growing", 0), random.Random(3)
    live.grow(live.next(1, rng))
    times, merges = Times(), Times()
    for number in range(appends):
        more = live.next(1, rng)
        times.take(lambda more=more: live.grow(more))  # type: ignore[misc]
        if number % MERGE_EVERY == MERGE_EVERY - 1:
            merges.take(lambda: bench.writer.merge_step(MERGE_PAGES))
    note = f"{appends} appends, merges apart"
    for name, value, limit in (
        ("p50", percentile(times.cpu, 0.5), None),
        ("p99", percentile(times.cpu, 0.99), 2),
        ("max", max(times.cpu), 10),
    ):
        share = {"p50": 0.5, "p99": 0.99}.get(name, 1.0)
        yield Row(
            operation="append, index part",
            case=name,
            ours=single(value),
            wall=single(percentile(times.wall, share)),
            gate=() if limit is None else (at_most(value, limit, f"≤ {limit} ms"),),
            note=note,
        )
    yield Row(
        operation="merge off the append path",
        case=f"{MERGE_PAGES} pages every {MERGE_EVERY} appends",
        ours=spread(merges.cpu),
        wall=spread(merges.wall),
        note=f"{sum(merges.cpu) / appends:.2f} ms CPU an append; spread is least and most",
    )
    yield _batches(bench, live, max(10, appends // 16), rng)


def _batches(bench: Bench, live: _Live, count: int, rng: random.Random) -> Row:
    times = Times()
    for number in range(count):
        more = live.next(16, rng)
        times.take(lambda more=more: live.grow(more))  # type: ignore[misc]
        if number % MERGE_EVERY == MERGE_EVERY - 1:
            bench.writer.merge_step(MERGE_PAGES)
    cpu = spread([value / 16 for value in times.cpu])
    return Row(
        operation="append, index part",
        case="an event of a batch of 16",
        ours=cpu,
        wall=spread([value / 16 for value in times.wall]),
        gate=(at_most(cpu.median, 0.2, "≤ 0.2 ms"),),
        note="the promise counts the journal in; this is the index alone",
    )


def length_rows(bench: Bench, appends: int, *, quick: bool) -> Iterator[Row]:
    """One append by the session's length: ours, and the comparison's rewriting where it can be waited for."""
    lengths = LENGTHS[:2] if quick else LENGTHS
    lives = {length: _live(bench, f"length-{length}", length) for length in lengths}
    times = {length: Times() for length in lengths}
    rng = random.Random(5)
    for number in range(appends):  # turn about, so that all meet the same machine and the same index
        for length, live in lives.items():
            more = live.next(1, rng)
            times[length].take(lambda live=live, more=more: live.grow(more))  # type: ignore[misc]
        if number % MERGE_EVERY == MERGE_EVERY - 1:
            bench.writer.merge_step(MERGE_PAGES)
    shortest = spread(times[lengths[0]].cpu).median
    for length, live in lives.items():
        ours = spread(times[length].cpu)
        rewriting = _rewriting(bench, live, 3) if length in COMPARED_LENGTHS else None
        times_shortest = ours.median / shortest
        yield Row(
            operation="append by session length",
            case=f"{length:,} events",
            ours=ours,
            wall=spread(times[length].wall),
            comparison=rewriting,
            faster=None if rewriting is None else single(rewriting.median / ours.median),
            gate=(at_most(times_shortest, 1.25, f"≤ 1.25 × that of {lengths[0]} events"),),
            note=f"{times_shortest:.2f} × that of {lengths[0]} events; spread is least and most",
        )


def _rewriting(bench: Bench, live: _Live, rounds: int) -> Spread:
    times = Times()
    for _ in range(rounds):
        times.take(lambda: bench.comparison.rewrite(live.made, live.log))
    return spread(times.cpu)
