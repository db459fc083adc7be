"""The five tools as a model sees them: names, descriptions, parameters (SPEC 10.1, 10.3, 16.1.1).

Descriptions are prompts. They say what the tool finds, how to ask, and what to do next; they promise
nothing the rules do not keep. Bounds that have their own error codes (negative seqs, empty lists) are
told in words and not as schema keywords: a host that validates against the schema would turn them
into ``INVALID_ARGS``.
"""

from __future__ import annotations

from typing import Final, Literal, cast

import attrs

from ..documents import TOOL_NAMES
from ..event import SURFACES
from ..filters import AVAILABILITIES
from ..json_value import JSON


@attrs.frozen(kw_only=True)
class ToolSpec:
    """One tool's fixed facts. ``has_deadline``: the search timeout applies (SPEC 10.1)."""

    name: str
    description: str
    properties: dict[str, dict[str, JSON]]
    required: tuple[str, ...]
    concurrency: Literal["exclusive", "parallel"]
    has_deadline: bool

    def parameters(self) -> JSON:
        """Return the arguments' JSON Schema. Additional properties are allowed and ignored."""
        schema: dict[str, JSON] = {"type": "object", "properties": cast("JSON", dict(self.properties))}
        if self.required:
            schema["required"] = list(self.required)
        return schema


def _string(description: str) -> dict[str, JSON]:
    return {"type": "string", "description": description}


def _strings(description: str) -> dict[str, JSON]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _integer(description: str) -> dict[str, JSON]:
    return {"type": "integer", "description": description}


def _words(description: str, values: tuple[str, ...]) -> dict[str, JSON]:
    return {"type": "string", "enum": [*values], "description": description}


def _word_list(description: str, values: tuple[str, ...]) -> dict[str, JSON]:
    return {"type": "array", "items": {"type": "string", "enum": [*values]}, "description": description}


_TIME = "with offset, e.g. 2031-03-05T06:07:08Z or 2031-03-05T06:07+05:30; inclusive"
_QUERY = _string(
    "Plain text: words you remember, an identifier, a path, part of an error message. A few telling words "
    "find more than a sentence. Quotes, AND, OR and * have no meaning. Not blank."
)
_MATCH = _words(
    "How closely to match. auto (default): the exact phrase first, then all words in any order, then a few "
    "hits with some of them. exact: only the literal phrase. words: the phrase or all words. some: also all "
    "hits with any of the words.",
    ("auto", "exact", "words", "some"),
)
_TYPES = _strings(
    "Only events of these types, e.g. user/message, assistant/message, tool/call, tool/result. Not empty."
)
_SURFACES = _word_list(
    "current: in the session's context to the end; shadowed: replaced later by a compaction or rewind; "
    "log-only: recorded beside the context, such as tool calls. Not empty.",
    SURFACES,
)
_TARGET = _string(
    "Session id, copied from a result. Omit for your own session, where the host says which it is."
)
_SEQ = _integer("Event number (seq), copied from a result.")

_SESSION_SEARCH = ToolSpec(
    name="session_search",
    description=(
        "Find earlier sessions of this workspace by what was said or done in them: prompts, answers, tool "
        "calls and tool results. Use it when earlier work may hold the answer: an error seen before, a "
        "decision, a command, a file. Returns one hit per session, best first, with its best matching event; "
        "your own session is left out where the host says which it is. There is no next page: when the "
        "result says that more matched, narrow the query or add filters.\n"
        'Example: {"query": "database is locked"} or {"query": "retry backoff", "created_at_from": '
        '"2031-03-01T00:00Z", "event_types": ["tool/result"]}.\n'
        "Next: session_event_read with a hit's session id and seq shows that event in full; "
        "session_event_search finds more inside that session; session_trace shows where it came from."
    ),
    properties={
        "query": _QUERY,
        "match": _MATCH,
        "session_ids": _strings("Only these sessions. Not empty."),
        "created_at_from": _string(f"Sessions created at or after this time, {_TIME}."),
        "created_at_to": _string(f"Sessions created at or before this time, {_TIME}."),
        "parent_session_ids": _strings("Only direct children of these sessions. Not empty."),
        "include_root_sessions": {
            "type": "boolean",
            "description": "true: sessions without a parent; with parent_session_ids, those as well.",
        },
        "availability": _word_list(
            "live: running now; persisted: stored. At least one of those listed. Not empty.", AVAILABILITIES
        ),
        "event_seq_from": _integer("Only events with this seq or a later one, 0 or more."),
        "event_seq_to": _integer("Only events with this seq or an earlier one, 0 or more."),
        "event_time_from": _string(f"Only events at or after this time, {_TIME}."),
        "event_time_to": _string(f"Only events at or before this time, {_TIME}."),
        "event_types": _TYPES,
        "event_surfaces": _SURFACES,
    },
    required=("query",),
    concurrency="exclusive",
    has_deadline=True,
)

