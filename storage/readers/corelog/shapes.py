"""Core shapes (SPEC 1.4): the ``data`` of events and their blocks, built in one place.

Every builder returns fresh containers, so an event shares no mutable part with a native record except
``data.native`` itself.
"""

from __future__ import annotations

from typing import Final

from ....protocol.json_codec import encode_json
from ....protocol.json_value import JSON
from ....protocol.whitespace import collapse, is_blank

USER: Final[dict[str, JSON]] = {"kind": "user"}
COMPACTION: Final[dict[str, JSON]] = {"kind": "compact-checkpoint"}
TITLE_MAX: Final = 80


def text_of(value: JSON) -> str:
    """``value`` if it is text, else the empty string."""
    return value if isinstance(value, str) else ""


def dict_of(value: JSON) -> dict[str, JSON]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: JSON) -> list[JSON]:
    """``value`` if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def first_text(*values: JSON) -> str:
    """The first of ``values`` that is a non-empty text, or the empty string."""
    for value in values:  # a generator costs three times as much
        if value and isinstance(value, str):
            return value
    return ""


def text_block(text: str) -> dict[str, JSON]:
    return {"type": "text", "text": text}


def text_blocks(*texts: str) -> list[JSON]:
    """One text block for each text that is not blank."""
    return [{"type": "text", "text": text} for text in texts if not is_blank(text)]


def image_block(**facts: JSON) -> dict[str, JSON]:
    """An image by its facts. The picture itself stays in the native record."""
    return {"type": "image", "attachment": {key: value for key, value in facts.items() if value is not None}}


def json_text(value: JSON) -> str:
    """``value`` as text: itself if it is text, else compact JSON; the empty string for null."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode_json(value).decode()


def message(message_id: str, role: str, blocks: list[JSON], source: dict[str, JSON]) -> dict[str, JSON]:
    return {"id": message_id, "role": role, "content": blocks, "source": source}


def result_message(
    message_id: str, call_id: str, blocks: list[JSON], is_error: bool | None
) -> dict[str, JSON]:
    block: dict[str, JSON] = {"type": "tool-result", "toolCallId": call_id, "content": blocks}
    if is_error is not None:
        block["isError"] = is_error
    return message(message_id, "user", [block], {"kind": "tool", "callId": call_id})


def title_text(text: str) -> str:
    """``text`` as a one-line title: controls and direction marks out, at most 80 code points (SPEC 9.6)."""
    kept = "".join(
        " " if ch < " " or ch == "\x7f" else ch for ch in text[: TITLE_MAX * 8] if ch not in _UNSEEN
    )
    line = collapse(kept)
    return line if len(line) <= TITLE_MAX else line[: TITLE_MAX - 1].rstrip() + "…"


_UNSEEN: Final = frozenset(
    "\u200b\u200c\u200d\u200e\u200f\u2060\u2066\u2067\u2068\u2069\u202a\u202b\u202c\u202d\u202e"
)
