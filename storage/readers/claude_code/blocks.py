"""Parts of a message as drafts, each with an id of its own."""

from __future__ import annotations

from collections.abc import Callable

from ....protocol.json_value import JSON
from ..api_content import Answered, Blocks, Called, content_parts
from .drafts import Draft, call_draft, result_draft

Say = Callable[[str, Blocks], Draft]
"""Makes the message event for a run of blocks that are neither call nor result, with this id."""


def message_drafts(content: JSON, record_id: str, say: Say) -> list[Draft]:
    """The events of one message, in block order; a run of ordinary blocks is one message event."""
    drafts: list[Draft] = []
    for number, part in enumerate(content_parts(content)):
        own_id = f"{record_id}:{number}" if number else record_id
        if isinstance(part, Called):
            drafts.append(call_draft(part.call_id or f"call:{own_id}", part.name, part.arguments))
        elif isinstance(part, Answered):
            call_id = part.call_id or f"call:{own_id}"
            drafts.append(result_draft(own_id, call_id, part.blocks, part.is_error))
        else:
            drafts.append(say(own_id, part.blocks))
    return drafts
