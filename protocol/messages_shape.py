"""Message shapes (SPEC 1.4.1) and the whole-log validation a resume would run (SPEC 8.3)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from .envelope import first_gap
from .errors import CorruptLog
from .event import Event
from .json_codec import lossless_defect
from .json_value import JSON, is_safe_integer
from .surface import SurfaceError, SurfaceFold
from .text import member


def validate_log(events: Sequence[Event]) -> None:
    """Check a log as a resume would: envelopes, contiguity, surface, message shapes.

    Raises: CorruptLog: the first defect found in that order; a broken surface rule is kept as its cause.
    Source: SPEC 8.3.
    """
    for event in events:
        if defect := _envelope_defect(event):
            raise CorruptLog(f"event {event.seq}: {defect}")
    if (gap := first_gap(events)) is not None:
        raise CorruptLog(f"the event at place {gap} carries another seq")
    fold = SurfaceFold()
    try:
        for event in events:
            fold.append(event)
    except SurfaceError as exc:
        raise CorruptLog(str(exc)) from exc
    for event in events:
        if defect := message_defect(event):
            raise CorruptLog(f"event {event.seq}: {defect}")


def _envelope_defect(event: Event) -> str | None:
    if not isinstance(event.type, str) or not event.type:
        return "type is no non-empty text"
    if not is_safe_integer(event.seq) or event.seq < 0:
        return "seq is no safe integer of at least 0"
    if not is_safe_integer(event.time):
        return "time is no safe integer"
    if event.ignorable is not UNSET and event.ignorable is not True:
        return "ignorable is not true"
    defect = lossless_defect(event.data)
    return f"its data holds {defect}" if defect else None


def message_defect(event: Event) -> str | None:
    """Why the event's message is invalid, or None. Events without a message have no defect."""
    if event.type == "user/message":
        return _message_defect(event.data, "user")
    if event.type == "assistant/message":
        message = member(event.data, "message")
        return _message_defect(message, "assistant") or _model_defect(member(message, "source"))
    if event.type == "tool/result":
        message = member(event.data, "message")
        return _message_defect(message, "user") or _result_defect(message)
    return None


def _message_defect(message: JSON, role: str) -> str | None:
    if not isinstance(message, dict):
        return "the message is no object"
    if not _named(message.get("id")):
        return "the message's id is no non-empty text"
    if message.get("role") != role:
        return f"the message's role is not {role}"
    if not _named(member(message.get("source"), "kind")):
        return "the message's source has no kind"
    if not isinstance(message.get("content"), list):
        return "the message's content is no array"
    return None


def _model_defect(source: JSON) -> str | None:
    if not _named(member(source, "provider")) or not _named(member(source, "model")):
        return "the assistant's source names no provider and model"
    return None


def _result_defect(message: JSON) -> str | None:
    content = member(message, "content")
    if not isinstance(content, list) or len(content) != 1 or member(content[0], "type") != "tool-result":
        return "a tool result has not exactly one tool-result block"
    call_id = member(content[0], "toolCallId")
    if not isinstance(call_id, str) or call_id != member(member(message, "source"), "callId"):
        return "the block's toolCallId is not the source's callId"
    if not isinstance(member(content[0], "content"), list):
        return "the block's content is no array"
    return None


def _named(value: JSON) -> bool:
    return isinstance(value, str) and value != ""
