"""The engine against the slow model, on small random histories: membership, tiers and order (SPEC 6, 16)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, TypeAlias

import attrs
import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from models.index_model import IndexModel, ModelHit, ModelSession
from session_query.protocol.documents import Document
from session_query.protocol.filters import (
    AvailabilityClause,
    CreatedAtClause,
    CwdClause,
    EventClause,
    IdClause,
    ParentClause,
    SeqClause,
    SessionClause,
    SurfaceClause,
    TimeClause,
    TypeClause,
)
from session_query.protocol.header import SessionHeader
from session_query.storage.index import counting
from session_query.storage.index.door import FoundInSession, Reach, SearchSpec, SessionKey, SessionState
from session_query.storage.index.reader import Reader
from support.index_files import IndexFile, open_index

Stored: TypeAlias = tuple[SessionKey, SessionState, list[Document]]

EXAMPLES = int(os.environ.get("INDEX_MODEL_EXAMPLES", "15"))
"""A run on demand takes thousands; shrinking a history takes minutes and tells little more."""

WORDS = [
    "echo", "nursery", "openNursery", "cancel", "cancelled", "trio", "C++", "c", "a-b", "東京", "京",
    "タワー", "café", "x",
]  # fmt: skip
QUERIES = [
    *WORDS, "echo echo", "trio nursery", "nursery trio", "cancel the nursery", "open nursery", "東京タワー",
    "京タ", "C++ trio", "++", "-", "cancels", "echo cancel trio x", "nursery zzz", "zzz", "OR",
    '"echo" NOT trio*',
]  # fmt: skip
TYPES = ["user/message", "assistant/message", "tool/result", "tool/call"]
FILLER = " ".join(f"filler{n}" for n in range(24))

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    found = []
    for seq in range(draw(st.integers(0, 5))):
        if draw(st.integers(0, 5)) == 0:
            continue
        kind = draw(st.sampled_from(TYPES))
        found.append(
            Document(
                seq=seq,
                type=kind,
                time=draw(st.integers(0, 3)),
                surface=draw(st.sampled_from(["current", "shadowed", "log-only"])),
                text=draw(texts),
                is_search=kind == "tool/call" and draw(st.booleans()),
            )
        )
    return found


@st.composite
def histories(draw: st.DrawFn) -> list[Stored]:
    found: dict[SessionKey, Stored] = {}
    for _ in range(draw(st.integers(1, 11))):
        source = draw(st.sampled_from(["journal", "journal", "codex", "live"]))
        key = SessionKey(source, draw(st.sampled_from(["", "", "p"])), f"s{draw(st.integers(0, 7))}")
        parent = draw(st.sampled_from([None, None, *(f"s{n}" for n in range(8))]))
        header = SessionHeader(
            id=key.id,
            created_at=draw(st.integers(0, 2)),
            cwd=draw(st.sampled_from(["/a", "/a", "/b", None])),
            parent_session=parent if parent != key.id else None,
            origin=draw(st.sampled_from([None, "subagent"])) if parent else None,
        )
        inherited = draw(st.integers(0, 4)) if header.parent_session and header.origin is None else 0
        own = draw(documents())
        origin = next((o for o in found.values() if (o[0].id, o[0].source) == (parent, source)), None)
        if origin is not None and inherited:
            own = [d for d in origin[2] if d.seq < inherited] + [d for d in own if d.seq >= inherited]
        state = SessionState(
            header=header,
            rank={"live": 0, "journal": 1, "codex": 2}[source],
            inherited=inherited,
            persisted=source != "live",
            error=draw(st.sampled_from([None] * 9 + ["SESSION_QUERY_CORRUPT_SESSION"])),
        )
        found[key] = (key, state, [] if state.error else own)
    return list(found.values())


def session_clauses() -> st.SearchStrategy[tuple[SessionClause, ...]]:
    ids = st.lists(st.sampled_from([f"s{n}" for n in range(9)]), max_size=3).map(tuple)
    one: st.SearchStrategy[Any] = st.one_of(
        ids.map(IdClause),
        st.lists(st.sampled_from(["/a", "/b", None]), max_size=2).map(lambda v: CwdClause(tuple(v))),
        st.builds(CreatedAtClause, st.sampled_from([None, 0, 0.5, 1]), st.sampled_from([None, 1, 1.5, 2])),
        st.lists(st.sampled_from(["s0", "s1", None]), max_size=2).map(lambda v: ParentClause(tuple(v))),
        st.lists(st.sampled_from(["live", "persisted"]), max_size=2).map(
            lambda v: AvailabilityClause(tuple(v))
        ),
    )
    return st.lists(one, max_size=1).map(tuple)


def event_clauses() -> st.SearchStrategy[tuple[EventClause, ...]]:
    one: st.SearchStrategy[Any] = st.one_of(
        st.builds(SeqClause, st.sampled_from([None, 0, 1, 1.5]), st.sampled_from([None, 2, 3.5])),
        st.builds(TimeClause, st.sampled_from([None, 1]), st.sampled_from([None, 2])),
        st.lists(st.sampled_from([*TYPES, "none"]), max_size=3).map(lambda v: TypeClause(tuple(v))),
        st.lists(st.sampled_from(["current", "shadowed", "log-only"]), max_size=2).map(
            lambda v: SurfaceClause(tuple(v))
        ),
    )
    return st.lists(one, max_size=1).map(tuple)


@st.composite
def questions(draw: st.DrawFn) -> tuple[SearchSpec, Reach]:
    spec = SearchSpec(
        query=draw(st.sampled_from(QUERIES)),
        match=draw(st.sampled_from(["exact", "words", "some", "auto", "auto"])),
        session_clauses=draw(session_clauses()),
        event_clauses=draw(event_clauses()),
        tools=draw(st.booleans()),
        limit=100,
    )
    sids = st.frozensets(st.integers(1, 8), max_size=2)
    reach = Reach(
        workspaces=draw(st.sampled_from([None, None, ("/a",), ("/a", None), ("/c",)])),
        live=draw(sids),
        hidden=draw(sids),
        excluded=draw(sids),
    )
    return spec, reach


def build(index: IndexFile, history: list[Stored], long: bool) -> IndexModel:
    """Put the history into both. ``long``: texts long enough for the engine's own counting."""
    model = IndexModel()
    for key, state, found in history:
        if long:
            found = [msgspec.structs.replace(d, text=f"{d.text} {FILLER}") for d in found]
        sid = index.put(key, state, found)
        model.sessions[sid] = ModelSession(sid, key, state, found)
    return model


