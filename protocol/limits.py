"""Validation of search requests, windows and page sizes, in the order that decides which error wins.

SPEC 6.1.1: target type, session filters, event filters (and ``match``, which narrows like one), cursor
is a string, query, limit; then, by SPEC 16.8, what the engine can run. All of it happens before the
first suspension point, and the result shares nothing with the request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn, cast

import attrs

from .errors import Code, QueryError
from .filters import (
    AvailabilityClause,
    CreatedAtClause,
    EventClause,
    SeqClause,
    SessionClause,
    TextClause,
    TimeClause,
    parse_event_filters,
    parse_session_filters,
)
from .json_value import SAFE_INTEGER_MAX, whole
from .query import normalise_query
from .records import EventSearchRequest, Match, SessionSearchRequest

MATCHES: Final[tuple[Match, ...]] = ("auto", "exact", "words", "some")


@attrs.frozen(kw_only=True)
class SearchLimits:
    """Page sizes (SPEC 6.13) and what the engine can run in one statement (SPEC 6.8, 16.8).

    The contract's numbers (14 predicates, 32,766 bound values) are minima. ``values_max`` bounds the
    memory one request may take, ``query_chars_max`` the time that taking a query apart takes (about 1 us a
    character, which no abort cuts short); ``predicates_max`` keeps a statement inside SQLite's expression
    depth.
    """

    default_limit: int = 20
    max_limit: int = 100
    predicates_max: int = 200
    values_max: int = 100_000
    query_chars_max: int = 1_000_000


@attrs.frozen(kw_only=True)
class ValidSessionSearch:
    query: str
    match: Match
    session_clauses: tuple[SessionClause, ...]
    event_clauses: tuple[EventClause, ...]
    limit: int
    cursor: str | None


@attrs.frozen(kw_only=True)
class ValidEventSearch:
    session_id: str
    query: str
    match: Match
    event_clauses: tuple[EventClause, ...]
    limit: int
    cursor: str | None


DEFAULT_LIMITS: Final = SearchLimits()


def validate_search_sessions(
    request: SessionSearchRequest, limits: SearchLimits = DEFAULT_LIMITS
) -> ValidSessionSearch:
    """Return the request, owned and validated.

    Raises: QueryError: INVALID_FILTER (session filters, event filters, match), INVALID_CURSOR,
    INVALID_QUERY, INVALID_LIMIT, INVALID_FILTER (budget), in this order (SPEC 6.1.1, 16.8).
    """
    session_clauses = parse_session_filters(request.session_filters)
    event_clauses = parse_event_filters(request.event_filters, allow_text=False)
    match = check_match(request.match)
    cursor = _check_cursor(request.cursor, request.has_cursor)
    query = normalise_query(request.query)
    limit = check_limit(request.limit, limits)
    check_budget((*session_clauses, *event_clauses), limits, query=query)
    return ValidSessionSearch(
        query=query,
        match=match,
        session_clauses=session_clauses,
        event_clauses=event_clauses,
        limit=limit,
        cursor=cursor,
    )


def validate_search_events(
    request: EventSearchRequest, limits: SearchLimits = DEFAULT_LIMITS
) -> ValidEventSearch:
    """Return the request, owned and validated.

    Raises: QueryError: INVALID_FILTER (target type, event filters, match), INVALID_CURSOR,
    INVALID_QUERY, INVALID_LIMIT, INVALID_FILTER (budget), in this order (SPEC 6.1.1, 16.8).
    """
    if type(request.session_id) is not str:
        raise QueryError(Code.INVALID_FILTER, "the target must be a session id")
    event_clauses = parse_event_filters(request.event_filters, allow_text=False)
    match = check_match(request.match)
    cursor = _check_cursor(request.cursor, request.has_cursor)
    query = normalise_query(request.query)
    limit = check_limit(request.limit, limits)
    check_budget(event_clauses, limits, query=query)
    return ValidEventSearch(
        session_id=request.session_id,
        query=query,
        match=match,
        event_clauses=event_clauses,
        limit=limit,
        cursor=cursor,
    )


def check_match(raw: object) -> Match:
    """Return the match mode; absent means ``exact`` for service requests (SPEC 16.1.6).

    Raises: QueryError: INVALID_FILTER for anything but the four words.
    """
    if raw is None:
        return "exact"
    if type(raw) is not str or raw not in MATCHES:
        raise QueryError(Code.INVALID_FILTER, "match must be auto, exact, words or some")
    return raw


def check_limit(raw: object, limits: SearchLimits = DEFAULT_LIMITS) -> int:
    """Return the page size; None means the default. Never clamped (SPEC 6.1.2).

    Raises: QueryError: INVALID_LIMIT unless it is a whole number in 1..``max_limit``.
    """
    if raw is None:
        return limits.default_limit
    limit = whole(raw)
    if type(limit) is not int or not 1 <= limit <= limits.max_limit:
        raise QueryError(Code.INVALID_LIMIT, f"the limit must be a whole number from 1 to {limits.max_limit}")
    return limit


def check_window(before: object, after: object, window_max: int) -> tuple[int, int]:
    """Return both sides of a read window.

    Raises: QueryError: INVALID_WINDOW unless each is a whole number in 0..``window_max`` (SPEC 8.4).
    """
    sides = whole(before), whole(after)
    for side in sides:
        if type(side) is not int or not 0 <= side <= window_max:
            raise QueryError(
                Code.INVALID_WINDOW, f"before and after must be whole numbers from 0 to {window_max}"
            )
    return cast("tuple[int, int]", sides)


def check_search_limits(default_limit: object, max_limit: object) -> SearchLimits:
    """Return page sizes from settings.

    Raises: QueryError: INVALID_CONFIG unless 1 <= default <= max <= 2^53 - 2, both integers (SPEC 6.13).
    """
    if type(default_limit) is not int or type(max_limit) is not int:
        _bad_config()
    if not 1 <= default_limit <= max_limit <= SAFE_INTEGER_MAX - 1:
        _bad_config()
    return SearchLimits(default_limit=default_limit, max_limit=max_limit)


def _bad_config() -> NoReturn:
    raise QueryError(Code.INVALID_CONFIG, "default_limit and max_limit must be integers, 1 <= default <= max")


def _check_cursor(raw: object, given: bool) -> str | None:
    if raw is None and not given:
        return None
    if type(raw) is not str:
        raise QueryError(Code.INVALID_CURSOR, "the cursor must be a string")
    return raw


def check_budget(
    clauses: Iterable[SessionClause | EventClause], limits: SearchLimits = DEFAULT_LIMITS, *, query: str = ""
) -> None:
    """Refuse what the engine cannot run: too many conditions or values, or a query as long as a book.

    Raises: QueryError: INVALID_FILTER (SPEC 6.8, 16.8).
    """
    if len(query) > limits.query_chars_max:
        raise QueryError(Code.INVALID_FILTER, f"a query of more than {limits.query_chars_max} characters")
    predicates = values = 0
    for clause in clauses:
        predicates += _predicates(clause)
        values += _bound_values(clause)
    if predicates > limits.predicates_max:
        raise QueryError(Code.INVALID_FILTER, f"more than {limits.predicates_max} filter conditions")
    if values > limits.values_max:
        raise QueryError(Code.INVALID_FILTER, f"more than {limits.values_max} filter values")


def _predicates(clause: SessionClause | EventClause) -> int:
    match clause:
        case CreatedAtClause(lower, upper) | SeqClause(lower, upper) | TimeClause(lower, upper):
            return (lower is not None) + (upper is not None)
        case AvailabilityClause(values):
            return 0 if len(set(values)) == 2 else 1
    return 1


def _bound_values(clause: SessionClause | EventClause) -> int:
    match clause:
        case CreatedAtClause() | SeqClause() | TimeClause():
            return _predicates(clause)
        case TextClause():
            return 1
    return len(clause.values)
