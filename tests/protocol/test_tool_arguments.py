"""SPEC 10.1-10.3, 16.1.1, 16.8: schemas, argument decoding, prompt, cards."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from session_query.protocol.documents import TOOL_NAMES
from session_query.protocol.errors import ToolCode, ToolError
from session_query.protocol.tools.arguments import (
    ARGUMENT_TYPES,
    EventReadArguments,
    SessionSearchArguments,
    concurrency,
    decode_arguments,
)
from session_query.protocol.tools.cards import call_card
from session_query.protocol.tools.prompt import PROMPT_NAME, PROMPT_TEXT
from session_query.protocol.tools.schemas import SPECS

FIELDS = {
    "session_search": {
        "query", "match", "session_ids", "created_at_from", "created_at_to", "parent_session_ids",
        "include_root_sessions", "availability", "event_seq_from", "event_seq_to", "event_time_from",
        "event_time_to", "event_types", "event_surfaces",
    },
    "session_event_search": {
        "session_id", "query", "match", "seq_from", "seq_to", "time_from", "time_to", "event_types",
        "surfaces",
    },
    "session_trace": {"session_id"},
    "session_event_trace": {"session_id", "seq"},
    "session_event_read": {"session_id", "seq", "before", "after"},
}  # fmt: skip


def decode(tool: str, raw: object) -> Any:
    return decode_arguments(tool, ARGUMENT_TYPES[tool], raw)


def defect_of(tool: str, raw: object) -> object:
    try:
        decode(tool, raw)
    except ToolError as error:
        return error.code
    return None


def test_10_1_the_five_tools_in_order() -> None:
    assert tuple(SPECS) == TOOL_NAMES == tuple(ARGUMENT_TYPES)
    assert [spec.concurrency for spec in SPECS.values()] == ["exclusive"] * 2 + ["parallel"] * 3
    assert [spec.has_deadline for spec in SPECS.values()] == [True, True, False, False, False]


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_10_3_the_arguments_are_those_of_the_table(tool: str) -> None:
    spec = SPECS[tool]
    assert set(spec.properties) == FIELDS[tool] == set(ARGUMENT_TYPES[tool].__struct_fields__)
    assert set(spec.required) == {name for name in ("query", "seq") if name in FIELDS[tool]}
    for name in ("cursor", "offset", "limit", "page_size", "workspace", "cwd"):
        assert name not in spec.properties


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_a_schema_is_plain_json_that_any_model_api_takes(tool: str) -> None:
    schema = SPECS[tool].parameters()
    jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    for word in ("$ref", "anyOf", "oneOf", "null", "minimum", "minItems", "additionalProperties"):
        assert word not in text
    for name, prop in SPECS[tool].properties.items():
        assert prop["description"], name
        assert prop["type"] in {"string", "integer", "boolean", "array"}


@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_a_description_is_a_short_prompt_with_a_working_example_and_a_next_step(tool: str) -> None:
    description = SPECS[tool].description
    assert len(description) < 900
    assert "Next: " in description
    example = description[description.index("Example: ") :]
    raw, _ = json.JSONDecoder().raw_decode(example[example.index("{") :])
    decode(tool, raw)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**54),
    st.sampled_from([4.0, -1.0, 4.5, 1e20]),
    st.sampled_from(["", "live", "current", "auto", "exact", "2031-03-05T06:07:08Z"]),
    st.lists(st.sampled_from(["live", "persisted", "log-only", "x", None, 1]), max_size=2),
    st.just({}),
)


@pytest.mark.parametrize("tool", TOOL_NAMES)
@settings(max_examples=120)
@given(data=st.data())
def test_10_3_1_decoding_agrees_with_the_schema(tool: str, data: st.DataObject) -> None:
    names = st.sampled_from([*sorted(FIELDS[tool]), "unknown"])
    raw = data.draw(st.dictionaries(names, VALUES, max_size=4))
    if data.draw(st.booleans()):
        raw |= {name: "q" if name == "query" else 3 for name in SPECS[tool].required}
    valid = jsonschema.Draft202012Validator(SPECS[tool].parameters()).is_valid(raw)
    assert defect_of(tool, raw) == (None if valid else ToolCode.INVALID_ARGS)
    assert concurrency(tool, raw) == (SPECS[tool].concurrency if valid else "exclusive")


@pytest.mark.parametrize("raw", [None, [], "text", 5, True, [{}]])
@pytest.mark.parametrize("tool", TOOL_NAMES)
def test_16_8_arguments_that_are_no_object(tool: str, raw: object) -> None:
    with pytest.raises(ToolError) as caught:
        decode(tool, raw)
    assert caught.value.code is ToolCode.INVALID_ARGS
    assert concurrency(tool, raw) == "exclusive"
    assert call_card(tool, raw)["kind"] in {"search", "read"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "`seq` is required."),
        ({"seq": "SECRET"}, "`seq` must be an integer."),
        ({"seq": True}, "`seq` must be an integer."),
        ({"seq": None}, "`seq` must be an integer."),
        ({"seq": 1.5}, "`seq` must be an integer."),
        ({"seq": math.inf}, "`seq` must be an integer."),
        ({"seq": math.nan}, "`seq` must be an integer."),
        ({"seq": 1, "before": [1]}, "`before` must be an integer."),
        ({"seq": 1, "session_id": 5}, "`session_id` must be a string."),
    ],
)
def test_10_3_1_the_message_names_the_property_and_never_the_value(raw: object, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        decode("session_event_read", raw)
    assert caught.value.message == f"Invalid arguments: {message}"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"query": "q", "match": "best"}, "`match` must be one of auto, exact, words, some."),
        ({"query": "q", "availability": ["gone"]}, "`availability` must be a list of live, persisted."),
        ({"query": "q", "session_ids": "a"}, "`session_ids` must be a list of strings."),
        ({"query": "q", "session_ids": [None]}, "`session_ids` must be a list of strings."),
        ({"query": "q", "include_root_sessions": 1}, "`include_root_sessions` must be true or false."),
    ],
)
def test_10_3_1_closed_words_are_told(raw: object, message: str) -> None:
    with pytest.raises(ToolError) as caught:
        decode("session_search", raw)
    assert caught.value.message == f"Invalid arguments: {message}"


def test_0_a_whole_float_is_the_integer_and_big_ones_pass_to_the_checks() -> None:
    arguments = decode_arguments("session_event_read", EventReadArguments, {"seq": 4.0, "before": -0.0})
    assert (arguments.seq, type(arguments.seq), arguments.before, arguments.after) == (4, int, 0, 0)
    assert decode("session_event_read", {"seq": 1e20}).seq == 10**20


def test_unknown_properties_are_ignored_and_the_rest_is_detached() -> None:
    ids = ["a"]
    raw: dict[object, object] = {"query": "q", "session_ids": ids, "limit": None, 5: object()}
    arguments = decode_arguments("session_search", SessionSearchArguments, raw)
    ids.append("b")
    assert arguments.session_ids == ["a"]
    assert arguments.match is UNSET


def test_10_1_4_the_prompt_is_fixed_and_short() -> None:
    assert PROMPT_NAME == "session-history"
    assert PROMPT_TEXT.count(". ") == 2
    assert all(name in PROMPT_TEXT for name in TOOL_NAMES)
    assert "workspace" in PROMPT_TEXT


@pytest.mark.parametrize(
    ("tool", "raw", "card"),
    [
        (
            "session_search",
            {"query": "q", "session_ids": ["a"]},
            {"kind": "search", "title": "Search prior sessions", "raw_input": "q"},
        ),
        (
            "session_event_search",
            {"query": "q"},
            {"kind": "search", "title": "Search session events", "raw_input": "q"},
        ),
        ("session_trace", {"session_id": "s"}, {"kind": "read", "title": "Trace s", "raw_input": "s"}),
        ("session_trace", {}, {"kind": "read", "title": "Trace current session"}),
        (
            "session_event_trace",
            {"session_id": "s", "seq": 4.0},
            {"kind": "read", "title": "Trace event 4", "raw_input": {"session_id": "s", "seq": 4}},
        ),
        (
            "session_event_read",
            {"seq": 4, "before": 9},
            {"kind": "read", "title": "Read event 4", "raw_input": {"seq": 4}},
        ),
        ("session_event_read", {"seq": True}, {"kind": "read", "title": "Read event"}),
        ("session_event_read", {"seq": 10**9999}, {"kind": "read", "title": "Read event"}),
        ("session_event_read", {"seq": math.nan}, {"kind": "read", "title": "Read event"}),
        ("session_search", {"query": 7}, {"kind": "search", "title": "Search prior sessions"}),
    ],
)
def test_10_1_1_cards(tool: str, raw: object, card: object) -> None:
    assert call_card(tool, raw) == card


def test_10_1_1_a_card_title_is_one_short_line() -> None:
    title = call_card("session_trace", {"session_id": "a\nb\x1b[2J" + "x" * 500})["title"]
    assert isinstance(title, str)
    assert title.isprintable()
    assert len(title) < 100
