"""Which fields of records that are no core events people would search for (README.md, "Text")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....protocol.json_value import JSON
from ....protocol.text import join_parts
from ..api_content import plain_text
from .fields import mapping, string, strings

_SILENT_SYSTEM: Final = frozenset(("compact_boundary", "microcompact_boundary", "turn_duration"))


def log_text(obj: dict[str, JSON]) -> str | None:
    """The searchable text of a log-only record, or None."""
    reader = _BY_TYPE.get(string(obj, "type") or "")
    return None if reader is None else join_parts(reader(obj)) or None


def _system(obj: dict[str, JSON]) -> list[str]:
    if string(obj, "subtype") in _SILENT_SYSTEM:
        return []
    error = mapping(obj, "error")
    inner = mapping(mapping(error, "error"), "error")
    return _some(
        string(obj, "content"),
        string(error, "formatted") or string(error, "message") or string(inner, "message"),
        string(mapping(error, "cause"), "code"),
        string(obj, "apiRefusalExplanation"),
        *strings(obj, "hookErrors"),
    )


def _attachment(obj: dict[str, JSON]) -> list[str]:
    attachment = mapping(obj, "attachment")
    reader = _ATTACHMENTS.get(string(attachment, "type") or "")
    return [] if reader is None else reader(attachment)


def _file(attachment: dict[str, JSON]) -> list[str]:
    content = mapping(attachment, "content")
    return _some(string(attachment, "filename"), string(mapping(content, "file"), "content"))


def _edited(attachment: dict[str, JSON]) -> list[str]:
    return _some(string(attachment, "filename"), string(attachment, "snippet"))


def _hook_context(attachment: dict[str, JSON]) -> list[str]:
    return _some(string(attachment, "content"), *strings(attachment, "content"))


def _blocking(attachment: dict[str, JSON]) -> list[str]:
    error = attachment.get("blockingError")
    return _some(string(attachment, "blockingError"), string(error, "blockingError"))


def _non_blocking(attachment: dict[str, JSON]) -> list[str]:
    return _some(string(attachment, "stderr"))


def _goal(attachment: dict[str, JSON]) -> list[str]:
    return _some(string(attachment, "condition"), string(attachment, "reason"))


def _message(obj: dict[str, JSON]) -> list[str]:
    message = obj.get("message")
    return [message] if isinstance(message, str) else [plain_text(mapping(obj, "message").get("content"))]


def _pull_request(obj: dict[str, JSON]) -> list[str]:
    return _some(string(obj, "prUrl"))


def _some(*values: str | None) -> list[str]:
    return [value for value in values if value is not None]


_BY_TYPE: Final[dict[str, Callable[[dict[str, JSON]], list[str]]]] = {
    "system": _system,
    "attachment": _attachment,
    "user": _message,
    "assistant": _message,
    "summary": _message,
    "pr-link": _pull_request,
}

_ATTACHMENTS: Final[dict[str, Callable[[dict[str, JSON]], list[str]]]] = {
    "file": _file,
    "edited_text_file": _edited,
    "hook_additional_context": _hook_context,
    "hook_blocking_error": _blocking,
    "hook_non_blocking_error": _non_blocking,
    "goal_status": _goal,
}
