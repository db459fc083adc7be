"""SPEC 7.2: event traces, from events and from an index's skeletons."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.trace_model import model_trace
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.event import Event, Surface
from session_query.protocol.header import SessionHeader
from session_query.protocol.records import EventRecord, EventTrace
from session_query.protocol.traces import Relations, Skeleton, trace_event, trace_skeleton
from support.events import assistant, event, replace, tool_result, user

HEADER = SessionHeader(id="s", created_at=0)
LOG = [
    event("turn/start", 0),
    event("step/start", 1),
    event("assistant/chunk", 2),
    user(3, sources=[2]),
    assistant(4, op=replace(3, 3), sources=[3, 2]),
    user(5),
    event("step/end", 6),
    event("step/start", 7),
    assistant(8, op=replace(4, 4), sources=[2, 4]),
]


def skeletons(events: list[Event]) -> list[Skeleton]:
    return [
        Skeleton(
            seq=e.seq,
            type=e.type,
            time=e.time,
            surface_op=e.surface_op,
            source_event_seqs=e.source_event_seqs,
        )
        for e in events
    ]


def both(events: list[Event], seq: object) -> EventTrace:
    trace = trace_event(HEADER, events, seq)
    assert trace_skeleton(HEADER, skeletons(events), seq) == trace
    assert trace_skeleton(HEADER, events, seq) == trace
    return trace


@pytest.mark.parametrize(
    ("seq", "surface", "chain", "replaced", "sources", "derived"),
    [
        (3, "shadowed", [4, 8], [], [2], [4]),
        (4, "shadowed", [8], [3], [3, 2], [8]),
        (2, "log-only", [], [], [], [3, 4, 8]),
        (8, "current", [], [4], [2, 4], []),
        (5, "current", [], [], [], []),
        (0, "log-only", [], [], [], []),
    ],
)
def test_worked_example(
    seq: int, surface: Surface, chain: list[int], replaced: list[int], sources: list[int], derived: list[int]
) -> None:
    trace = both(LOG, seq)
    assert trace.header == HEADER
    target = EventRecord(session_id="s", seq=seq, type=LOG[seq].type, time=1000 + seq, surface=surface)
    assert trace.target == target
    assert trace.replaced_by == (chain[0] if chain else None)
    assert list(trace.replacement_chain) == chain
    assert list(trace.replaced_event_seqs) == replaced
    assert list(trace.source_event_seqs) == sources
    assert list(trace.derived_event_seqs) == derived


def test_replaced_nodes_come_in_surface_order() -> None:
    log = [
        user(0),
        user(1),
        user(2),
        user(3, op=replace(0, 1), sources=[0, 1]),
        user(4, op=replace(3, 2), sources=[2, 3]),
    ]
    assert both(log, 4).replaced_event_seqs == (3, 2)
    assert both(log, 4).source_event_seqs == (2, 3)
    assert both(log, 0).replacement_chain == (3, 4)


@pytest.mark.parametrize("seq", [-1, 9, 0.5, "0", None, True, 2**53, [0]])
def test_an_event_that_is_not_there_is_not_found_before_the_fold(seq: object) -> None:
    broken = [*LOG[:8], user(8, op=None)]
    for events in (LOG, broken, []):
        with pytest.raises(QueryError) as caught:
            trace_event(HEADER, events, seq)
        assert caught.value.code is Code.EVENT_NOT_FOUND
        with pytest.raises(QueryError) as caught:
            trace_skeleton(HEADER, skeletons(events), seq)
        assert caught.value.code is Code.EVENT_NOT_FOUND


def test_a_place_that_carries_another_seq_is_not_found() -> None:
    with pytest.raises(QueryError) as caught:
        trace_event(HEADER, [user(0), user(2)], 1)
    assert caught.value.code is Code.EVENT_NOT_FOUND


def test_a_broken_surface_anywhere_fails_the_trace() -> None:
    for log in ([user(0), user(1, op=None)], [user(0), user(2)]):
        with pytest.raises(QueryError) as caught:
            trace_event(HEADER, log, 0)
        assert caught.value.code is Code.INVALID_SURFACE


def test_a_whole_float_is_a_number() -> None:
    assert both(LOG, 3.0) == both(LOG, 3)


def test_a_long_chain() -> None:
    log = [tool_result(0, "c")] + [
        tool_result(i, "c", op=replace(i - 1, i - 1), sources=[i - 1]) for i in range(1, 5000)
    ]
    trace = both(log, 0)
    assert trace.replacement_chain == tuple(range(1, 5000))
    assert trace.derived_event_seqs == (1,)


@st.composite
def valid_logs(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = []
    surface: list[int] = []
    for seq in range(draw(st.integers(1, 12))):
        extra = draw(st.lists(st.integers(0, seq - 1), max_size=2, unique=True)) if seq else []
        choice = draw(st.integers(0, 3))
        if choice == 0:
            events.append(event("x/log", seq))
        elif choice == 1 and surface:
            first = draw(st.integers(0, len(surface) - 1))
            last = draw(st.integers(first, len(surface) - 1))
            removed = surface[first : last + 1]
            sources = removed + [source for source in extra if source not in removed]
            events.append(user(seq, op=replace(removed[0], removed[-1]), sources=list(sources)))
            surface[first : last + 1] = [seq]
        else:
            events.append(assistant(seq, sources=list(extra)))
            surface.append(seq)
    return events


@given(valid_logs(), st.integers(0, 11))
@settings(max_examples=200)
def test_traces_agree_with_the_model(events: list[Event], pick: int) -> None:
    seq = pick % len(events)
    trace = both(events, seq)
    surface, chain, replaced, sources, derived = model_trace(events, seq)
    assert trace.target.surface == surface
    assert list(trace.replacement_chain) == chain
    assert list(trace.replaced_event_seqs) == replaced
    assert list(trace.source_event_seqs) == sources
    assert list(trace.derived_event_seqs) == derived


def test_relations_weigh_what_they_keep() -> None:
    relations = Relations()
    relations.extend(LOG)
    assert len(relations) == 9
    assert relations.weight == 9 + 6 * (1 + 3 + 3)  # replaced and cited: by 3, by 4, by 8
