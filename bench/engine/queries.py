"""Searches: ours beside the bare match and the comparison, confined ones, those inside one session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import attrs

from ...protocol.records import Match
from ...storage.index import Reach, SearchSpec
from .building import Bench
from .corpus import LARGE_WORKSPACE, PHRASE, PLANTED, SMALL_WORKSPACE
from .results import Check, Row, Spread, at_least, at_most, percentile, single, spread
from .timing import Times, alternating, beside, ratio, repeated

ABSENT: Final = "zznone"
SHARES: Final = {
    "no match": ABSENT,
    "rare word (0.01 %)": "zqrare",
    "word in 1 %": "zqone",
    "two-word phrase (2 %)": PHRASE[0],
    "word in 10 %": "zqten",
    "word in 50 %": "zqhalf",
}
_FREQUENT: Final = (PLANTED["zqten"], PLANTED["zqhalf"])
LIMIT: Final = 20
RARE_FROM_RANK: Final = 45_000
"""The vocabulary's words from here on stand in about one event in 10,000."""
RARE_WORDS: Final = 40


def sessions_search(
    bench: Bench, query: str, match: Match = "exact", *, within: str | None = None, tools: bool = False
) -> Callable[[], object]:
    """A search for sessions, ready to run: the first 20 of them, in one snapshot."""
    reach = Reach(workspaces=None if within is None else (within,))
    spec = SearchSpec(query=query, match=match, limit=LIMIT, tools=tools)

    def search() -> object:
        with bench.reader.snapshot():
            return bench.reader.search_sessions(spec, reach)

    return search


def floor(bench: Bench, query: str) -> Callable[[], list[tuple[int]]]:
    """The bare match on our own table, every row id fetched."""
    match = f'text : "{query}"'
    return lambda: bench.reads.execute("SELECT rowid FROM fts WHERE fts MATCH ?", (match,)).fetchall()


def exact_rows(bench: Bench, rounds: int, *, quick: bool) -> Iterator[Row]:
    """Exact searches by the share of events that match."""
    for case, query in SHARES.items():
        bare = floor(bench, query)
        hits = len(bare())
        once = quick or hits > 50_000
        if not once:
            bench.comparison.search(query)
        ours, below, comparison = beside(
            sessions_search(bench, query), bare, partial(bench.comparison.search, query), rounds,
            1 if once else rounds,
        )  # fmt: skip
        plainer = Times()
        plainer.take(lambda query=query: bench.comparison.search(query, hint=False))  # type: ignore[misc]
        above, faster = ratio(ours, below), ratio(comparison, ours)
        gate, aim = _exact_checks(query, hits, bench.figures.events, ours, above.median, faster.median)
        yield Row(
            operation="exact top 20",
            case=case,
            ours=spread(ours.cpu),
            wall=spread(ours.wall),
            floor=spread(below.cpu),
            comparison=spread(comparison.cpu),
            to_floor=above,
            faster=faster,
            gate=gate,
            aim=aim,
            note=f"{hits:,} hits{'; comparison ran once, unwarmed' if once else ''}; without its hint, once,"
            f" {plainer.cpu[0]:,.1f} ms",
        )


def first_time_rows(bench: Bench) -> Iterator[Row]:
    """Rare words, each asked once: what a reader remembers of earlier searches helps none of them."""
    words = [word for word in bench.corpus.words[RARE_FROM_RANK:] if word.isalpha() and word.islower()]
    times = Times()
    for word in words[: RARE_WORDS + 1]:
        times.take(sessions_search(bench, word))
    yield Row(
        operation="exact top 20, asked once each",
        case=f"{RARE_WORDS} rare words",
        ours=spread(times.cpu[1:]),
        wall=spread(times.wall[1:]),
        note="nothing remembered but pages; at a million events about 100 hits each",
    )


def _exact_checks(
    query: str, hits: int, events: int, ours: Times, above: float, faster: float
) -> tuple[tuple[Check, ...], tuple[Check, ...]]:
    if query in (ABSENT, "zqrare"):
        cpu = spread(ours.cpu).median
        return (at_most(cpu, 1, "≤ 1 ms"),), (at_most(cpu, 0.5, "≤ 0.5 ms"),)
    if hits / events > min(_FREQUENT) / 2:
        gates = (at_most(above, 1.7, "≤ 1.7 × floor"), at_least(faster, 50, "≥ 50 × faster"))
        return gates, (at_most(above, 1.2, "≤ 1.2 × floor"),)
    gates = (at_most(above, 2.5, "≤ 2.5 × floor"), at_least(faster, 20, "≥ 20 × faster"))
    return gates, (at_most(above, 1.5, "≤ 1.5 × floor"),)


