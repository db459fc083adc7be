"""Whichever way an exact search takes, its answer is the same, and so are its pages, each by another way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import attrs
import pytest

from session_query.protocol.documents import Document
from session_query.protocol.filters import EventClause, SeqClause, SurfaceClause, TypeClause
from session_query.storage.index import engine_order, exact, repeats, spans, tagging
from session_query.storage.index.door import FoundInSession, Reach, SearchSpec, SessionKey
from support.index_files import IndexFile, document, open_index, state

FILLER: Final = " ".join(f"filler{n}" for n in range(24))
WORDS: Final = ["echo", "echo", "nursery", "openNursery", "trio", "C++", "a-b", "東京", "京", "café"]
QUERIES: Final = [
    "echo",
    "nursery echo",
    "echo echo",
    "C++",
    "C++ trio",
    "東京",
    "open nursery",
    "++",
    "café",
]
TYPES: Final = ["user/message", "assistant/message", "tool/call"]
PLACES: Final = ["/a", "/a", "/b", None]
REACHES: Final = [None, ("/a",), ("/b",), (None,), ("/a", None), ("/nowhere",)]
CLAUSES: Final[list[tuple[EventClause, ...]]] = [
    *[()] * 6,
    (SeqClause(1, None),),
    (TypeClause(("tool/call",)),),
    (SurfaceClause(("current",)),),
]
CHOOSING: Final = {
    "SMALL_DOCUMENTS_MAX": (0, 20, 10_000),
    "LISTED_MAX": (0, 3, 500),
    "LOOKED_UP_MAX": (0, 2, 4_000),
    "TAGS_FROM_HITS": (0, 4, 2_000),
    "TAGGED_LOOKED_UP_MAX": (0, 2, 10_000),
    "SAMPLE_SHARE": (1, 2, 16),
    "SAMPLED_MAX": (1, 3, 2_500),
    "MAYBE_TWICE_MAX": (0, 2, 40),
    "FEW_HITS": (0, 1_000),
    "LONG_PHRASE": (2, 3),
}
"""What a way is chosen by, in ``exact``."""


class UndoneError(Exception):
    """Raised to roll a transaction back."""


@contextmanager
def some_way(rng: random.Random) -> Iterator[dict[str, int]]:
    chosen = {name: rng.choice(values) for name, values in CHOOSING.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in chosen.items():
            patch.setattr(exact, name, value)
        patch.setattr(engine_order, "_FIRST_STEP_FROM", rng.choice([0, 40_000]))
        yield chosen


def documents(rng: random.Random, first: int) -> list[Document]:
    found = []
    for seq in range(first, first + rng.randrange(1, 5)):
        some = random.Random(seq) if seq < 2 else rng  # what forks inherit is the same everywhere
        kind = some.choice(TYPES)
        words = [*some.choices(WORDS, k=some.randrange(1, 6)), FILLER, "y" * some.choice([0, 1, 90, 400])]
        more = {"time": rng.randrange(4), "surface": rng.choice(["current", "shadowed", "log-only"])}
        is_search = kind == "tool/call" and some.random() < 0.5
        found.append(document(seq, " ".join(words), kind, is_search=is_search, **more))
    return found


def change(index: IndexFile, ends: Counter[str], rng: random.Random) -> None:
    """A session is made, moved, grows, is cut, damaged or deleted."""
    writer, number = index.writer, rng.randrange(9)
    key = SessionKey("journal", "", f"s{number}")
    row = writer.find(key)
    if row is not None and (turn := rng.random()) < 0.25:
        if turn < 0.1:
            writer.delete(row.sid)
        elif turn < 0.2:
            writer.truncate(row.sid, rng.randrange(6))
        else:
            writer.put_session(key, attrs.evolve(row.state, error="SESSION_QUERY_CORRUPT_SESSION"))
        return
    parent = f"s{rng.randrange(number)}" if number and rng.random() < 0.5 else None
    origin = rng.choice([None, "subagent"]) if parent else None
    inherited = 2 if parent and origin is None else 0
    made = state(
        key.id, cwd=rng.choice(PLACES), parent_session=parent, origin=origin, inherited=inherited,
        created_at=number // 3,
    )  # fmt: skip
    sid = writer.put_session(key, made)
    more = documents(rng, ends[key.id])
    writer.append(sid, more)
    ends[key.id] = more[-1].seq + 1


def change_together(index: IndexFile, ends: Counter[str], rng: random.Random) -> None:
    with suppress(UndoneError), index.writer.transaction():
        for _ in range(rng.randrange(1, 4)):
            with suppress(UndoneError), index.writer.transaction():
                change(index, ends, rng)
                if rng.random() < 0.2:
                    raise UndoneError
            change(index, ends, rng)
        if rng.random() < 0.15:
            raise UndoneError


def check_counts(index: IndexFile) -> None:
    """A workspace tells how many documents its sessions have."""
    execute = index.connection.execute
    told = dict(execute("SELECT ws, documents FROM workspace WHERE documents <> 0").fetchall())
    assert told == Counter(
        ws
        for (ws,) in execute(
            "SELECT s.ws FROM doc AS d JOIN block AS b ON b.block = d.doc >> 12"
            " JOIN session AS s ON s.sid = b.sid"
        ).fetchall()
    )


def some_question(rng: random.Random) -> tuple[SearchSpec, Reach]:
    spec = SearchSpec(
        query=rng.choice(QUERIES),
        match=rng.choice(["exact", "exact", "auto"]),
        event_clauses=rng.choice(CLAUSES),
        tools=rng.random() < 0.5,
        limit=rng.choice([1, 3, 100]),
        snippet_chars=rng.choice([5, 240]),
    )
    some = frozenset(rng.sample(range(1, 12), 2))
    return spec, rng.choice([Reach, lambda **more: Reach(excluded=some, hidden=frozenset([3]), **more)])(
        workspaces=rng.choice(REACHES)
    )


def in_pages(index: IndexFile, spec: SearchSpec, reach: Reach, rng: random.Random) -> list[FoundInSession]:
    found: list[FoundInSession] = []
    while True:
        after = found[-1].position if found else None
        with some_way(rng):
            page = index.reader.search_sessions(attrs.evolve(spec, limit=2, after=after), reach)
        found += page.hits
        if not page.more:
            return found


@pytest.mark.parametrize("seed", range(6))
def test_every_way_gives_the_same_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(tagging, "TAGS_FROM_DOCUMENTS", 30)
    if seed % 4:
        monkeypatch.setattr(spans, "SPANS_FROM_DOCUMENTS", 1)
        monkeypatch.setattr(spans, "FREQUENT_SHARE", 0.0)
        monkeypatch.setattr(spans, "FREQUENT_BLOCKS_MIN", 1)
        monkeypatch.setattr(repeats, "HASHES_MAX", 1 + seed)
    hits, ends = 0, Counter[str]()
    with open_index(tagged=seed % 2 == 0) as index:
        for _ in range(3):
            for _ in range(12):
                change_together(index, ends, rng)
                check_counts(index)
            while rng.random() < 0.95 and index.writer.merge_step():
                pass
            with index.reader.snapshot():
                for _ in range(12):
                    spec, reach = some_question(rng)
                    answer = index.reader.search_sessions(spec, reach)
                    for _ in range(3):
                        with some_way(rng) as chosen:
                            assert index.reader.search_sessions(spec, reach) == answer, chosen
                    whole = index.reader.search_sessions(attrs.evolve(spec, limit=100), reach)
                    assert in_pages(index, spec, reach, rng) == list(whole.hits)
                    hits += len(whole.hits)
    assert hits > 30


@pytest.mark.parametrize("where", [None, ("/a",)])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"SMALL_DOCUMENTS_MAX": 0},
        {"SMALL_DOCUMENTS_MAX": 0, "LISTED_MAX": 0},
        {"SMALL_DOCUMENTS_MAX": 0, "TAGGED_LOOKED_UP_MAX": 0, "TAGS_FROM_HITS": 1},
        {"LOOKED_UP_MAX": 0},
    ],
)
def test_a_tie_beyond_what_is_read_at_once_is_decided_by_the_ids(
    monkeypatch: pytest.MonkeyPatch, where: tuple[str, ...] | None, limits: dict[str, int]
) -> None:
    monkeypatch.setattr(spans, "SPANS_FROM_DOCUMENTS", 1)
    monkeypatch.setattr(spans, "FREQUENT_SHARE", 0.0)
    monkeypatch.setattr(spans, "FREQUENT_BLOCKS_MIN", 1)
    for name, value in limits.items():
        monkeypatch.setattr(exact, name, value)
    with open_index() as index:
        for id_ in ("d", "c", "b", "a"):  # the best id lies last among equals
            equal = [document(seq, f"echo {FILLER}", time=7) for seq in range(30)]
            index.put(SessionKey("journal", "", id_), state(id_), equal)
        while index.writer.merge_step():
            pass
        after, found = None, []
        with index.reader.snapshot():
            for _ in range(4):
                page = index.reader.search_sessions(
                    SearchSpec(query="echo", limit=1, after=after), Reach(workspaces=where)
                )
                found += [(hit.session.key.id, hit.best.seq) for hit in page.hits]
                after = page.hits[-1].position
        assert found == [("a", 29), ("b", 29), ("c", 29), ("d", 29)]
