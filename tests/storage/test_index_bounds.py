"""What bounds a search in a large index: budgets, stages, the score as a count (SPEC 16.1.3, 6.5)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
import pytest

from session_query.protocol.cursor import Position
from session_query.protocol.tokens import count_phrase
from session_query.storage.index import (
    Reach,
    SearchSpec,
    SessionKey,
    counting,
    evidence,
    exact,
    relaxed,
    spans,
)
from session_query.storage.index.tagging import length_class
from session_query.storage.text_codec import TextCodec
from support.index_files import IndexFile, document, open_index, state

FILLER = " ".join(f"filler{n}" for n in range(25))


@pytest.fixture
def index() -> Iterator[IndexFile]:
    with open_index() as opened:
        yield opened


def put(index: IndexFile, id_: str, *texts: str, **more: object) -> int:
    found = [document(seq, text) for seq, text in enumerate(texts)]
    return index.put(SessionKey("journal", "", id_), state(id_, **more), found)


def paged(index: IndexFile, spec: SearchSpec, size: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after: Position | None = None
    with index.reader.snapshot():
        while True:
            part = attrs.evolve(spec, limit=size, after=after)
            page = index.reader.search_sessions(part, Reach())
            found += [(hit.tier, hit.session.key.id) for hit in page.hits]
            if not page.more:
                return found
            after = page.hits[-1].position


@pytest.mark.parametrize("spanned", [False, True])
def test_words_beyond_the_budget_still_decide_the_tier(
    index: IndexFile, monkeypatch: pytest.MonkeyPatch, spanned: bool
) -> None:
    monkeypatch.setattr(evidence, "POSTINGS_MAX", 4)
    for n in range(6):
        put(index, f"some{n}", "frequent word here", "frequent again")
        put(index, f"none{n}", "nothing of the kind", "and again")
        put(index, f"void{n}", "nothing either")
    put(index, "words", "rare and frequent")
    put(index, "session", "rare thing", "frequent thing")
    put(index, "alone", "rare only")
    if spanned:
        monkeypatch.setattr(spans, "SPANS_FROM_DOCUMENTS", 4)
        monkeypatch.setattr(spans, "FREQUENT_BLOCKS_MIN", 2)
        while index.writer.merge_step():
            pass
    found = paged(index, SearchSpec(query="rare frequent", match="auto"), 20)
    assert found[:3] == [("words", "words"), ("session", "session"), ("some", "alone")]


def test_pages_go_on_beyond_what_is_scored_finely(index: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxed, "FINE_SESSIONS", 3)
    monkeypatch.setattr(relaxed, "FINE_EVENTS", 3)
    ids = [f"s{n:02d}" for n in range(7)]
    for id_ in ids:
        sid = put(index, id_, "beta x alpha", "alpha", f"{FILLER} beta")
    whole = paged(index, SearchSpec(query="alpha beta", match="some"), 100)
    assert {id_ for _, id_ in whole} == set(ids)
    assert len(whole) == len(ids)
    assert paged(index, SearchSpec(query="alpha beta", match="some"), 2) == whole
    events, after = [], None
    with index.reader.snapshot():
        while True:
            spec = SearchSpec(query="alpha beta", match="some", limit=1, after=after)
            page = index.reader.search_events(spec, Reach(), sid)
            events += [hit.seq for hit in page.hits]
            if not page.more:
                break
            after = page.hits[-1].position
    assert sorted(events) == [0, 1, 2]


@pytest.mark.parametrize("tools", [False, True])
def test_thinned_out_order_is_the_order_of_all(
    index: IndexFile, monkeypatch: pytest.MonkeyPatch, tools: bool
) -> None:
    """Ties by the hundred at one match and at two: every way to the first page gives the same page."""
    rng = random.Random(4)
    for n in range(40):
        texts = []
        for _ in range(rng.randrange(1, 9)):
            count = rng.choice([1, 1, 1, 2, 3])
            texts.append(" ".join([FILLER, *["quartz"] * count, "x" * rng.choice([1, 1, 2, 300])]))
        kinds = [document(s, t, rng.choice(["user/message", "tool/result"])) for s, t in enumerate(texts)]
        index.put(SessionKey("journal", "", f"s{n}"), state(f"s{n}"), kinds)
    spec = SearchSpec(query="quartz", tools=tools)
    assert counting.may_count(index.connection)
    looked_up = [paged(index, spec, size) for size in (1, 3, 7, 100)]
    monkeypatch.setattr(exact, "LOOKED_UP_MAX", 0)
    thinned = [paged(index, spec, size) for size in (1, 3, 7, 100)]
    monkeypatch.setattr(counting, "MEAN_TOKENS_MIN", 10**9)
    counted = [paged(index, spec, size) for size in (3, 100)]
    assert len(counted[0]) == 40
    assert all(found == counted[0] for found in looked_up + thinned + counted)


@pytest.mark.parametrize("many", [1, 10**9])
def test_a_workspace_is_kept_to_by_tag_and_by_list(
    index: IndexFile, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(exact, "TAGS_FROM_HITS", many)
    monkeypatch.setattr(exact, "MAYBE_TWICE_MAX", 0)
    for n in range(30):
        put(index, f"s{n:02d}", f"{FILLER} quartz", f"{FILLER} quartz quartz {n}", cwd=f"/{n % 3}")
    for cwds in (("/0",), ("/1", "/2"), ("/nowhere",), (None,)):
        with index.reader.snapshot():
            spec = SearchSpec(query="quartz", limit=100)
            found = index.reader.search_sessions(spec, Reach(workspaces=cwds)).hits
        expected = {f"s{n:02d}" for n in range(30) if f"/{n % 3}" in cwds}
        assert {hit.session.key.id for hit in found} == expected


def test_the_score_counts_only_where_it_was_seen_to(index: IndexFile) -> None:
    assert counting.bm25_counts()
    assert counting.mean_tokens(index.connection) == 0
    put(index, "short", "one two")
    assert 0 < counting.mean_tokens(index.connection) < counting.MEAN_TOKENS_MIN
    assert not counting.may_count(index.connection)
    put(index, "long", FILLER, FILLER, FILLER)
    assert counting.may_count(index.connection)
    assert count_phrase(FILLER, ["filler3"]) == 1


def test_length_classes_never_go_down() -> None:
    classes = [length_class(chars) for chars in range(5_000)] + [length_class(10**9)]
    assert classes == sorted(classes)
    assert classes[-1] < 200


def test_texts_come_back_as_they_were_packed() -> None:
    codec = TextCodec()
    for texts in ([], [""], ["a"], ["x" * 100_000, "é\0", "東京"], ["\ud800 lone"]):
        expected = [text.replace("\ud800", "\ufffd") for text in texts]
        assert codec.unpack(codec.pack(texts)) == expected
    assert codec.unpack_bytes(codec.pack_bytes(b"")) == b""
