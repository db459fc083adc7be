"""Call cards: what a host shows while a tool runs (SPEC 10.1). Pure; no arguments make them fail."""

from __future__ import annotations

import math

from ..json_value import JSON
from .lines import one_line

_TITLE_ID_CHARS = 80


def call_card(tool: str, arguments: object) -> dict[str, JSON]:
    """Return the generic card of a call: ``kind``, ``title`` and, if there is anything, ``raw_input``.

    Raw input is the query, the session id, or ``{session_id?, seq}``; what was omitted or is of the
    wrong type is left out.
    """
    raw = arguments if type(arguments) is dict else {}
    session_id, query, seq = _text(raw, "session_id"), _text(raw, "query"), _integer(raw, "seq")
    match tool:
        case "session_search":
            return _card("search", "Search prior sessions", query)
        case "session_event_search":
            return _card("search", "Search session events", query)
        case "session_trace":
            shown = "current session" if session_id is None else one_line(session_id, _TITLE_ID_CHARS)
            return _card("read", f"Trace {shown}", session_id)
        case "session_event_trace":
            action = "Trace event"
        case _:
            action = "Read event"
    target: dict[str, JSON] = {}
    if session_id is not None:
        target["session_id"] = session_id
    if seq is not None:
        target["seq"] = seq
    return _card("read", action if seq is None else f"{action} {seq}", target or None)


def _card(kind: str, title: str, raw_input: JSON) -> dict[str, JSON]:
    card: dict[str, JSON] = {"kind": kind, "title": title}
    if raw_input is not None:
        card["raw_input"] = raw_input
    return card


def _text(raw: dict[str, object], name: str) -> str | None:
    value = raw.get(name)
    return value if type(value) is str else None


def _integer(raw: dict[str, object], name: str) -> int | None:
    value = raw.get(name)
    if type(value) is float and math.isfinite(value) and value.is_integer():
        value = int(value)
    # beyond 64 bits no event has such a number, and printing a huge integer may itself fail
    return value if type(value) is int and value.bit_length() <= 64 else None
