"""SPEC 3: semantic text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text_model import model_text
from session_query.protocol.event import Event
from session_query.protocol.event_types import CORE_TYPES, EXTENSION_TYPES
from session_query.protocol.json_value import JSON
from session_query.protocol.text import TEXT_TYPES, event_text
from support.events import assistant, call_block, event, text_block, tool_call, tool_result, user

REASONING: JSON = {"type": "reasoning", "text": "secret"}
IMAGE: JSON = {"type": "image", "attachment": {"text": "secret"}}
UNKNOWN: JSON = {"type": "video", "text": "secret", "name": "secret", "content": [text_block("secret")]}


def result_block(*content: JSON) -> JSON:
    return {"type": "tool-result", "toolCallId": "c", "content": list(content)}


CASES: list[tuple[str, Event, str]] = [
    (
        "first example",
        user(
            0,
            " hi ",
            {"type": "reasoning", "text": "x"},
            call_block("c", "grep", '{"q":1}'),
            result_block(text_block("deep")),
        ),
        'hi\ngrep\n{"q":1}\ndeep',
    ),
    ("second example", tool_result(0, "c", "nope", error={"name": "Boom", "code": "E_B"}), "nope\nBoom\nE_B"),
    ("no text and no error", tool_result(0, "c"), ""),
    ("an error alone", tool_result(0, "c", error={"name": "Boom", "code": "E_B"}), "Boom\nE_B"),
    ("assistant", assistant(0, "a", REASONING, call_block("c"), "b"), "a\ngrep\n{}\nb"),
    ("parts are trimmed, the inside kept", user(0, "\ufeff a\n\n b \u3000", "\x1c", " \t"), "a\n\n b\n\x1c"),
    ("reasoning, image, unknown", assistant(0, REASONING, IMAGE, UNKNOWN), ""),
    ("nested reasoning", tool_result(0, "c", result_block(REASONING, text_block("ok"))), "ok"),
    ("tool call", tool_call(0, "c", " grep ", ' {"a": 1} '), 'grep\n{"a": 1}'),
    (
        "todos",
        event(
            "todo/write",
            0,
            {"todos": [{"content": "a", "status": "pending"}, {"content": "b", "status": "completed"}]},
        ),
        "pending\na\ncompleted\nb",
    ),
    (
        "turn error",
        event(
            "turn/end",
            0,
            {"turn": 1, "reason": {"kind": "error", "error": {"message": " bad ", "code": "X"}}},
        ),
        "error\nbad",
    ),
    ("turn error without a message", event("turn/end", 0, {"reason": {"kind": "error"}}), "error"),
    (
        "turn aborted",
        event("turn/end", 0, {"reason": {"kind": "aborted", "reason": {"kind": "hook", "reason": "why"}}}),
        "aborted",
    ),
    ("turn max-tokens", event("turn/end", 0, {"reason": {"kind": "max-tokens"}}), "max-tokens"),
    ("turn interrupted", event("turn/end", 0, {"reason": {"kind": "interrupted"}}), "interrupted"),
    ("turn completed", event("turn/end", 0, {"reason": {"kind": "completed"}}), ""),
    ("turn blocked", event("turn/end", 0, {"reason": {"kind": "blocked", "error": {"message": "m"}}}), ""),
    ("turn unknown", event("turn/end", 0, {"reason": {"kind": "exploded"}}), ""),
    ("turn with an unhashable reason", event("turn/end", 0, {"reason": {"kind": ["interrupted"]}}), ""),
    (
        "title",
        event("session/title", 0, {"title": "secret", "messageSeqs": [], "source": {"kind": "user"}}),
        "",
    ),
    ("foreign record", event("claude-code/system", 0, {"text": " said\n", "native": {"a": 1}}), "said"),
    ("foreign record, silent", event("claude-code/progress", 0, {"native": {"text": "secret"}}), ""),
    ("foreign record, odd text", event("claude-code/system", 0, {"text": ["secret"], "native": {}}), ""),
    ("not a reader's shape", event("x/y", 0, {"text": "secret", "native": {}, "more": 1}), ""),
    ("unknown type", event("x/y", 0, {"content": [text_block("secret")], "text": "secret"}), ""),
]


@pytest.mark.parametrize(("made", "text"), [pytest.param(e, t, id=n) for n, e, t in CASES])
def test_cases(made: Event, text: str) -> None:
    assert event_text(made) == text


@pytest.mark.parametrize("type_", sorted((CORE_TYPES | EXTENSION_TYPES) - TEXT_TYPES))
def test_other_types_carry_no_text(type_: str) -> None:
    data: JSON = {
        "text": "secret",
        "content": [text_block("secret")],
        "message": {"content": [text_block("secret")]},
    }
    assert event_text(event(type_, 0, data)) == ""


@pytest.mark.parametrize("type_", sorted((CORE_TYPES | EXTENSION_TYPES) - TEXT_TYPES))
def test_the_shape_of_foreign_records_gives_no_text_to_our_own_types(type_: str) -> None:
    shape: JSON = {"text": "found", "native": {"text": "secret"}}
    assert event_text(event(type_, 0, shape)) == ""
    assert event_text(event("codex/thing", 0, shape)) == "found"


MALFORMED: list[JSON] = [
    None,
    1,
    "secret",
    ["secret"],
    {},
    {"content": "secret"},
    {"content": {"type": "text", "text": "secret"}},
    {"content": [None, 1, "secret", ["secret"], {"text": "secret"}, {"type": "text", "text": ["secret"]}]},
    {"content": [{"type": "tool-call", "name": {"a": "secret"}, "arguments": {"a": "secret"}}]},
    {"content": [{"type": ["text"], "text": "secret"}]},
    {"message": "secret"},
    {"message": {"content": "secret"}},
    {"todos": "secret"},
    {"todos": ["secret", {"status": 1}]},
    {"reason": "secret"},
    {"reason": {"kind": "secret"}},
    {"error": "secret"},
    {"error": {"name": 1, "code": ["secret"]}},
]


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
@pytest.mark.parametrize("type_", sorted(TEXT_TYPES))
def test_malformed_payloads_have_no_text(type_: str, data: JSON) -> None:
    assert event_text(event(type_, 0, data)) == ""


def test_nesting_may_be_deep_and_wide() -> None:
    deep: JSON = result_block(text_block("core"))
    for level in range(100_000):
        deep = result_block(deep, text_block(str(level))) if level % 10_000 == 0 else result_block(deep)
    lines = event_text(user(0, deep, "last")).split("\n")
    assert lines == ["core", *(str(level) for level in range(0, 100_000, 10_000)), "last"]
    wide = event_text(user(0, *["x"] * 50_000))
    assert len(wide) == 99_999


texts = st.text(st.sampled_from("ab \n\u3000\x1c"), max_size=5)
blocks = st.recursive(
    st.one_of(
        texts.map(text_block),
        st.builds(call_block, texts, texts, texts),
        st.just(REASONING),
        st.just(UNKNOWN),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda content: result_block(*content)),
    max_leaves=8,
)


@given(st.lists(blocks, max_size=4), texts, texts)
@settings(max_examples=150)
def test_text_agrees_with_the_model(content: list[JSON], name: str, code: str) -> None:
    events = [
        user(0, *content),
        assistant(0, *content),
        tool_result(0, "c", *content, error={"name": name, "code": code}),
        tool_call(0, "c", name, code),
    ]
    for made in events:
        assert event_text(made) == model_text(made)
        assert "secret" not in event_text(made)