_EVENT_SEARCH = ToolSpec(
    name="session_event_search",
    description=(
        "Find events inside one session: one that session_search found or, without session_id, your own, "
        "with the steps that are no longer in your context (the current step is left out). Returns matching "
        "events, best first. There is no next page: when the result says that more matched, narrow the query "
        "or add filters.\n"
        'Example: {"session_id": "5b6c1f0e", "query": "ECONNRESET"} or {"query": "the port we agreed on"}.\n'
        "Next: session_event_read with seq shows an event in full and what stood around it."
    ),
    properties={
        "session_id": _TARGET,
        "query": _QUERY,
        "match": _MATCH,
        "seq_from": _integer("Only events with this seq or a later one, 0 or more."),
        "seq_to": _integer("Only events with this seq or an earlier one, 0 or more."),
        "time_from": _string(f"Only events at or after this time, {_TIME}."),
        "time_to": _string(f"Only events at or before this time, {_TIME}."),
        "event_types": _TYPES,
        "surfaces": _SURFACES,
    },
    required=("query",),
    concurrency="exclusive",
    has_deadline=True,
)

_SESSION_TRACE = ToolSpec(
    name="session_trace",
    description=(
        "Show a session's lineage: the sessions it came from, nearest first, and all sessions that came "
        "from it (forks, sub-agents), as a tree.\n"
        'Example: {"session_id": "5b6c1f0e"}, or {} for your own session.\n'
        "Next: session_event_search inside a session of the lineage."
    ),
    properties={"session_id": _TARGET},
    required=(),
    concurrency="parallel",
    has_deadline=False,
)

_EVENT_TRACE = ToolSpec(
    name="session_event_trace",
    description=(
        "Show one event's relations: what replaced it (compaction, rewind), what it replaced, which events "
        "it was made from, and which were made from it. Useful when a hit is shadowed.\n"
        'Example: {"session_id": "5b6c1f0e", "seq": 41}.\n'
        "Next: session_event_read with a seq of the answer."
    ),
    properties={"session_id": _TARGET, "seq": _SEQ},
    required=("seq",),
    concurrency="parallel",
    has_deadline=False,
)

_EVENT_READ = ToolSpec(
    name="session_event_read",
    description=(
        "Read one event in full, exactly as recorded, as JSON; with before and after also the text of the "
        "events around it.\n"
        'Example: {"session_id": "5b6c1f0e", "seq": 41, "before": 2, "after": 5}.\n'
        "Next: raise before or after to read on; a neighbour's seq reads that event in full."
    ),
    properties={
        "session_id": _TARGET,
        "seq": _SEQ,
        "before": _integer("How many events before it to show as text, 0 to 50. Default 0."),
        "after": _integer("How many events after it to show as text, 0 to 50. Default 0."),
    },
    required=("seq",),
    concurrency="parallel",
    has_deadline=False,
)

SPECS: Final[dict[str, ToolSpec]] = {
    spec.name: spec for spec in (_SESSION_SEARCH, _EVENT_SEARCH, _SESSION_TRACE, _EVENT_TRACE, _EVENT_READ)
}
"""The five tools by name, in registry order."""

assert tuple(SPECS) == TOOL_NAMES
