"""SPEC 10.5, 10.6: what the tools refuse by themselves, in their own words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import UNSET

from session_query.protocol.errors import Code, ToolError
from session_query.protocol.filters import IdClause, SeqClause, TimeClause, TypeClause
from session_query.protocol.tools import checks

NAMES = ("seq_from", "seq_to")


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (Code.INVALID_QUERY, lambda: checks.check_query(" \ufeff")),
        (Code.INVALID_QUERY, lambda: checks.check_query("a\0")),
        (Code.INVALID_FILTER, lambda: checks.id_clauses([])),
        (Code.INVALID_FILTER, lambda: checks.unique_parents([])),
        (Code.INVALID_FILTER, lambda: checks.availability_clauses([])),
        (Code.INVALID_FILTER, lambda: checks.type_clauses([])),
        (Code.INVALID_FILTER, lambda: checks.surface_clauses("surfaces", [])),
        (Code.INVALID_FILTER, lambda: checks.check_seq("seq", -1)),
        (Code.INVALID_FILTER, lambda: checks.check_seq("seq", 2**53)),
        (Code.INVALID_FILTER, lambda: checks.seq_range(NAMES, -1, UNSET)),
        (Code.INVALID_FILTER, lambda: checks.seq_range(NAMES, UNSET, 10**30)),
        (Code.INVALID_FILTER, lambda: checks.seq_range(NAMES, 3, 2)),
        (Code.INVALID_FILTER, lambda: checks.time_clauses(("a", "b"), "yesterday", UNSET)),
        (Code.INVALID_FILTER, lambda: checks.time_clauses(("a", "b"), UNSET, "2031-02-30T00:00Z")),
        (
            Code.INVALID_FILTER,
            lambda: checks.created_clauses(("a", "b"), "2031-01-01T00:00:00.0000002Z", "2031-01-01T00:00Z"),
        ),
    ],
)
def test_10_5_defects(code: Code, call: Callable[[], object]) -> None:
    with pytest.raises(ToolError) as caught:
        call()
    assert caught.value.code is code
    assert caught.value.message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_is_absent_makes_no_clause() -> None:
    assert checks.id_clauses(UNSET) == ()
    assert checks.type_clauses(UNSET) == ()
    assert checks.time_clauses(("a", "b"), UNSET, UNSET) == ()
    assert checks.seq_clauses(*checks.seq_range(NAMES, UNSET, UNSET)) == ()
    assert checks.unique_parents(UNSET) is None


def test_what_is_sound_becomes_a_clause() -> None:
    assert checks.check_query(" a  b ") == "a b"
    assert checks.id_clauses(["a", "a"]) == (IdClause(("a", "a")),)
    assert checks.type_clauses(["x/y"]) == (TypeClause(("x/y",)),)
    assert checks.seq_clauses(*checks.seq_range(NAMES, 2, 2)) == (SeqClause(2, 2),)
    assert checks.check_seq("seq", 2**53 - 1) == 2**53 - 1
    assert checks.unique_parents(["b", "a", "b"]) == ("b", "a")


def test_10_6_5_a_range_inside_one_millisecond_reaches_the_service() -> None:
    (clause,) = checks.time_clauses(
        ("a", "b"), "1970-01-01T00:00:00.0000001Z", "1970-01-01T00:00:00.0000009Z"
    )
    assert isinstance(clause, TimeClause)
    assert clause.lower is not None
    assert clause.upper is not None
    assert 0 < clause.lower < clause.upper < 1
