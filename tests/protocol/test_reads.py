"""SPEC 8: exact reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.errors import Code, CorruptLog, QueryError
from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.protocol.reads import (
    Window,
    check_window,
    event_number,
    list_events,
    read_log,
    read_surface,
    read_window,
)
from support.events import assistant, event, replace, user

HEADER = SessionHeader(id="s", created_at=0)
LOG = [
    event("turn/start", 0),
    user(1, "a"),
    assistant(2, "b"),
    user(3, "c", op=replace(1, 2), sources=[1, 2]),
    user(4),
]


def seqs(events: tuple[Event, ...]) -> list[int]:
    return [e.seq for e in events]


@pytest.mark.parametrize("size", [-1, 51, 0.5, "1", None, True, [], float("nan"), 2**60])
def test_windows_that_are_none(size: object) -> None:
    for before, after in ((size, 0), (0, size)):
        with pytest.raises(QueryError) as caught:
            check_window(before, after)
        assert caught.value.code is Code.INVALID_WINDOW


def test_windows() -> None:
    assert check_window() == Window(0, 0)
    assert check_window(50, 7.0) == Window(50, 7)
    assert check_window(0, 0, maximum=0) == Window(0, 0)
    with pytest.raises(QueryError):
        check_window(1, 0, maximum=0)


@pytest.mark.parametrize(
    ("seq", "before", "after", "first", "last"),
    [
        (2, 0, 0, 2, 2),
        (2, 1, 1, 1, 3),
        (0, 5, 1, 0, 1),
        (4, 1, 5, 3, 4),
        (2, 50, 50, 0, 4),
        (2.0, 0, 1, 2, 3),
    ],
)
def test_reading_a_window(seq: object, before: int, after: int, first: int, last: int) -> None:
    window = read_window(HEADER, LOG, seq, check_window(before, after))
    assert (window.header, window.first_seq, window.last_seq) == (HEADER, first, last)
    assert seqs(window.events) == list(range(first, last + 1))
    assert window.target == LOG[int(float(str(seq)))]


@pytest.mark.parametrize("seq", [-1, 5, 0.5, "1", None, True, 2**53])
def test_no_such_event(seq: object) -> None:
    with pytest.raises(QueryError) as caught:
        read_window(HEADER, LOG, seq, Window())
    assert caught.value.code is Code.EVENT_NOT_FOUND


def test_event_numbers() -> None:
    assert [event_number(0), event_number(4.0)] == [0, 4]
    for bad in (-1, 1.5, "1", None, True):
        with pytest.raises(QueryError) as caught:
            event_number(bad)
        assert caught.value.code is Code.EVENT_NOT_FOUND


def test_a_broken_surface_does_not_hide_an_event_and_a_gap_gives_no_wrong_one() -> None:
    broken = [user(0), user(1, op=None), user(3)]
    assert seqs(read_window(HEADER, broken, 1, Window(1, 0)).events) == [0, 1]
    for seq in (2, 3):
        with pytest.raises(QueryError) as caught:
            read_window(HEADER, broken, seq, Window())
        assert caught.value.code is Code.EVENT_NOT_FOUND


@given(st.integers(0, 9), st.integers(0, 12), st.integers(0, 12), st.integers(1, 10))
def test_bounds_stay_inside_the_log(seq: int, before: int, after: int, length: int) -> None:
    first, last = Window(before, after).bounds(seq, length)
    assert first >= 0
    assert last <= length - 1
    assert set(range(first, last + 1)) == {s for s in range(length) if seq - before <= s <= seq + after}


def test_listing_events() -> None:
    found = list_events(HEADER, LOG)
    assert [(r.session_id, r.seq, r.type, r.time) for r in found] == [
        ("s", e.seq, e.type, e.time) for e in LOG
    ]
    assert [r.surface for r in found] == ["log-only", "shadowed", "shadowed", "current", "current"]
    assert list_events(HEADER, []) == ()
    with pytest.raises(QueryError) as caught:
        list_events(HEADER, [user(0, op=None)])
    assert caught.value.code is Code.INVALID_SURFACE


def test_the_surface_comes_in_surface_order() -> None:
    log = [user(0), user(1), user(2, op=replace(0, 0), sources=[0]), event("x", 3)]
    view = read_surface(HEADER, log)
    assert (view.header, view.captured_through_seq, seqs(view.events)) == (HEADER, 3, [2, 1])
    empty = read_surface(HEADER, [])
    assert (empty.captured_through_seq, empty.events) == (None, ())
    with pytest.raises(QueryError) as caught:
        read_surface(HEADER, [user(1)])
    assert caught.value.code is Code.INVALID_SURFACE


def test_reading_a_whole_log() -> None:
    log = read_log(HEADER, LOG)
    assert (log.header, list(log.events)) == (HEADER, LOG)
    with pytest.raises(QueryError) as caught:
        read_log(HEADER, [user(0, op=None)])
    assert caught.value.code is Code.CORRUPT_SESSION
    assert isinstance(caught.value.__cause__, CorruptLog)


def test_results_share_nothing_with_the_log() -> None:
    data: dict[str, JSON] = {"id": "m", "role": "user", "source": {"kind": "user"}, "content": []}
    log = [Event(type="user/message", seq=0, time=0, data=data, surface_op="append")]
    window = read_window(HEADER, log, 0, Window())
    others = [read_surface(HEADER, log).events[0], read_log(HEADER, log).events[0]]
    data["id"] = "changed"
    for found in (window.target, *others):
        assert found.data["id"] == "m"  # type: ignore[index,call-overload]
    assert window.target is window.events[0]
