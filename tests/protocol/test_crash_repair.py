"""SPEC 1.7: the balanced view of a log whose writer died."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.repair_model import model_closers
from session_query.protocol.crash_repair import RepairTracker, repaired
from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON
from session_query.protocol.messages_shape import validate_log
from session_query.protocol.text import event_text
from support.events import assistant, call_block, event, tool_call, tool_result, user


def turn(seq: int, kind: str = "start") -> Event:
    return event(f"turn/{kind}", seq, {"turn": 1})


def step(seq: int, kind: str = "start") -> Event:
    return event(f"step/{kind}", seq, {"turn": 1, "step": 2})


def outline(closers: list[Event]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for closer in closers:
        data: Any = closer.data
        if closer.type == "tool/result":
            sources: Any = closer.source_event_seqs or [None]
            found.append(
                (closer.type, (data["message"]["source"]["callId"], data["error"]["code"], sources[0]))
            )
        else:
            found.append((closer.type, None))
    return found


STORED = [
    turn(0),
    user(1, "go"),
    step(2),
    assistant(3, call_block("c1"), call_block("c2")),
    tool_call(4, "c1"),
]


def test_first_example() -> None:
    view = repaired(STORED)
    assert view[:5] == STORED
    assert outline(view[5:]) == [
        ("tool/result", ("c1", "TOOL_OUTCOME_UNKNOWN", 4)),
        ("tool/result", ("c2", "TOOL_NOT_STARTED", None)),
        ("step/end", None),
        ("turn/end", None),
    ]
    assert [e.seq for e in view] == list(range(9))
    assert {e.time for e in view[5:]} == {STORED[-1].time}
    assert view[7].data == {"turn": 1, "step": 2}
    assert view[8].data == {"turn": 1, "reason": {"kind": "interrupted"}}


def test_second_example() -> None:
    stored = [turn(0), step(1), tool_call(2, "x")]
    assert outline(repaired(stored)[3:]) == [("step/end", None), ("turn/end", None)]


def test_synthetic_results_are_events_like_any_other() -> None:
    unknown, not_started = repaired(STORED)[5:7]
    validate_log(repaired(STORED))
    data: Any = unknown.data
    assert (data["turn"], data["step"]) == (1, 1)
    assert unknown.surface_op == "append"
    block = data["message"]["content"][0]
    assert (block["isError"], block["toolCallId"], [b["type"] for b in block["content"]]) == (
        True,
        "c1",
        ["text"],
    )
    assert "verify" in event_text(unknown)
    assert event_text(unknown).endswith("ToolOutcomeUnknownError\nTOOL_OUTCOME_UNKNOWN")
    assert "safe to retry" in event_text(not_started)
    assert repaired(STORED) == repaired(STORED)
    ids = [e.data["message"]["id"] for e in (unknown, not_started)]  # type: ignore[index,call-overload]
    assert ids == ["interrupted-tool-result-c1-5", "interrupted-tool-result-c2-6"]


@pytest.mark.parametrize(
    "stored",
    [
        [],
        [user(0)],
        [turn(0), turn(1, "end")],
        [step(0), assistant(1, call_block("c"))],
        [turn(0), turn(1, "end"), step(2), assistant(3, call_block("c"))],
    ],
    ids=["empty", "no turn", "closed", "a step outside a turn", "a step after the turn"],
)
def test_without_an_open_turn_the_log_is_unchanged(stored: list[Event]) -> None:
    assert repaired(stored) == stored


@pytest.mark.parametrize(
    ("stored", "calls"),
    [
        ([turn(0), assistant(1, call_block("c")), tool_result(2, "c")], []),
        ([turn(0), assistant(1, call_block("c")), step(2, "end")], []),
        ([turn(0), assistant(1, call_block("c")), turn(2)], []),
        ([turn(0), assistant(1, call_block("b"), call_block("a")), tool_call(2, "a")], ["b", "a"]),
        ([turn(0), tool_call(1, "c"), assistant(2, call_block("c"))], ["c"]),
        ([assistant(0, call_block("c")), turn(1)], []),
    ],
    ids=[
        "answered",
        "step ended",
        "a new turn",
        "registration order",
        "call before registration",
        "before the turn",
    ],
)
def test_pending_calls(stored: list[Event], calls: list[str]) -> None:
    results = [e for e in repaired(stored)[len(stored) :] if e.type == "tool/result"]
    assert [e.data["message"]["source"]["callId"] for e in results] == calls  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    "data", [None, [], {"message": 1}, {"message": {"content": [1, {"type": "tool-call", "id": []}]}}]
)
def test_hostile_payloads(data: JSON) -> None:
    types = ["turn/start", "step/start", "assistant/message", "tool/call", "tool/result"]
    view = repaired([event(type_, seq, data) for seq, type_ in enumerate(types)])
    assert [e.type for e in view[5:]] == ["step/end", "turn/end"]
    assert view[6].data == {"turn": None, "reason": {"kind": "interrupted"}}


@pytest.mark.parametrize("state", [b"", b"[]", b"[1,2,[1],[1],[]]", b"[1,2,null,null,[[1,2,3,4]]]"])
def test_other_bytes_are_no_state(state: bytes) -> None:
    with pytest.raises(ValueError, match="not the state"):
        RepairTracker.restore(state)


def test_a_call_id_may_hold_anything() -> None:
    tracker = RepairTracker()
    for each in [turn(0), assistant(1, call_block("\ud800"))]:
        tracker.feed(each)
    assert outline(RepairTracker.restore(tracker.snapshot()).closers())[0] == (
        "tool/result",
        ("\ud800", "TOOL_NOT_STARTED", None),
    )


kinds = st.sampled_from(
    [
        "turn+",
        "turn-",
        "step+",
        "step-",
        "say a",
        "say b",
        "say ab",
        "call a",
        "call b",
        "done a",
        "done b",
        "user",
    ]
)


def made(seq: int, kind: str) -> Event:
    verb, _, names = kind.partition(" ")
    if verb == "say":
        return assistant(seq, *(call_block(name) for name in names))
    if verb == "call":
        return tool_call(seq, names)
    if verb == "done":
        return tool_result(seq, names)
    if verb == "user":
        return user(seq)
    return event(f"{verb[:-1]}/{'start' if verb[-1] == '+' else 'end'}", seq, {"turn": 1, "step": 1})


@given(st.lists(kinds, max_size=14), st.integers(0, 14))
@settings(max_examples=200)
def test_the_view_agrees_with_the_model(plan: list[str], cut: int) -> None:
    events = [made(seq, kind) for seq, kind in enumerate(plan)]
    view = repaired(events)
    assert view[: len(events)] == events
    assert outline(view[len(events) :]) == model_closers(events)
    assert [e.seq for e in view] == list(range(len(view)))
    assert repaired(view) == view
    validate_log(view)
    tracker = RepairTracker()
    for seq, each in enumerate(events):
        if seq == cut:
            tracker = RepairTracker.restore(tracker.snapshot())
        tracker.feed(each)
    assert tracker.closers() == view[len(events) :]
    assert tracker.open_turn == bool(tracker.closers())
