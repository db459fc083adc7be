"""SPEC 3.3 and 16.1.7: documents, and searches that do not find searches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.documents import (
    TOOL_NAMES,
    Document,
    DocumentBuilder,
    build_documents,
    is_search_tool,
    searchable,
)
from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON
from session_query.protocol.surface import SurfaceError, fold
from session_query.protocol.text import event_text
from support.events import assistant, call_block, event, replace, text_block, tool_call, tool_result, user

SEARCH = "mcp__session-query__session_search"


def test_documents_of_all_surfaces_in_order() -> None:
    events = [
        event("turn/start", 0),
        user(1, "old"),
        assistant(2),
        tool_call(3, "c"),
        user(4, "new", op=replace(1, 2), sources=[1, 2]),
        event("x/y", 5, {"text": "no"}),
    ]
    assert build_documents(events) == [
        Document(seq=1, type="user/message", time=1001, surface="shadowed", text="old"),
        Document(seq=3, type="tool/call", time=1003, surface="log-only", text="grep\n{}"),
        Document(seq=4, type="user/message", time=1004, surface="current", text="new"),
    ]


def test_the_builder_tells_what_an_event_shadows() -> None:
    builder = DocumentBuilder()
    log = [user(0, "a"), assistant(1), user(2, "b", op=replace(0, 1), sources=[0, 1]), event("x/y", 3)]
    made = [(document and document.surface, builder.shadowed) for document in map(builder.feed, log)]
    assert made == [("current", ()), (None, ()), ("current", (0, 1)), (None, ())]
    assert len(builder) == 4


def test_a_refused_event_leaves_the_builder_unchanged() -> None:
    builder = DocumentBuilder()
    builder.feed(user(0, "a"))
    before = builder.snapshot()
    for bad in (user(2), user(1, op=None), assistant(1, call_block("c1", SEARCH), op=replace(0, 0))):
        with pytest.raises(SurfaceError):
            builder.feed(bad)
        assert builder.snapshot() == before


@pytest.mark.parametrize("name", TOOL_NAMES)
@pytest.mark.parametrize("prefix", ["", "mcp__session-query__", "sq:", "session-query."])
def test_the_five_tools_under_any_prefix(prefix: str, name: str) -> None:
    events = [
        assistant(0, call_block("c1", prefix + name, '{"query":"kraken"}')),
        tool_call(1, "c1", prefix + name, '{"query":"kraken"}'),
        tool_result(2, "c1", "kraken found"),
        tool_result(3, "c2", "kraken itself"),
    ]
    documents = build_documents(events)
    assert [d.is_search for d in documents] == [True, True, True, False]
    assert [d.text for d in documents] == [event_text(e) for e in events]
    assert [d.seq for d in searchable(documents, frozenset())] == [3]
    assert [d.seq for d in searchable(documents, frozenset(("tool/call",)))] == [1, 3]
    assert [d.seq for d in searchable(documents, frozenset(("assistant/message", "tool/result")))] == [
        0,
        2,
        3,
    ]


@pytest.mark.parametrize(
    "name", ["session_searcher", "search", "session_event", "Session_Search", 7, None, ["session_search"]]
)
def test_other_names_are_no_searches(name: JSON) -> None:
    assert not is_search_tool(name)


def test_an_answer_beside_a_search_stays_a_document_without_it() -> None:
    thinking: JSON = {"type": "reasoning", "text": "secret"}
    other = call_block("c2", "grep", "{x}")
    documents = build_documents(
        [
            assistant(0, "let me look", thinking, call_block("c1", SEARCH, '{"query":"q"}'), other),
            assistant(1, thinking, call_block("c3", SEARCH, "{}"), " "),
            tool_result(2, "c1", "one"),
            tool_result(3, "c2", "two"),
            tool_result(4, "c3", "three"),
        ]
    )
    assert [(d.seq, d.text, d.is_search) for d in documents] == [
        (0, "let me look\ngrep\n{x}", False),
        (1, f"{SEARCH}\n{{}}", True),
        (2, "one", True),
        (3, "two", False),
        (4, "three", True),
    ]


def test_a_result_inside_a_message_is_left_out_too() -> None:
    answer: JSON = {"type": "tool-result", "toolCallId": "c1", "content": [text_block("found")]}
    documents = build_documents(
        [
            user(0, answer),
            assistant(1, call_block("c1", SEARCH)),
            user(2, answer, "and now?"),
            user(3, answer),
            user(
                4,
                {"type": "tool-result", "toolCallId": "c9", "content": [answer, text_block("other")]},
                answer,
            ),
        ]
    )
    assert [(d.text, d.is_search) for d in documents] == [
        ("found", False),  # its call is not known
        (f"{SEARCH}\n{{}}", True),
        ("and now?", False),
        ("found", True),
        ("other", False),
    ]


def test_a_pruned_search_result_is_still_one() -> None:
    documents = build_documents(
        [
            tool_call(0, "c1", SEARCH),
            tool_result(1, "c1", "long"),
            tool_result(2, "c1", "short", op=replace(1, 1), sources=[1]),
        ]
    )
    assert [(d.text, d.is_search, d.surface) for d in documents[1:]] == [
        ("long", True, "shadowed"),
        ("short", True, "current"),
    ]


@pytest.mark.parametrize("call_id", [None, 5, ["c1"]])
def test_hostile_call_ids(call_id: JSON) -> None:
    block: JSON = {"type": "tool-call", "id": call_id, "name": SEARCH, "arguments": "{}"}
    result = event(
        "tool/result",
        2,
        {"message": {"source": {"callId": call_id}, "content": [text_block("t"), 4]}},
        op="append",
    )
    documents = build_documents(
        [assistant(0, block), event("tool/call", 1, {"name": SEARCH, "callId": call_id}), result]
    )
    assert [d.is_search for d in documents] == [True, True, False]


kinds = st.sampled_from(["say", "search", "both", "call", "result", "log"])


@given(st.lists(kinds, max_size=12), st.integers(0, 12))
@settings(max_examples=100)
def test_a_restored_builder_goes_on_as_if_never_stopped(plan: list[str], cut: int) -> None:
    events = [_made(seq, kind) for seq, kind in enumerate(plan)]
    whole, parts = DocumentBuilder(), DocumentBuilder()
    for seq, each in enumerate(events):
        if seq == cut:
            parts = DocumentBuilder.restore(parts.snapshot())
        assert parts.feed(each) == whole.feed(each)
        assert parts.shadowed == whole.shadowed
    surfaces = fold(events).surfaces
    assert all(d.surface == surfaces[d.seq] for d in build_documents(events))
    assert [d.seq for d in build_documents(events)] == [e.seq for e in events if event_text(e)]


def _made(seq: int, kind: str) -> Event:
    if kind == "say":
        return user(seq, "hello")
    if kind == "search":
        return assistant(seq, call_block(f"c{seq % 3}", SEARCH))
    if kind == "both":
        return assistant(seq, "text", call_block(f"c{seq % 3}", SEARCH))
    if kind == "call":
        return tool_call(seq, f"c{seq % 3}")
    if kind == "result":
        return tool_result(seq, f"c{seq % 3}", "r")
    return event("x/y", seq)


@pytest.mark.parametrize("state", [b"", b"\x01", b"\x92\xc4\x00\x91\x01"])
def test_other_bytes_are_no_state(state: bytes) -> None:
    with pytest.raises(ValueError, match="not the state"):
        DocumentBuilder.restore(state)
