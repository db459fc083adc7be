"""Semantic text (SPEC 3): what of an event can be searched.

Reasoning never becomes text (3.1), and nothing unknown does merely because it holds strings (3.2).
Blocks may nest to any depth, so they are walked with a stack. Payloads are hostile: a part that is not
text is no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from .event import Event
from .event_types import CORE_TYPES, EXTENSION_TYPES
from .json_value import JSON
from .whitespace import WS

_FOREIGN_KEYS: Final = frozenset(("text", "native"))
_NAMED_ENDS: Final = frozenset(("aborted", "max-tokens", "interrupted"))


def event_text(event: Event) -> str:
    """The event's semantic text; empty if it is no document."""
    parts = _PARTS.get(event.type)
    if parts is None:
        if event.type in CORE_TYPES or event.type in EXTENSION_TYPES:
            return ""
        parts = _foreign_record
    return join_parts(parts(event.data))


def join_parts(parts: Iterable[str]) -> str:
    """Trim each part, drop the empty ones, join with a line feed (SPEC 3)."""
    return "\n".join(trimmed for part in parts if (trimmed := part.strip(WS)))


def block_parts(content: JSON, *, skip: Callable[[JSON], bool] | None = None) -> list[str]:
    """The parts of a content array, nested tool results included, in order.

    ``skip`` leaves out the blocks for which it is true, with all they hold (see documents.py).
    """
    parts: list[str] = []
    stack: list[JSON] = content[::-1] if isinstance(content, list) else []
    while stack:
        block = stack.pop()
        if not isinstance(block, dict) or (skip is not None and skip(block)):
            continue
        kind = block.get("type")
        if kind == "text":
            _add(parts, block.get("text"))
        elif kind == "tool-call":
            _add(parts, block.get("name"))
            _add(parts, block.get("arguments"))
        elif kind == "tool-result" and isinstance(nested := block.get("content"), list):
            stack.extend(reversed(nested))
    return parts


def member(value: JSON, key: str) -> JSON:
    """``value[key]`` if ``value`` is an object that has it, else None."""
    return value.get(key) if isinstance(value, dict) else None


def _add(parts: list[str], value: JSON) -> None:
    if isinstance(value, str):
        parts.append(value)


def _strings(*values: JSON) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _user_message(data: JSON) -> list[str]:
    return block_parts(member(data, "content"))


def _assistant_message(data: JSON) -> list[str]:
    return block_parts(member(member(data, "message"), "content"))


def _tool_call(data: JSON) -> list[str]:
    return _strings(member(data, "name"), member(data, "arguments"))


def _tool_result(data: JSON) -> list[str]:
    parts = block_parts(member(member(data, "message"), "content"))
    error = member(data, "error")
    return parts + _strings(member(error, "name"), member(error, "code"))


def _todo_write(data: JSON) -> list[str]:
    todos = member(data, "todos")
    if not isinstance(todos, list):
        return []
    return [part for todo in todos for part in _strings(member(todo, "status"), member(todo, "content"))]


def _turn_end(data: JSON) -> list[str]:
    reason = member(data, "reason")
    kind = member(reason, "kind")
    if kind == "error":
        return ["error", *_strings(member(member(reason, "error"), "message"))]
    return [kind] if isinstance(kind, str) and kind in _NAMED_ENDS else []


def _foreign_record(data: JSON) -> list[str]:
    """A foreign record that is no core event: the text its reader names beside it (SPEC 16.7.2), else none.

    Only the reader's own shape, ``{text, native}``, counts: other unknown events hold strings too (3.2).
    """
    return _strings(data["text"]) if isinstance(data, dict) and data.keys() == _FOREIGN_KEYS else []


_PARTS: Final[dict[str, Callable[[JSON], list[str]]]] = {
    "user/message": _user_message,
    "assistant/message": _assistant_message,
    "tool/call": _tool_call,
    "tool/result": _tool_result,
    "todo/write": _todo_write,
    "turn/end": _turn_end,
}

TEXT_TYPES: Final = frozenset(_PARTS)
"""The core event types that can be documents at all; foreign log-only ones can, too (SPEC 16.7.2)."""