def listed(hit: FoundInSession) -> ModelHit:
    members = {sub.session.sid for sub in hit.sub_agents} | ({hit.session.sid} if hit.own else set())
    shown = hit.best.snippet if hit.tier == "exact" else None
    return ModelHit(hit.tier, hit.session.sid, hit.best.sid, hit.best.seq, shown, tuple(sorted(members)))


def in_pages(reader: Reader, spec: SearchSpec, reach: Reach, size: int) -> Iterator[FoundInSession]:
    after = None
    while True:
        page = reader.search_sessions(attrs.evolve(spec, limit=size, after=after), reach)
        yield from page.hits
        assert len(page.hits) == size or not page.more
        if not page.more:
            return
        after = page.hits[-1].position


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    history=histories(),
    asked=st.lists(questions(), min_size=3, max_size=6),
    hide=st.booleans(),
    tagged=st.booleans(),
)
def test_session_search_is_the_model(long: bool, history: Any, asked: Any, hide: bool, tagged: bool) -> None:
    with open_index(tagged=tagged) as index:
        model = build(index, history, long)
        if hide:
            with index.writer.transaction():
                index.writer.show_source("codex", False)
            model.hidden_sources.add("codex")
        with index.reader.snapshot():
            if long and any(found for _, _, found in history):
                assert counting.may_count(index.reader_connection)
            for spec, reach in asked:
                expected = [
                    ModelHit(h.tier, h.sid, h.best_sid, h.seq, h.snippet, tuple(sorted(h.members)))
                    for h in model.search(spec, reach)
                ]
                found = index.reader.search_sessions(spec, reach)
                assert [listed(hit) for hit in found.hits] == expected
                assert not found.more
                assert found.facts.tiers == tuple(dict.fromkeys(h.tier for h in expected))
                paged = [listed(hit) for hit in in_pages(index.reader, spec, reach, 2)]
                assert paged == expected


@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(history=histories(), asked=st.lists(questions(), min_size=3, max_size=6), cut=st.integers(0, 6))
def test_event_search_is_the_model(history: Any, asked: Any, cut: int) -> None:
    with open_index() as index:
        model = build(index, history, False)
        with index.reader.snapshot():
            for sid, session in model.sessions.items():
                if session.state.error is not None:
                    continue
                for spec, reach in asked:
                    reach = attrs.evolve(reach, cuts={sid: cut} if cut < 6 else {})
                    expected = model.search_events(spec, reach, sid)
                    found = index.reader.search_events(spec, reach, sid)
                    assert [(hit.tier, hit.seq) for hit in found.hits] == expected
                    after, paged = None, []
                    while True:
                        page = index.reader.search_events(
                            attrs.evolve(spec, limit=1, after=after), reach, sid
                        )
                        paged += [(hit.tier, hit.seq) for hit in page.hits]
                        if not page.more:
                            break
                        after = page.hits[-1].position
                    assert paged == expected
