"""SPEC 6.9 and 16.1.6: cursors and the fingerprint they are bound to."""

from __future__ import annotations

import base64
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.cursor import Binding, Position, decode_cursor, encode_cursor
from session_query.protocol.errors import Code, QueryError
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
from session_query.protocol.fingerprint import fingerprint

BINDING = Binding("engine-1", "sessions", "f" * 32)
POSITION = Position("words", (-0.123456, 1700000000000, "s\ud800-ü", 17))


def pack(payload: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


def unpack(cursor: str) -> dict[str, object]:
    return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))  # type: ignore[no-any-return]


GOOD = unpack(encode_cursor(BINDING, "g1", POSITION))


@given(
    st.sampled_from(["exact", "words", "session", "some"]),
    st.lists(
        st.one_of(
            st.text(max_size=8),
            st.integers(-(2**53) + 1, 2**53 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=5,
    ),
    st.text(max_size=10),
)
def test_a_cursor_comes_back_as_it_was(tier: str, keys: list[int | float | str], generation: str) -> None:
    position = Position(tier, tuple(keys))  # type: ignore[arg-type]
    cursor = decode_cursor(encode_cursor(BINDING, generation, position), BINDING)
    assert cursor.at(generation) == position
    assert [type(key) for key in cursor.position.keys] == [type(key) for key in keys]


def test_6_9_5_another_generation_is_stale() -> None:
    cursor = decode_cursor(encode_cursor(BINDING, "g1", POSITION), BINDING)
    assert cursor.at("g1") == POSITION
    with pytest.raises(QueryError) as caught:
        cursor.at("g2")
    assert caught.value.code is Code.STALE_CURSOR


@pytest.mark.parametrize(
    "other",
    [
        Binding("engine-2", "sessions", "f" * 32),
        Binding("engine-1", "events", "f" * 32),
        Binding("engine-1", "sessions", "e" * 32),
    ],
)
def test_6_9_4_another_engine_scope_or_request_is_invalid_not_stale(other: Binding) -> None:
    with pytest.raises(QueryError) as caught:
        decode_cursor(encode_cursor(BINDING, "g1", POSITION), other)
    assert caught.value.code is Code.INVALID_CURSOR


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "!!!!",
        "é",
        "a" * 100_000,
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        pack([]),
        pack("text"),
        pack(None),
        pack(5),
        base64.urlsafe_b64encode(b"[" * 40_000).decode(),
        base64.urlsafe_b64encode(b'{"v":NaN}').decode(),
        pack(GOOD | {"v": 2}),
        pack(GOOD | {"v": True}),
        pack(GOOD | {"v": 1.0}),
        pack(GOOD | {"i": None}),
        pack(GOOD | {"g": 1}),
        pack(GOOD | {"t": "best"}),
        pack(GOOD | {"t": ["exact"]}),
        pack(GOOD | {"k": "abc"}),
        pack(GOOD | {"k": [None]}),
        pack(GOOD | {"k": [True]}),
        pack(GOOD | {"k": [2**53]}),
        pack(GOOD | {"k": [[1]]}),
        pack({key: value for key, value in GOOD.items() if key != "k"}),
        pack(GOOD).replace("e", "+", 1),
    ],
)
def test_6_9_4_what_does_not_decode_is_invalid(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        decode_cursor(text, BINDING)
    assert caught.value.code is Code.INVALID_CURSOR


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_6_9_4_no_text_raises_anything_else(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        decode_cursor(text, BINDING)
    assert caught.value.code is Code.INVALID_CURSOR


# ---- fingerprint ----

NUMBERS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([0.5, 5e-324]))
NAMES = st.lists(st.sampled_from(["a", "b", "a,b", "null"]), max_size=3).map(tuple)
NAMES_OR_NULL = st.lists(st.sampled_from(["a", "null", None]), max_size=3).map(tuple)
SESSION_CLAUSES = st.lists(
    st.one_of(
        st.builds(IdClause, NAMES),
        st.builds(CwdClause, NAMES_OR_NULL),
        st.builds(ParentClause, NAMES_OR_NULL),
        st.builds(CreatedAtClause, NUMBERS, NUMBERS),
        st.builds(
            AvailabilityClause, st.sampled_from([(), ("live",), ("persisted",), ("live", "persisted")])
        ),
    ),
    max_size=3,
)
EVENT_CLAUSES = st.lists(
    st.one_of(
        st.builds(SeqClause, NUMBERS, NUMBERS),
        st.builds(TimeClause, NUMBERS, NUMBERS),
        st.builds(TypeClause, NAMES),
        st.builds(SurfaceClause, st.sampled_from([(), ("current",), ("shadowed", "current")])),
    ),
    max_size=3,
)


def meaning(clauses: list[SessionClause | EventClause]) -> list[str]:
    """The slow model: the multiset of clauses, each the multiset of its values."""
    shown = []
    for clause in clauses:
        if hasattr(clause, "values"):
            shown.append(f"{type(clause).__name__} {sorted(map(repr, clause.values))}")
        else:
            shown.append(repr(clause))
    return sorted(shown)


@settings(max_examples=200)
@given(SESSION_CLAUSES, EVENT_CLAUSES, SESSION_CLAUSES, EVENT_CLAUSES)
def test_6_9_2_equal_exactly_when_the_clauses_mean_the_same(
    s1: list[SessionClause], e1: list[EventClause], s2: list[SessionClause], e2: list[EventClause]
) -> None:
    def of(sessions: list[SessionClause], events: list[EventClause]) -> str:
        return fingerprint(
            scope="sessions", query="q", limit=20, session_clauses=sessions, event_clauses=events
        )

    same = meaning([*s1]) == meaning([*s2]) and meaning([*e1]) == meaning([*e2])
    assert (of(s1, e1) == of(s2, e2)) == same
    assert of(s1[::-1], e1[::-1]) == of(s1, e1)


def test_6_9_2_every_part_counts() -> None:
    base: dict[str, object] = {"scope": "events", "query": "q", "limit": 20}
    variants: list[dict[str, object]] = [
        {},
        {"scope": "sessions"},
        {"query": "Q"},
        {"query": "q\ud800"},
        {"limit": 21},
        {"match": "auto"},
        {"target": "s"},
        {"target": ""},
        {"reach": ()},
        {"reach": ("/a",)},
        {"reach": ("/a", "/b")},
        {"event_clauses": [TypeClause(("a",))]},
        {"event_clauses": [TypeClause(("a", "a"))]},
        {"event_clauses": [SeqClause(4, None)]},
        {"event_clauses": [SeqClause(None, 4)]},
        {"event_clauses": [TimeClause(4, None)]},
        {"session_clauses": [IdClause(("a",))]},
        {"session_clauses": [ParentClause(("null",))]},
        {"session_clauses": [ParentClause((None,))]},
    ]
    prints = [fingerprint(**(base | variant)) for variant in variants]  # type: ignore[arg-type]
    assert all(a != b for a, b in itertools.combinations(prints, 2))


def test_6_9_2_order_and_number_form_do_not_count() -> None:
    one = fingerprint(
        scope="sessions", query="q", limit=5, session_clauses=[IdClause(("a", "b"))], reach=("/b", "/a")
    )
    two = fingerprint(
        scope="sessions", query="q", limit=5, session_clauses=[IdClause(("b", "a"))], reach=("/a", "/b")
    )
    assert one == two
    whole = fingerprint(scope="events", query="q", limit=5, event_clauses=[SeqClause(4, 5)])
    assert whole == fingerprint(scope="events", query="q", limit=5, event_clauses=[SeqClause(4.0, 5.0)])
