"""Searches by example: the contract's own cases and what people type (SPEC 6, 16.1, 16.2, 16.9)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from session_query.protocol.filters import SeqClause, TimeClause, TypeClause
from session_query.protocol.records import Match
from session_query.storage.index import Facts, Reach, SearchSpec, SessionKey, evidence, scanning
from support.index_files import IndexFile, document, open_index, state

LONG = " ".join(f"filler{n}" for n in range(30))


@pytest.fixture
def index() -> Iterator[IndexFile]:
    with open_index() as opened:
        yield opened


def put(index: IndexFile, id_: str, *texts: str | tuple[str, str], **more: object) -> int:
    """A session of documents: texts, or (type, text)."""
    found = [
        document(seq, text) if isinstance(text, str) else document(seq, text[1], text[0])
        for seq, text in enumerate(texts)
    ]
    return index.put(SessionKey("journal", "", id_), state(id_, **more), found)


def ids(
    index: IndexFile, query: str, match: Match = "exact", reach: Reach | None = None, **more: object
) -> list[str]:
    with index.reader.snapshot():
        spec = SearchSpec(query=query, match=match, **more)  # type: ignore[arg-type]
        return [hit.session.key.id for hit in index.reader.search_sessions(spec, reach or Reach()).hits]


def facts(index: IndexFile, query: str, match: Match = "auto", **more: object) -> Facts:
    with index.reader.snapshot():
        spec = SearchSpec(query=query, match=match, **more)  # type: ignore[arg-type]
        return index.reader.search_sessions(spec, Reach()).facts


def seqs(index: IndexFile, sid: int, query: str, match: Match = "exact", **more: object) -> list[int]:
    with index.reader.snapshot():
        spec = SearchSpec(query=query, match=match, **more)  # type: ignore[arg-type]
        return [hit.seq for hit in index.reader.search_events(spec, Reach(), sid).hits]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("alpha beta", "alpha-beta", True),
        ("alpha beta", "alpha,\nbeta", True),
        ("alpha beta", "beta alpha", False),
        ("AI", "BRAID", False),
        ("dont", "don't", False),
        ("don t", "don't", True),
        ("foo", "foo_bar", True),
        ("CAFE", "cafe\u0301", True),
        ("strasse", "straße", False),
        ("fi", "ﬁ", False),
        ("1 000", "1,000", True),
        ("ABC", "ＡＢＣ", True),
        ("open_nursery", "await trio.open_nursery()", True),
        ("trio.open_nursery", "await trio.open_nursery()", True),
        ("openNursery", "x.openNursery()", True),
        ("nursery", "x.openNursery()", False),
        ("ERR_CONN_RESET", "failed: ERR_CONN_RESET", True),
        ("京タ", "東京タワー", True),
        ("ワ", "東京タワー", True),
        ("連接", "数据库連接失败", True),
        ("東ワ", "東京タワー", False),
        ("국어", "한국어 공부", True),
        ("กิน", "ก็กินข้าว", True),
        ("दिन", "आज का दिन", True),
        ("محمد", "مُحَمَّد", True),
        ('" OR * NOT ( NEAR ) : ^ -', "or not near", True),
        ("text : alpha", "text alpha", True),
        ("alpha*", "alphabet", False),
    ],
)
def test_exact_phrases(index: IndexFile, query: str, text: str, found: bool) -> None:
    put(index, "s", text)
    assert ids(index, query) == (["s"] if found else [])


@pytest.mark.parametrize("filler", ["", LONG])
def test_rank_keys_in_their_order(index: IndexFile, filler: str) -> None:
    put(index, "d", f"{filler} quartz longer text here", created_at=9)
    put(index, "c", f"{filler} quartz", created_at=1)
    put(index, "b", f"{filler} quartz", created_at=5)
    put(index, "a", f"{filler} quartz quartz and more words around", created_at=3)
    assert ids(index, "quartz") == ["a", "b", "c", "d"]
    sid = put(
        index, "e", f"{filler} echo echo echo", f"{filler} echo echo . echo echo", f"{filler} echo echo x!"
    )
    assert seqs(index, sid, "echo echo") == [0, 2, 1] or seqs(index, sid, "echo echo")[0] == 2


def test_overlapping_matches_count_once(index: IndexFile) -> None:
    sid = put(
        index, "s", "echo echo echo echo echo echo", "echo echo stop echo echo, and then some more text"
    )
    assert seqs(index, sid, "echo echo") == [1, 0]


@pytest.mark.parametrize("long", [False, True])
def test_symbols_come_first_where_they_are_meant(index: IndexFile, long: bool) -> None:
    filler = LONG if long else ""
    sid = put(index, "s", f"c {filler}", f"C++ is older {filler}", f"c# {filler}", f"abc++ c {filler}")
    assert seqs(index, sid, "C++")[0] == 1
    assert seqs(index, sid, "what is C++?", "auto")[0] == 1
    assert set(seqs(index, sid, "C++")) == {0, 1, 2, 3}


def test_symbols_alone_are_scanned_or_too_broad(index: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    put(index, "a", "x += 1", "yes => no")
    put(index, "b", "x -> y => z => w")
    assert ids(index, "=>") == ["b", "a"]
    assert ids(index, "<=>") == []
    assert not facts(index, "=>").too_broad
    monkeypatch.setattr(scanning, "SCAN_DOCUMENTS_MAX", 2)
    assert ids(index, "=>", "auto") == []
    assert facts(index, "=>").too_broad


def test_tiers_best_first_and_each_session_once(index: IndexFile) -> None:
    put(index, "some", "the nursery alone")
    put(index, "session", "a nursery", "its children")
    put(index, "words", "children of one nursery")
    put(index, "exact", "nursery children")
    put(index, "none", "nothing of the kind")
    assert ids(index, "nursery children", "auto") == ["exact", "words", "session", "some"]
    assert ids(index, "nursery children", "some") == ["exact", "words", "session", "some"]
    assert ids(index, "nursery children", "words") == ["exact", "words"]
    assert ids(index, "nursery children") == ["exact"]
    assert facts(index, "nursery children").tiers == ("exact", "words", "session", "some")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("nursery", "self.openNursery(x)"),
        ("open nursery", "x = openNursery()"),
        ("openNursery", "with open_nursery() as n"),
        ("cancel scope", "the scopes were cancelled"),
        ("deploys", "we deployed it"),
        ("库 数据", "数据库"),
    ],
)
def test_words_find_parts_and_forms(index: IndexFile, query: str, text: str) -> None:
    put(index, "s", text)
    assert ids(index, query, "words") == ["s"]


def test_filters_bind_every_event_that_contributes(index: IndexFile) -> None:
    put(index, "s", ("user/message", "nursery"), ("tool/result", "children"))
    users = (TypeClause(("user/message",)),)
    assert ids(index, "nursery children", "auto", event_clauses=users) == ["s"]
    assert facts(index, "nursery children", event_clauses=users).tiers == ("some",)
    assert facts(index, "nursery children").tiers == ("session",)
    late = facts(index, "nursery", event_clauses=(TimeClause(10**9, None),))
    assert late.filters_excluded_everything
    assert not facts(index, "absent", event_clauses=users).filters_excluded_everything


def test_searches_do_not_find_searches(index: IndexFile) -> None:
    sid = index.put(
        SessionKey("journal", "", "s"),
        state("s"),
        [
            document(0, "plain quartz"),
            document(1, "quartz quartz searchedQuartz", "tool/call", is_search=True),
        ],
    )
    assert seqs(index, sid, "quartz", "auto") == [0]
    named = (TypeClause(("tool/call",)),)
    assert seqs(index, sid, "quartz", event_clauses=named) == [1]
    assert seqs(index, sid, "searched", "words", event_clauses=named) == [1]
    assert seqs(index, sid, "searched", "words") == []


def test_prompts_stand_last_among_equals_in_the_tools_only(index: IndexFile) -> None:
    put(index, "asked", ("user/message", "quartz?"))
    put(index, "answered", ("assistant/message", "quartz is a mineral"))
    assert ids(index, "quartz") == ["asked", "answered"]
    assert ids(index, "quartz", tools=True) == ["answered", "asked"]


def test_copies_of_a_fork_count_once_at_their_origin(index: IndexFile) -> None:
    put(index, "origin", "quartz first", "other")
    put(
        index,
        "fork",
        "quartz first",
        "other",
        "quartz quartz again",
        parent_session="origin",
        inherited=2,
        created_at=2,
    )
    put(index, "copy", "quartz first", "other", parent_session="origin", inherited=2, created_at=3)
    assert ids(index, "quartz", tools=True) == ["fork", "origin"]
    assert sorted(ids(index, "quartz")) == ["copy", "fork", "origin"]
    with index.reader.snapshot():
        origin = index.reader.find(SessionKey("journal", "", "origin"))
        assert origin is not None
    hidden = Reach(hidden=frozenset((origin.sid,)))
    assert ids(index, "first", tools=True, reach=hidden) == ["fork"], "the first copy stands for the origin"
    assert ids(index, "first other", "auto", tools=True) == ["origin"]


@pytest.mark.parametrize("others", [["a"], ["a", "c"]])
def test_forks_in_a_circle_end_where_it_closes(index: IndexFile, others: list[str]) -> None:
    circle = ["b", *others]
    sids = [
        put(index, fork, "quartz", "other", parent_session=origin, inherited=2)
        for fork, origin in zip(circle, [*others, "b"], strict=True)
    ]
    put(index, "fork", "quartz", "other", parent_session="b", inherited=2)
    assert ids(index, "quartz", tools=True) == ids(index, "other quartz", "auto", tools=True) == ["a"]
    for out in (
        Reach(excluded=frozenset(sids[1:])),
        Reach(hidden=frozenset(sids[2:]), excluded=frozenset(sids[1:])),
    ):
        assert ids(index, "quartz", tools=True, reach=out) == ["b"]
        assert ids(index, "other quartz", "auto", tools=True, reach=out) == ["b"]


def test_sub_agents_stand_under_their_parent(index: IndexFile) -> None:
    put(index, "p", "a word about quartz and more")
    put(index, "child", "quartz quartz", parent_session="p", origin="subagent", created_at=2)
    put(index, "grandchild", "quartz", parent_session="child", origin="subagent", created_at=3)
    put(index, "other", "quartz quartz quartz, in a longer text")
    assert ids(index, "quartz") == ["other", "child", "grandchild", "p"]
    with index.reader.snapshot():
        found = index.reader.search_sessions(SearchSpec(query="quartz", tools=True), Reach())
    assert [hit.session.key.id for hit in found.hits] == ["other", "p"]
    under = found.hits[1]
    assert under.own
    assert under.best.sid == under.sub_agents[0].session.sid
    assert [sub.session.key.id for sub in under.sub_agents] == ["child", "grandchild"]


def test_nothing_outside_the_reach_moves_a_result(index: IndexFile) -> None:
    put(index, "a", "nursery children", "cancel scope timeout", cwd="/mine")
    put(index, "b", "children timeout", "nursery", cwd="/mine")
    put(index, "c", "scope", "cancel children", cwd="/mine")
    mine = Reach(workspaces=("/mine",))
    queries = ("nursery children scope", "timeout cancel", "children", "cancel timeout nursery zzz")

    def answers() -> list[object]:
        with index.reader.snapshot():
            return [
                [(h.session.sid, h.tier, h.best.seq, h.position.keys[:3]) for h in found.hits]
                for query in queries
                for found in [
                    index.reader.search_sessions(SearchSpec(query=query, match="auto", tools=True), mine)
                ]
            ]

    before = answers()
    for n in range(40):
        put(
            index,
            f"x{n}",
            f"{('nursery', 'timeout', 'scope')[n % 3]} children {LONG}",
            cwd="/theirs",
            created_at=n,
        )
    put(index, "z", "quiet", parent_session="a", origin="subagent", cwd="/theirs")
    assert answers() == before


def test_only_common_words_say_so(index: IndexFile) -> None:
    for n in range(12):
        put(index, f"s{n}", f"the whole of it {n}", "of the matter", f"needle{n} of the hay")
    said = facts(index, "the of")
    assert said.only_common_words
    assert ids(index, "of the", "auto") != []
    assert not facts(index, "the needle3").only_common_words
    assert ids(index, "of needle3 the", "auto") == ["s3"]
    assert evidence.COMMON_TOTAL_MIN <= 12


def test_excluded_sessions_are_no_hits_and_cuts_are_not_crossed(index: IndexFile) -> None:
    own = put(index, "own", "quartz early", "quartz late")
    put(index, "other", "quartz")
    assert ids(index, "quartz", reach=Reach(excluded=frozenset((own,)))) == ["other"]
    with index.reader.snapshot():
        cut = Reach(cuts={own: 1})
        for match in ("exact", "auto"):
            spec = SearchSpec(query="quartz late", match=match)  # type: ignore[arg-type]
            assert [h.seq for h in index.reader.search_events(spec, cut, own).hits] == (
                [0] if match == "auto" else []
            )


def test_a_phrase_longer_than_the_engine_is_given_is_checked_in_the_text(index: IndexFile) -> None:
    words = [f"w{n}" for n in range(90)]
    put(index, "whole", " ".join(words))
    put(index, "part", " ".join(words[:80]))
    assert ids(index, " ".join(words)) == ["whole"]
    assert ids(index, " ".join(words), "auto")[0] == "whole"


def test_text_of_any_kind_is_indexed_and_shown(index: IndexFile) -> None:
    odd = "zero\0quartz \ud800 mark \ufdd0 \ue000 e\u0301 " + "😀" * 3
    sid = put(index, "s", odd, "x" * 300_000 + " quartz")
    with index.reader.snapshot():
        hits = index.reader.search_events(SearchSpec(query="quartz"), Reach(), sid).hits
        assert hits[0].snippet.startswith("zero\ufffdquartz \ufffd mark \ufffd")
        assert hits[1].snippet.endswith("quartz")
        assert index.reader.documents(sid)[0].text == odd.replace("\ud800", "\ufffd")


def test_seq_bounds_and_pages_inside_a_session(index: IndexFile) -> None:
    sid = put(index, "s", *[f"quartz {n:03d}" for n in range(50)])
    assert seqs(index, sid, "quartz", event_clauses=(SeqClause(10, 12.5),)) == [12, 11, 10]
    found, after = [], None
    with index.reader.snapshot():
        while True:
            spec = SearchSpec(query="quartz", match="auto", limit=7, after=after)
            page = index.reader.search_events(spec, Reach(), sid)
            found += [hit.seq for hit in page.hits]
            if not page.more:
                break
            after = page.hits[-1].position
    assert found == list(range(49, -1, -1))