def confined_rows(bench: Bench, rounds: int) -> Iterator[Row]:
    """The same in a workspace of 1 % of the sessions, beside the unfiltered search."""
    for case, query in SHARES.items():
        inside, everywhere = alternating(
            sessions_search(bench, query, within=SMALL_WORKSPACE), sessions_search(bench, query), rounds
        )
        share = ratio(inside, everywhere)
        more_ms = spread(inside.cpu).median - spread(everywhere.cpu).median
        gate: tuple[Check, ...] = (at_most(more_ms, 1, "≤ unfiltered + 1 ms"),)
        if query not in (ABSENT, "zqrare"):
            gate = (at_most(share.median, 0.25, "≤ 1/4 of unfiltered"), *gate)
        yield Row(
            operation="in 1 % of sessions",
            case=case,
            ours=spread(inside.cpu),
            wall=spread(inside.wall),
            gate=gate,
            note=f"{share} of unfiltered",
        )
    times = repeated(sessions_search(bench, "zqhalf", within=LARGE_WORKSPACE), rounds=rounds)
    yield Row(
        operation="in 10 % of sessions",
        case="word in 50 %",
        ours=spread(times.cpu),
        wall=spread(times.wall),
    )


def sentence_rows(bench: Bench, count: int) -> Iterator[Row]:
    """All tiers: ten-word sentences, each once, after ten that do not count."""
    sentences = bench.corpus.sentences(count + 10)
    times = Times()
    for query in sentences[:10]:
        sessions_search(bench, query, "auto", tools=True)()
    for query in sentences[10:]:
        times.take(sessions_search(bench, query, "auto", tools=True))
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        cpu = percentile(times.cpu, share)
        last = name == "p95"
        yield Row(
            operation="all tiers, ten-word sentence",
            case=name,
            ours=Spread(cpu, min(times.cpu), max(times.cpu)),
            wall=single(percentile(times.wall, share)),
            gate=(at_most(cpu, 100, "≤ 100 ms"),) if last else (),
            aim=(at_most(cpu, 40, "≤ 40 ms"),) if last else (),
            note=f"{count} sentences; spread is least and most",
        )


@attrs.frozen
class SessionOf:
    """The session nearest to a number of documents."""

    sid: int
    documents: int


def session_of(bench: Bench, documents: int) -> SessionOf:
    found = bench.reads.execute(
        "SELECT sid, documents FROM session ORDER BY abs(documents - ?), sid LIMIT 1", (documents,)
    ).fetchall()
    return SessionOf(*found[0])


def inside_rows(bench: Bench, rounds: int) -> Iterator[Row]:
    """Searches for the events of one session of about 300."""
    session = session_of(bench, 300)
    cases: tuple[tuple[str, str, Match], ...] = (
        *((case, query, "exact") for case, query in SHARES.items()),
        ("ten-word sentence, all tiers", bench.corpus.sentences(1)[0], "auto"),
    )
    for case, query, match in cases:
        spec = SearchSpec(query=query, match=match, limit=LIMIT)

        def search(spec: SearchSpec = spec) -> object:
            with bench.reader.snapshot():
                return bench.reader.search_events(spec, Reach(), session.sid)

        times = repeated(search, rounds=rounds)
        cpu = spread(times.cpu).median
        yield Row(
            operation=f"in one session of {session.documents}",
            case=case,
            ours=spread(times.cpu),
            wall=spread(times.wall),
            gate=(at_most(cpu, 5, "≤ 5 ms"),),
            aim=(at_most(cpu, 2, "≤ 2 ms"),),
        )


def hot_ms(bench: Bench) -> float:
    """Wall milliseconds of the most expensive exact search, once warm."""
    search = sessions_search(bench, "zqhalf")
    search()
    began = time.perf_counter()
    search()
    return (time.perf_counter() - began) * 1e3
