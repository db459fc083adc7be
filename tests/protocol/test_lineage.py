"""SPEC 7.1: lineage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.trace_model import Cycle, model_ancestors, model_descendants
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.header import SessionHeader
from session_query.protocol.records import Lineage, SessionRecord
from session_query.protocol.traces import trace_lineage


def record(id_: str, parent: str | None = None, created_at: int = 0) -> SessionRecord:
    header = SessionHeader(id=id_, created_at=created_at, parent_session=parent)
    return SessionRecord(header=header, live=False, persisted=True)


def ids(lineage: Lineage) -> tuple[list[str], list[tuple[int, str]]]:
    return [r.header.id for r in lineage.ancestors], [(d, r.header.id) for d, r in lineage.descendants]


FAMILY = [
    record("root"),
    record("a", "root", 2),
    record("b", "root", 1),
    record("aa", "a", 5),
    record("ab", "a", 5),
    record("ac", "a", 4),
    record("aba", "ab"),
    record("orphan", "gone"),
    record("orphans-child", "orphan"),
]


def test_ancestors_nearest_first_and_descendants_in_order_of_creation() -> None:
    lineage = trace_lineage("a", FAMILY)
    assert ids(lineage) == (["root"], [(1, "ac"), (1, "aa"), (1, "ab"), (2, "aba")])
    assert lineage.target == FAMILY[1]
    assert (lineage.complete, lineage.unresolved_parent_id, lineage.root) == (True, None, FAMILY[0])
    assert ids(trace_lineage("aba", FAMILY)) == (["ab", "a", "root"], [])


def test_a_root_is_its_own_root() -> None:
    lineage = trace_lineage("root", FAMILY)
    assert (lineage.complete, lineage.root, lineage.ancestors) == (True, FAMILY[0], ())
    assert [d for d, _ in lineage.descendants] == [1, 1, 2, 2, 2, 3]


def test_an_unresolved_parent_stops_the_walk() -> None:
    lineage = trace_lineage("orphans-child", FAMILY)
    assert ids(lineage) == (["orphan"], [])
    assert (lineage.complete, lineage.unresolved_parent_id, lineage.root) == (False, "gone", None)


def test_an_absent_target() -> None:
    for target in ("gone", ""):
        with pytest.raises(QueryError) as caught:
            trace_lineage(target, FAMILY)
        assert caught.value.code is Code.SESSION_NOT_FOUND


@pytest.mark.parametrize(
    ("target", "records"),
    [
        ("a", [record("a", "a")]),
        ("a", [record("a", "b"), record("b", "a")]),
        ("a", [record("a", "b"), record("b", "c"), record("c", "b")]),
        ("c", [record("a", "b"), record("b", "a"), record("c", "a")]),
    ],
    ids=["self", "two", "above", "entered from below"],
)
def test_a_cycle_among_the_ancestors_is_an_error(target: str, records: list[SessionRecord]) -> None:
    with pytest.raises(QueryError) as caught:
        trace_lineage(target, records)
    assert caught.value.code is Code.INVALID_LINEAGE


def test_a_cycle_elsewhere_is_not_seen() -> None:
    records = [
        record("t"),
        record("kid", "t"),
        record("x", "y"),
        record("y", "x"),
        record("z", "z"),
        record("xx", "x"),
    ]
    assert ids(trace_lineage("t", records)) == ([], [(1, "kid")])


def test_deep_and_wide_families() -> None:
    deep = [record("0"), *(record(str(i), str(i - 1)) for i in range(1, 10_001))]
    middle = trace_lineage("5000", deep)
    assert len(middle.ancestors) == len(middle.descendants) == 5000
    assert middle.root == deep[0]
    assert middle.descendants[-1] == (5000, deep[-1])
    wide = [record("0"), *(record(f"k{i:05}", "0", 10_000 - i) for i in range(10_000))]
    lineage = trace_lineage("0", wide)
    assert [r.header.created_at for _, r in lineage.descendants] == list(range(1, 10_001))


def test_of_equal_ids_the_first_counts() -> None:
    twins = [record("a", None), record("a", "a"), record("b", "a", 1), record("b", "x")]
    assert ids(trace_lineage("a", twins)) == ([], [(1, "b")])


def test_siblings_of_one_time_are_ordered_by_code_points() -> None:
    names = ["b", "B", "é", "a", "\U0001f600", "\uffff"]
    lineage = trace_lineage("0", [record("0"), *(record(name, "0") for name in names)])
    assert [r.header.id for _, r in lineage.descendants] == ["B", "a", "b", "é", "\uffff", "\U0001f600"]


@st.composite
def families(draw: st.DrawFn) -> list[SessionRecord]:
    size = draw(st.integers(1, 9))
    parents = st.one_of(st.none(), st.integers(0, size).map(str))
    return [record(str(i), draw(parents), draw(st.integers(0, 2))) for i in range(size)]


@given(families(), st.integers(0, 8))
@settings(max_examples=200)
def test_lineage_agrees_with_the_model(records: list[SessionRecord], pick: int) -> None:
    target = records[pick % len(records)].header.id
    expected: object
    try:
        ancestors, unresolved = model_ancestors(target, records)
        expected = (ancestors, model_descendants(target, records), unresolved)
    except Cycle:
        expected = Code.INVALID_LINEAGE
    assert _outcome(target, records) == expected


def _outcome(target: str, records: list[SessionRecord]) -> object:
    try:
        lineage = trace_lineage(target, records)
    except QueryError as exc:
        return exc.code
    assert lineage.complete is (lineage.unresolved_parent_id is None)
    return (*ids(lineage), lineage.unresolved_parent_id)
