"""SPEC 1.4-1.6, 2.10, 3.2, 5.1: a log is what its writer made of it; what nobody knows is carried.

Turns without ends, steps without turns, calls nobody answered, types and blocks and sources of tomorrow:
every query answers, at both doors; only contiguity and section 2 gate one.
"""

from __future__ import annotations

from typing import Any

import pytest

from session_query import Event
from session_query.protocol.json_value import JSON
from support.doors import World
from support.events import assistant, event, text_block, tool_call, user
from support.sessions import log

WORD = "quokka"


def unbalanced() -> list[Event]:
    """No turn ever starts, two steps do, and one call is answered by nobody."""
    return log(
        event("turn/end", 0, {"turn": 7, "reason": {"kind": "completed"}}),
        event("step/start", 0, {"turn": 3, "step": 9}),
        event("step/start", 0, {"turn": 1, "step": 1}),
        user(0, text_block(f"{WORD} outside of every turn")),
        assistant(0),  # 2.10: empty content is a node like any other
        tool_call(0, "c9"),
        event("turn/end", 0, {"turn": 1, "reason": {"kind": "of tomorrow", "text": WORD}}),
        event("turn/start", 0, {"turn": 1}),
    )


def of_tomorrow() -> list[Event]:
    """Types, blocks, sources and reasons that no version of ours has heard of (1.4.2-1.4.4, 1.5.1)."""
    block: JSON = {"type": "hologram", "text": WORD, "content": [text_block(WORD)]}
    return log(
        event("robot/moved", 0, {"text": WORD, "content": [text_block(WORD)]}),
        event("session/anything", 0, {"title": WORD}),
        user(0, block, text_block("a known block beside it"), kind="an extension"),
        assistant(0, block, {"type": "reasoning", "text": WORD}, {"type": "image", "attachment": WORD}),
        event("plan/mode", 0, {"text": WORD}),
        event("turn/end", 0, {"turn": 1, "reason": {"kind": "blocked", "message": WORD}}),
    )


QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("list_events", {}),
    ("read_surface", {}),
    ("read_session", {}),
    ("read_event", {"seq": 3, "before": 3, "after": 2}),
    ("trace_event", {"seq": 3}),
    ("trace_session", {}),
    ("read_title", {}),
    ("filter_events", {"filters": []}),
    ("search_events", {"query": WORD}),
]


@pytest.mark.parametrize("make", [unbalanced, of_tomorrow])
async def test_1_6_3_and_1_5_1_every_query_answers(either: World, make: Any) -> None:
    await either.door.publish("x", make())
    for method, params in QUERIES:
        answer = await either.door.query(method, {"session_id": "x", **params})
        assert answer.code is None, (method, answer)
    for tool, arguments in (("session_event_read", {"seq": 3}), ("session_event_trace", {"seq": 2})):
        assert (await either.door.call(tool, {"session_id": "x", **arguments})).code is None


async def test_1_6_3_an_unbalanced_log_is_found_and_kept_as_it_is(either: World) -> None:
    await either.door.publish("x", unbalanced())
    assert (await either.door.query("search_sessions", {"query": WORD})).ids() == ["x"]
    value = (await either.door.query("list_events", {"session_id": "x"})).value
    assert [row["type"] for row in value["events"]] == [one.type for one in unbalanced()]
    surface = (await either.door.query("read_surface", {"session_id": "x"})).value
    assert [row["seq"] for row in surface["events"]] == [3, 4]


async def test_3_2_what_nobody_knows_is_filterable_and_finds_nothing(either: World) -> None:
    await either.door.publish("x", of_tomorrow())
    assert (await either.door.query("search_sessions", {"query": WORD, "match": "some"})).ids() == []
    assert (await either.door.query("search_sessions", {"query": "known block"})).ids() == ["x"]
    value = (await either.door.query("list_events", {"session_id": "x"})).value
    assert [(row["seq"], row["surface"]) for row in value["events"] if row["surface"] != "current"] == [
        (0, "log-only"),
        (1, "log-only"),
        (4, "log-only"),
        (5, "log-only"),
    ]
    whole = (await either.door.query("read_session", {"session_id": "x"})).value
    assert [row["data"] for row in whole["events"]] == [one.data for one in of_tomorrow()]


async def test_5_1_an_empty_list_of_values_matches_nothing(either: World) -> None:
    await either.door.publish("x", unbalanced())
    for kind in ("id", "cwd", "parent"):
        answer = await either.door.query("filter_sessions", {"filters": [{"kind": kind, "values": []}]})
        assert answer.ids() == []
    filters = [{"kind": "type", "values": []}]
    found = await either.door.query("filter_events", {"session_id": "x", "filters": filters})
    assert found.value["events"] == []
    searched = await either.door.query("search_sessions", {"query": WORD, "event_filters": filters})
    assert searched.ids() == []
