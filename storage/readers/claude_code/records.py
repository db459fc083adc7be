"""What a line is, told from its keys alone."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ....protocol.json_codec import encode_json
from ....protocol.json_value import JSON
from ..corelog.times import epoch_ms
from ..native_name import native_name
from .fields import mapping, string

FORMAT: Final = "claude-code"

_CONVERSATION: Final = frozenset(("user", "assistant", "system", "attachment", "progress"))
_SIDE_KEYS: Final = {
    "summary": ("leafUuid", "summary", "message"),
    "custom-title": ("customTitle",),
    "ai-title": ("aiTitle",),
    "file-history-snapshot": ("snapshot",),
    "queue-operation": ("sessionId",),
    "started": ("agentId",),
    "result": ("agentId",),
}


def log_only_type(obj: dict[str, JSON]) -> str:
    """``claude-code/<type>[/<subtype>]``; the kind of an attachment or a progress line is its subtype."""
    kind = obj.get("type")
    finer = obj.get("subtype")
    if finer is None and kind in ("attachment", "progress"):
        finer = mapping(obj, "attachment" if kind == "attachment" else "data").get("type")
    return f"{FORMAT}/{native_name(kind, finer)}"


def is_claude_record(obj: dict[str, JSON]) -> bool:
    """True for a line that only this format writes, or one close enough to it."""
    kind = string(obj, "type")
    if kind in ("user", "assistant"):
        message = obj.get("message")
        return isinstance(message, str) or (isinstance(message, dict) and "parts" not in message)
    if kind in _CONVERSATION:
        return "uuid" in obj or "sessionId" in obj
    if kind in _SIDE_KEYS:
        return any(key in obj for key in _SIDE_KEYS[kind])
    return kind is not None and "sessionId" in obj


def time_of(obj: dict[str, JSON]) -> int | None:
    """The record's time in epoch milliseconds, if it has one; a snapshot's stands inside it."""
    time = epoch_ms(obj.get("timestamp"))
    return epoch_ms(mapping(obj, "snapshot").get("timestamp")) if time is None else time


def is_side(obj: dict[str, JSON]) -> bool:
    return obj.get("isSidechain") is True


def content_digest(obj: dict[str, JSON]) -> int:
    """Equal for the same content under other parents and times: what a repeat is told by."""
    content = obj.get("message") or obj.get("attachment") or obj.get("content")
    return crc32(encode_json([obj.get("type"), obj.get("subtype"), content]))
