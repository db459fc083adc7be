"""Counts known without the engine's score: confined searches give what counting in every text gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.filters import SeqClause
from session_query.protocol.tokens import count_phrase, lower_ascii, prepare, tokens
from session_query.storage.index import exact, repeats, spans
from session_query.storage.index.door import Reach, SearchSpec, SessionKey
from session_query.storage.index.engine_order import EngineOrder
from session_query.storage.index.scope import Matching, Sql
from session_query.storage.sqlite import Row
from support.index_files import IndexFile, document, open_index, state

FILLER = " ".join(f"filler{n}" for n in range(24))
WORDS = ["the", "the", "of", "echo", "nursery", "東京", "C++"]
PLACES = ["/a", "/b", None]

texts = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join), min_size=1, max_size=20
)


def cover(index: IndexFile) -> None:
    while index.writer.merge_step():
        pass


def spanned(patch: pytest.MonkeyPatch) -> None:
    """Every index is large enough for spans, and every word frequent enough."""
    patch.setattr(spans, "SPANS_FROM_DOCUMENTS", 1)
    patch.setattr(spans, "FREQUENT_SHARE", 0.0)
    patch.setattr(spans, "FREQUENT_BLOCKS_MIN", 1)


def put(index: IndexFile, first: int, written: list[str]) -> dict[str, tuple[str | None, list[str]]]:
    """Two documents a session; returns their workspace and texts by session id."""
    found: dict[str, tuple[str | None, list[str]]] = {}
    for at in range(0, len(written), 2):
        id_, place, some = f"s{first + at:02}", PLACES[(first + at) // 2 % 3], written[at : at + 2]
        index.put(
            SessionKey("journal", "", id_),
            state(id_, cwd=place),
            [document(seq, f"{text} . {FILLER}", time=1_000) for seq, text in enumerate(some)],
        )
        found[id_] = place, some
    return found


def expected(
    stored: dict[str, tuple[str | None, list[str]]],
    phrase: list[str],
    places: tuple[str | None, ...],
    lowest: int,
) -> list[tuple[str, int]]:
    """(session id, seq) of every session's best event, in order of the keys of SPEC 6.5."""
    found = []
    for id_, (place, some) in stored.items():
        ranked = [
            (-count, len(text), id_, -seq)
            for seq, text in enumerate(some)
            if place in places
            and seq >= lowest
            and (count := count_phrase(lower_ascii(prepare(text)), phrase))
        ]
        found += sorted(ranked)[:1]
    return [(id_, -seq) for _, _, id_, seq in sorted(found)]


@given(
    texts,
    texts,
    st.lists(st.sampled_from(WORDS[:-1]), min_size=1, max_size=3).map(" ".join),
    st.sets(st.sampled_from(PLACES), min_size=1, max_size=2),
    st.integers(0, 6),
    st.integers(1, 5),
    st.integers(0, 1),
    st.sampled_from([exact.SMALL_DOCUMENTS_MAX, 0]),
)
@settings(max_examples=160, deadline=None)
def test_the_order_is_that_of_counting_every_text(
    before: list[str],
    after: list[str],
    query: str,
    places: set[str | None],
    most: int,
    limit: int,
    lowest: int,
    small: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch, open_index() as index:
        spanned(patch)
        patch.setattr(exact, "MAYBE_TWICE_MAX", most)
        patch.setattr(exact, "LISTED_MAX", 3 * most)
        patch.setattr(exact, "SMALL_DOCUMENTS_MAX", small)
        patch.setattr(repeats, "HASHES_MAX", 1 + most // 2)
        stored = put(index, 0, before)
        cover(index)
        stored |= put(index, 40, after)
        reach = Reach(workspaces=tuple(sorted(places, key=str)))
        clauses = (SeqClause(lowest, None),) if lowest else ()
        with index.reader.snapshot():
            spec = SearchSpec(query=query, limit=limit, event_clauses=clauses)
            found = index.reader.search_sessions(spec, reach)
        wanted = expected(stored, tokens(query), places, lowest)
        assert [(hit.session.key.id, hit.best.seq) for hit in found.hits] == wanted[:limit]
        assert found.more == (len(wanted) > limit)


def test_no_score_is_asked_for_where_nothing_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    spanned(monkeypatch)
    with open_index() as index:
        put(index, 0, ["echo the", "the echo nursery", "echo of", "echo", "of echo", "echo echo the"] * 3)
        cover(index)
        for name in ("joined", "by_score", "at_score", "shortest"):
            monkeypatch.setattr(EngineOrder, name, None)
        monkeypatch.setattr(exact, "MAYBE_TWICE_MAX", 3)
        with index.reader.snapshot():
            hits = index.reader.search_sessions(SearchSpec(query="echo"), Reach(workspaces=(None,))).hits
        assert [hit.best.seq for hit in hits] == [1, 1, 1]


def test_a_small_workspace_is_not_read_to_its_last_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    spanned(monkeypatch)
    asked: list[int] = []
    known_once = EngineOrder.known_once

    def noting(
        order: EngineOrder, source: Matching | Sequence[int], events: Sql, repeats: Sql, size: int
    ) -> list[Row]:
        asked.append(size)
        return known_once(order, source, events, repeats, size)

    with open_index() as index:
        for number in range(3):
            documents = [document(seq, f"echo {FILLER} {'x' * (seq % 7)}") for seq in range(200)]
            index.put(SessionKey("journal", "", f"s{number}"), state(f"s{number}"), documents)
        cover(index)
        monkeypatch.setattr(EngineOrder, "known_once", noting)
        with index.reader.snapshot():
            hits = index.reader.search_sessions(SearchSpec(query="echo"), Reach(workspaces=("/a",))).hits
    assert [(hit.session.key.id, hit.best.seq) for hit in hits] == [("s0", 196), ("s1", 196), ("s2", 196)]
    assert asked == [84 + exact.MAYBE_TWICE_MAX]


def test_a_deleted_session_leaves_no_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spanned(monkeypatch)
    with open_index(tmp_path / "index.db") as index:
        put(index, 0, ["echo echo", "the the of of", "echo"])
        cover(index)
        put(index, 10, ["nursery nursery"])
        count = "SELECT count(*), count(nullif(tokens, x'')) FROM repeats"
        assert index.connection.execute(count).fetchone() == (4, 3)
        with index.writer.transaction():
            for (sid,) in index.connection.execute("SELECT sid FROM session").fetchall():
                index.writer.delete(sid)
        assert index.connection.execute(count).fetchone() == (0, 0)


def test_what_is_kept_of_one_document_is_bounded() -> None:
    assert repeats.repeated("a b c a") == repeats.repeated("x a y a")
    assert repeats.repeated("a b c") == b""
    assert repeats.repeated(" ".join(f"w{n} w{n}" for n in range(repeats.HASHES_MAX + 20))) is None
