"""What a line is, told from its keys alone."""

from __future__ import annotations

import re
from typing import Final
from zlib import crc32

from ....protocol.json_codec import encode_json
from ....protocol.json_value import JSON
from ..corelog.times import epoch_ms
from .fields import mapping, string

FORMAT: Final = "claude-code"

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
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


def native_type(obj: dict[str, JSON]) -> str:
    """``type`` or ``type/subtype``; a subtype is also the kind of an attachment or of a progress line."""
    kind = _name(string(obj, "type"), "record")
    sub = string(obj, "subtype")
    if sub is None and kind == "attachment":
        sub = string(mapping(obj, "attachment"), "type")
    elif sub is None and kind == "progress":
        sub = string(mapping(obj, "data"), "type")
    return kind if sub is None else f"{kind}/{_name(sub, 'other')}"


def log_only_type(obj: dict[str, JSON]) -> str:
    return f"{FORMAT}/{native_type(obj)}"


def _name(text: str | None, otherwise: str) -> str:
    return text if text is not None and _NAME.fullmatch(text) else otherwise


def is_claude_record(obj: dict[str, JSON]) -> bool:
    """True for a line that only this format writes, or one close enough to it."""
    kind = string(obj, "type")
    if kind in ("user", "assistant"):
        return "message" in obj
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
