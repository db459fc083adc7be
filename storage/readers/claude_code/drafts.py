"""Drafts: core events before they have a seq and links; what the pure mapping yields."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ....protocol.event import Event
from ....protocol.json_value import JSON
from ....protocol.surface import SURFACE_TYPES
from ....protocol.text import event_text, join_parts
from ..api_content import Blocks
from ..corelog.shapes import USER, json_text, message, result_message
from .surface_track import HUMAN_PROMPT, INJECTED, OTHER


class Draft(msgspec.Struct):
    """One event to be. ``call`` is the id of the tool call it makes, ``answers`` of the one it answers."""

    type: str
    data: dict[str, JSON]
    call: str | None = None
    answers: str | None = None

    @property
    def is_surface(self) -> bool:
        return self.type in SURFACE_TYPES

    @property
    def is_human(self) -> bool:
        return self.type == "user/message" and self.data["source"] == USER

    @property
    def node_kind(self) -> int:
        if self.type != "user/message":
            return OTHER
        return HUMAN_PROMPT if self.is_human else INJECTED

    def text(self) -> str:
        """Its searchable text (SPEC 3, 16.7.2)."""
        return event_text(Event(type=self.type, seq=0, time=0, data=self.data))


def user_draft(message_id: str, blocks: Blocks, source: dict[str, JSON]) -> Draft:
    return Draft("user/message", message(message_id, "user", blocks, dict(source)))


def assistant_draft(message_id: str, blocks: Blocks, model: str | None) -> Draft:
    source: dict[str, JSON] = {"kind": "model", "provider": "anthropic", "model": model or "unknown"}
    return Draft("assistant/message", {"message": message(message_id, "assistant", blocks, source)})


def call_draft(call_id: str, name: str, arguments: JSON) -> Draft:
    data: dict[str, JSON] = {"callId": call_id, "name": name, "arguments": json_text(arguments)}
    return Draft("tool/call", data, call=call_id)


def result_draft(message_id: str, call_id: str, blocks: Blocks, is_error: bool | None) -> Draft:
    data: dict[str, JSON] = {"message": result_message(message_id, call_id, blocks, is_error)}
    return Draft("tool/result", data, answers=call_id)


def title_draft(text: str, source: dict[str, JSON]) -> Draft:
    return Draft("session/title", {"title": text, "messageSeqs": [], "source": source})


def log_draft(type_: str, native: JSON, text: str | None = None) -> Draft:
    """An event the core does not know; ``text`` is what of it can be searched, if anything."""
    return Draft(type_, {"native": native} if text is None else {"text": text, "native": native})


def drafts_text(drafts: Iterable[Draft]) -> str | None:
    """The text of all, for a record that can only be kept as one log-only event; None if there is none."""
    return join_parts(draft.text() for draft in drafts) or None


def with_native(drafts: list[Draft], native: JSON) -> list[Draft]:
    """Put the native record whole into the first of ``drafts`` (SPEC 16.7.3)."""
    drafts[0].data["native"] = native
    return drafts
