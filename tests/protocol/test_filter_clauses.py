"""SPEC 5: what a filter list may hold, and what it matches."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.errors import Code, QueryError
from session_query.protocol.filters import (
    AvailabilityClause,
    CreatedAtClause,
    CwdClause,
    IdClause,
    ParentClause,
    SeqClause,
    SurfaceClause,
    TextClause,
    TimeClause,
    TypeClause,
    parse_event_filters,
    parse_session_filters,
)
from session_query.protocol.header import SessionHeader
from session_query.protocol.predicates import event_predicate, session_predicate, text_matches
from session_query.protocol.records import EventDocument, SessionRecord

NAN, INF = math.nan, math.inf


def record(
    name: str = "s", *, cwd: str | None = "/w", parent: str | None = None, at: int = 5, live: bool = True
) -> SessionRecord:
    header = SessionHeader(id=name, created_at=at, cwd=cwd, parent_session=parent)
    return SessionRecord(header=header, live=live, persisted=not live)


def document(seq: int = 3, *, time: int = 9, kind: str = "user/message", text: str = "x") -> EventDocument:
    return EventDocument(session_id="s", seq=seq, type=kind, time=time, surface="current", text=text)


@pytest.mark.parametrize(
    ("raw", "clause"),
    [
        ({"kind": "id", "values": ["a", "b"]}, IdClause(("a", "b"))),
        ({"kind": "id", "values": []}, IdClause(())),
        ({"kind": "cwd", "values": ["/w", None]}, CwdClause(("/w", None))),
        ({"kind": "parent", "values": [None]}, ParentClause((None,))),
        ({"kind": "created-at"}, CreatedAtClause(None, None)),
        ({"kind": "created-at", "from": 1.5, "to": 2}, CreatedAtClause(1.5, 2)),
        ({"kind": "created-at", "from": 4.0}, CreatedAtClause(4, None)),
        ({"kind": "availability", "values": ["live", "live"]}, AvailabilityClause(("live", "live"))),
        ({"kind": "id", "values": ["a"], "note": 1}, IdClause(("a",))),
    ],
)
def test_5_session_clauses(raw: object, clause: object) -> None:
    assert parse_session_filters([raw]) == (clause,)
    assert parse_session_filters((clause,)) == (clause,)


@pytest.mark.parametrize(
    ("raw", "clause"),
    [
        ({"kind": "seq", "from": 2, "to": 2}, SeqClause(2, 2)),
        ({"kind": "time", "to": -0.5}, TimeClause(None, -0.5)),
        ({"kind": "type", "values": ["never/heard"]}, TypeClause(("never/heard",))),
        ({"kind": "surface", "values": ["log-only"]}, SurfaceClause(("log-only",))),
        ({"kind": "text", "text": " a "}, TextClause(" a ")),
    ],
)
def test_5_event_clauses(raw: object, clause: object) -> None:
    assert parse_event_filters([raw], allow_text=True) == (clause,)
    assert parse_event_filters([clause], allow_text=True) == (clause,)


def test_16_8_an_absent_list_is_no_filter() -> None:
    assert parse_session_filters(None) == ()
    assert parse_event_filters(None, allow_text=False) == ()


SESSION_DEFECTS: list[object] = [
    "id",
    {"kind": "id", "values": ["a"]},
    7,
    [None],
    ["id"],
    [[]],
    [{}],
    [{"kind": None}],
    [{"kind": ["id"], "values": []}],
    [{"kind": "seq", "from": 1}],
    [{"kind": "ID", "values": []}],
    [{"kind": "id"}],
    [{"kind": "id", "values": None}],
    [{"kind": "id", "values": "a"}],
    [{"kind": "id", "values": {"a": 1}}],
    [{"kind": "id", "values": [None]}],
    [{"kind": "id", "values": [1]}],
    [{"kind": "cwd", "values": [False]}],
    [{"kind": "parent", "values": [["a"]]}],
    [{"kind": "availability", "values": ["Live"]}],
    [{"kind": "availability", "values": [None]}],
    [{"kind": "created-at", "from": 2, "to": 1}],
    [{"kind": "created-at", "from": 2.5, "to": 2}],
    [{"kind": "created-at", "from": NAN}],
    [{"kind": "created-at", "to": INF}],
    [{"kind": "created-at", "to": -INF}],
    [{"kind": "created-at", "from": True}],
    [{"kind": "created-at", "from": "1"}],
    [{"kind": "created-at", "from": None}],
    [{"kind": "created-at", "to": 10**400}],
    [CreatedAtClause(NAN, None)],
    [CreatedAtClause(2, 1)],
    [IdClause(("a", 1))],  # type: ignore[arg-type]
    [SeqClause(1, 2)],
]


@pytest.mark.parametrize("raw", SESSION_DEFECTS)
def test_5_3_session_defects(raw: object) -> None:
    with pytest.raises(QueryError) as caught:
        parse_session_filters(raw)
    assert caught.value.code is Code.INVALID_FILTER


EVENT_DEFECTS: list[object] = [
    "seq",
    [None],
    [{"kind": "id", "values": ["a"]}],
    [{"kind": "seq", "from": 3, "to": 2}],
    [{"kind": "time", "from": NAN}],
    [{"kind": "type", "values": [None]}],
    [{"kind": "surface", "values": ["log"]}],
    [{"kind": "text"}],
    [{"kind": "text", "text": 1}],
    [{"kind": "text", "text": " \ufeff\u3000"}],
    [IdClause(("a",))],
    [TextClause("")],
]


@pytest.mark.parametrize("raw", EVENT_DEFECTS)
def test_5_3_event_defects(raw: object) -> None:
    with pytest.raises(QueryError) as caught:
        parse_event_filters(raw, allow_text=True)
    assert caught.value.code is Code.INVALID_FILTER


@pytest.mark.parametrize("raw", [{"kind": "text", "text": "a"}, TextClause("a")])
def test_6_1_a_search_takes_no_text_clause(raw: object) -> None:
    with pytest.raises(QueryError) as caught:
        parse_event_filters([raw], allow_text=False)
    assert caught.value.code is Code.INVALID_FILTER


def test_0_the_result_is_detached() -> None:
    values = ["a"]
    raw = [{"kind": "id", "values": values}]
    clauses = parse_session_filters(raw)
    values.append("b")
    raw.clear()
    assert clauses == (IdClause(("a",)),)


@given(st.integers(), st.integers(-(2**53) + 1, 2**53 - 1))
def test_a_wide_bound_keeps_its_order_against_every_safe_integer(bound: int, value: int) -> None:
    if abs(bound) > 2**1000:
        return
    (clause,) = parse_event_filters([{"kind": "time", "from": bound}], allow_text=False)
    assert event_predicate((clause,))(document(time=value)) == (value >= bound)


SESSIONS = {
    "child": record("child", parent="root", at=10),
    "root": record("root", at=0, live=False),
    "homeless": record("homeless", cwd=None, at=5),
}


@pytest.mark.parametrize(
    ("clauses", "found"),
    [
        ([], {"child", "root", "homeless"}),
        ([{"kind": "id", "values": ["root", "none"]}], {"root"}),
        ([{"kind": "id", "values": []}], set()),
        ([{"kind": "cwd", "values": [None]}], {"homeless"}),
        ([{"kind": "cwd", "values": ["/w"]}], {"child", "root"}),
        ([{"kind": "cwd", "values": ["/w/"]}], set()),
        ([{"kind": "parent", "values": [None]}], {"root", "homeless"}),
        ([{"kind": "parent", "values": ["root", None]}], {"child", "root", "homeless"}),
        ([{"kind": "created-at"}], {"child", "root", "homeless"}),
        ([{"kind": "created-at", "from": 5, "to": 5}], {"homeless"}),
        ([{"kind": "created-at", "from": 4.5, "to": 9.5}], {"homeless"}),
        ([{"kind": "availability", "values": ["live"]}], {"child", "homeless"}),
        ([{"kind": "availability", "values": []}], set()),
        ([{"kind": "availability", "values": ["live", "persisted"]}], {"child", "root", "homeless"}),
        ([{"kind": "id", "values": ["root"]}, {"kind": "id", "values": ["child"]}], set()),
    ],
)
def test_5_what_session_clauses_match(clauses: list[object], found: set[str]) -> None:
    matches = session_predicate(parse_session_filters(clauses))
    assert {name for name, item in SESSIONS.items() if matches(item)} == found


@pytest.mark.parametrize(
    ("clause", "matched"),
    [
        ({"kind": "seq", "from": 3, "to": 3}, True),
        ({"kind": "seq", "from": 3.1}, False),
        ({"kind": "time", "to": 8.9}, False),
        ({"kind": "time", "from": 9}, True),
        ({"kind": "type", "values": ["user/message"]}, True),
        ({"kind": "type", "values": ["user"]}, False),
        ({"kind": "surface", "values": ["shadowed"]}, False),
        ({"kind": "surface", "values": ["shadowed", "current"]}, True),
        ({"kind": "text", "text": "X"}, True),
    ],
)
def test_5_what_event_clauses_match(clause: object, matched: bool) -> None:
    assert event_predicate(parse_event_filters([clause], allow_text=True))(document()) == matched


@pytest.mark.parametrize(
    ("query", "text", "matched"),
    [
        ("AI", "BRAID", True),
        ("ss", "straße", False),
        ("ẞ", "straße", True),
        ("STRASSE", "strasse", True),
        ("i", "İ", False),
        ("İ", "i", False),
        ("cafe", "café", False),
        ("é", "e\u0301", False),
        (" a  b ", "xa \n\u3000b", True),
        ("a b", "ab", False),
        ("a b", "b a", False),
        ("a\x85b", "a b", False),
        ("a.*b", "axxb", False),
        ("(a|b)[c]$^\\d", "-(A|B)[C]$^\\D-", True),
        ("a\ufeffb", "A\tB", True),
    ],
)
def test_5_6_literal_scan(query: str, text: str, matched: bool) -> None:
    assert text_matches(query, text) == matched
    predicate = event_predicate((TextClause(query),))
    assert predicate(document(text=text)) == matched
