"""SPEC 6.1, 6.2, 6.8, 6.13, 8.4, 16.8: what a request may be, and which defect wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from session_query.protocol.errors import Code, QueryError
from session_query.protocol.filters import IdClause
from session_query.protocol.limits import (
    SearchLimits,
    check_limit,
    check_search_limits,
    check_window,
    validate_search_events,
    validate_search_sessions,
)
from session_query.protocol.query import normalise_query
from session_query.protocol.records import EventSearchRequest, SessionSearchRequest

DEFECTS: list[tuple[str, object, Code]] = [
    ("session_filters", "no list", Code.INVALID_FILTER),
    ("event_filters", [None], Code.INVALID_FILTER),
    ("match", "fuzzy", Code.INVALID_FILTER),
    ("cursor", 7, Code.INVALID_CURSOR),
    ("query", " ", Code.INVALID_QUERY),
    ("limit", 0, Code.INVALID_LIMIT),
]


def code_of(call: Callable[[], object]) -> Code:
    with pytest.raises(QueryError) as caught:
        call()
    return caught.value.code


def test_a_sound_request() -> None:
    values = ["b", "a"]
    request = SessionSearchRequest(
        query=" two\u3000 words ", session_filters=[{"kind": "id", "values": values}], limit=4.0
    )
    valid = validate_search_sessions(request)
    values.append("c")
    assert (valid.query, valid.limit, valid.match, valid.cursor) == ("two words", 4, "exact", None)
    assert valid.session_clauses == (IdClause(("b", "a")),)


@pytest.mark.parametrize("first", range(len(DEFECTS)))
def test_6_1_1_the_first_defect_wins_in_a_session_search(first: int) -> None:
    fields: dict[str, Any] = {"query": "q"} | {name: value for name, value, _ in DEFECTS[first:]}
    request = SessionSearchRequest(**fields)
    assert code_of(lambda: validate_search_sessions(request)) is DEFECTS[first][2]


@pytest.mark.parametrize("first", range(1, len(DEFECTS)))
def test_6_1_1_the_first_defect_wins_in_an_event_search(first: int) -> None:
    fields: dict[str, Any] = {"query": "q", "session_id": "s"} | {
        name: value for name, value, _ in DEFECTS[first:]
    }
    request = EventSearchRequest(**fields)
    assert code_of(lambda: validate_search_events(request)) is DEFECTS[first][2]


@pytest.mark.parametrize("target", [None, 7, ["s"], b"s"])
def test_6_1_1_the_target_comes_first(target: object) -> None:
    request = EventSearchRequest(session_id=target, query=" ", limit=0, cursor=7)
    assert code_of(lambda: validate_search_events(request)) is Code.INVALID_FILTER


def test_16_8_the_budget_comes_last() -> None:
    limits = SearchLimits(values_max=2)
    filters = [{"kind": "id", "values": ["a", "b", "c"]}]
    bad_limit = SessionSearchRequest(query="q", session_filters=filters, limit=0)
    assert code_of(lambda: validate_search_sessions(bad_limit, limits)) is Code.INVALID_LIMIT
    over = SessionSearchRequest(query="q", session_filters=filters)
    assert code_of(lambda: validate_search_sessions(over, limits)) is Code.INVALID_FILTER


def test_6_8_the_minima_are_accepted_and_the_absurd_is_refused() -> None:
    def request(count: int) -> SessionSearchRequest:
        values = [str(number) for number in range(count)]
        return SessionSearchRequest(query="q", session_filters=[{"kind": "id", "values": values}])

    assert len(validate_search_sessions(request(32_766)).session_clauses[0].values) == 32_766  # type: ignore[union-attr]
    assert code_of(lambda: validate_search_sessions(request(125_000))) is Code.INVALID_FILTER


@pytest.mark.parametrize(
    ("clause", "weight"),
    [
        ({"kind": "seq"}, 0),
        ({"kind": "seq", "from": 1}, 1),
        ({"kind": "time", "from": 1, "to": 2}, 2),
        ({"kind": "type", "values": ["a", "b"]}, 1),
        ({"kind": "surface", "values": []}, 1),
    ],
)
def test_6_8_event_predicates(clause: object, weight: int) -> None:
    request = EventSearchRequest(session_id="s", query="q", event_filters=[clause] * 3)
    validate_search_events(request, SearchLimits(predicates_max=3 * weight))
    if weight:
        limits = SearchLimits(predicates_max=3 * weight - 1)
        assert code_of(lambda: validate_search_events(request, limits)) is Code.INVALID_FILTER


@pytest.mark.parametrize(
    ("values", "weight"), [(["live"], 1), ([], 1), (["live", "live"], 1), (["live", "persisted"], 0)]
)
def test_6_8_availability_weighs_only_when_it_narrows(values: list[str], weight: int) -> None:
    filters = [{"kind": "availability", "values": values}]
    request = SessionSearchRequest(query="q", session_filters=filters)
    validate_search_sessions(request, SearchLimits(predicates_max=weight))
    if weight:
        assert (
            code_of(lambda: validate_search_sessions(request, SearchLimits(predicates_max=0)))
            is Code.INVALID_FILTER
        )


@pytest.mark.parametrize("match", ["auto", "exact", "words", "some"])
def test_16_1_6_match(match: str) -> None:
    assert validate_search_sessions(SessionSearchRequest(query="q", match=match)).match == match


@pytest.mark.parametrize("limit", [0, -1, 101, 1.5, True, False, "5", [5], 2**60, float("nan"), float("inf")])
def test_6_1_2_limits_are_refused_not_clamped(limit: object) -> None:
    assert code_of(lambda: check_limit(limit)) is Code.INVALID_LIMIT


@pytest.mark.parametrize(("limit", "meant"), [(None, 20), (1, 1), (100, 100), (4.0, 4)])
def test_6_1_2_limits_that_pass(limit: object, meant: int) -> None:
    assert check_limit(limit) == meant


def test_16_8_a_null_cursor_is_an_invalid_cursor_but_an_absent_one_is_none() -> None:
    absent = SessionSearchRequest(query="q")
    assert validate_search_sessions(absent).cursor is None
    null = SessionSearchRequest(query="q", cursor=None, has_cursor=True)
    assert code_of(lambda: validate_search_sessions(null)) is Code.INVALID_CURSOR


@pytest.mark.parametrize("window", [(-1, 0), (0, 51), (None, 0), (0, True), (1.5, 0), ("1", 0)])
def test_8_4_windows(window: tuple[object, object]) -> None:
    assert code_of(lambda: check_window(*window, 50)) is Code.INVALID_WINDOW
    assert check_window(50, 4.0, 50) == (50, 4)


@pytest.mark.parametrize("pair", [(0, 1), (2, 1), (1, 2**53 - 1), (True, 2), (1, None), (1.0, 2)])
def test_6_13_page_size_settings(pair: tuple[object, object]) -> None:
    assert code_of(lambda: check_search_limits(*pair)) is Code.INVALID_CONFIG
    assert check_search_limits(1, 2**53 - 2) == SearchLimits(default_limit=1, max_limit=2**53 - 2)


@pytest.mark.parametrize(
    ("raw", "query"),
    [
        ("alpha", "alpha"),
        ("  a \r\n\u2003b\ufeff ", "a b"),
        ("a\x1cb\x85", "a\x1cb\x85"),
        ("\ufdd0x\ufdd1", "\ufffdx\ufffd"),
        ('"*" OR NEAR(', '"*" OR NEAR('),
        ("*", "*"),
    ],
)
def test_6_2_normalisation(raw: str, query: str) -> None:
    assert normalise_query(raw) == query


@pytest.mark.parametrize("raw", [None, 5, b"a", ["a"], "", " ", "\u3000\ufeff", "a\0b"])
def test_6_2_what_is_no_query(raw: object) -> None:
    assert code_of(lambda: normalise_query(raw)) is Code.INVALID_QUERY


def test_a_query_as_long_as_a_book_is_refused_last() -> None:
    book = "a " * 600_000
    with pytest.raises(QueryError) as caught:
        validate_search_sessions(SessionSearchRequest(query=book))
    assert caught.value.code is Code.INVALID_FILTER
    with pytest.raises(QueryError) as caught:
        validate_search_events(EventSearchRequest(session_id="s", query=book, limit=0))
    assert caught.value.code is Code.INVALID_LIMIT
    assert validate_search_sessions(SessionSearchRequest(query="a" * 1_000_000)).query
