"""The repair view as SPEC 1.7 tells it: look at the log again from the end, with plain loops."""

from __future__ import annotations

from typing import Any

from session_query.protocol.event import Event


def model_closers(events: list[Event]) -> list[tuple[str, Any]]:
    """(type, what identifies the closer): a call with its outcome and source, or nothing."""
    turn_border = _last(events, ("turn/start", "turn/end"))
    if turn_border is None or events[turn_border].type == "turn/end":
        return []
    clearing = _last(events, ("turn/start", "turn/end", "step/end"))
    assert clearing is not None
    pending: dict[str, int | None] = {}
    for event in events[clearing + 1 :]:
        data: Any = event.data
        if event.type == "assistant/message":
            for block in data["message"]["content"]:
                if block["type"] == "tool-call":
                    pending[block["id"]] = None
        elif event.type == "tool/call" and data["callId"] in pending:
            pending[data["callId"]] = event.seq
        elif event.type == "tool/result":
            pending.pop(data["message"]["source"]["callId"], None)
    closers: list[tuple[str, Any]] = [
        ("tool/result", (call, "TOOL_NOT_STARTED" if seq is None else "TOOL_OUTCOME_UNKNOWN", seq))
        for call, seq in pending.items()
    ]
    if any(event.type == "step/start" for event in events[clearing + 1 :]):
        closers.append(("step/end", None))
    return [*closers, ("turn/end", None)]


def _last(events: list[Event], types: tuple[str, ...]) -> int | None:
    return max((index for index, event in enumerate(events) if event.type in types), default=None)
