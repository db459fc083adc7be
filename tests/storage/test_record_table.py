"""The tables of a mapper's state: by columns and back, in order, whatever they hold."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.storage.readers.record_table import CallRows, CallTable, Entry, RecordRows, RecordTable

entries = st.builds(
    Entry,
    lane=st.integers(-1, 128),
    first=st.integers(0, 2**40),
    anchor=st.integers(-(2**40), 2**40),
    nodes=st.integers(0, 9),
    digest=st.integers(0, 2**32 - 1),
)


@given(st.lists(st.tuples(st.text(max_size=3), entries), max_size=12), st.integers(1, 6))
def test_records_come_back_with_what_is_forgotten_next(put: list[tuple[str, Entry]], limit: int) -> None:
    table = RecordTable(RecordRows(), limit)
    for name, entry in put:
        table.put(name, entry)
    packed = msgspec.msgpack.encode(table.rows())
    again = RecordTable(msgspec.msgpack.decode(packed, type=RecordRows), limit)
    names = [name for name, _ in put]
    assert [again.get(name) for name in names] == [table.get(name) for name in names]
    for one in (table, again):
        one.put("the next", Entry(0, 1, 1, 0, 5))
    assert [again.get(name) for name in names] == [table.get(name) for name in names]


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2), st.integers(0, 2**40)), max_size=12))
def test_calls_come_back(put: list[tuple[int, str, int]]) -> None:
    table = CallTable(CallRows(), 5)
    for lane, name, seq in put:
        table.put(lane, name, seq)
    again = CallTable(msgspec.msgpack.decode(msgspec.msgpack.encode(table.rows()), type=CallRows), 5)
    assert [again.get(lane, name) for lane, name, _ in put] == [
        table.get(lane, name) for lane, name, _ in put
    ]


def test_columns_of_unlike_length_are_no_state() -> None:
    with pytest.raises(ValueError, match="zip"):
        RecordTable(RecordRows(b"123456", b"1234", [0], [1], [0], []))
    with pytest.raises(ValueError, match="zip"):
        CallTable(CallRows(b"123456", []))
