"""Parts of a Qwen (Gemini-style) message: what is said, called, answered."""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..api_content import Answered, Blocks, Called, Part, Said
from ..corelog.shapes import dict_of, image_block, json_text, list_of, text_block, text_of


def message_parts(message: JSON, outcome: JSON = None) -> list[Part]:
    """Split ``message.parts``, in order. ``outcome`` is the record's ``toolCallResult``, if it has one."""
    parts: list[Part] = []
    run: Blocks = []
    for item in list_of(dict_of(message).get("parts")):
        part: dict[str, JSON] = {"text": item} if isinstance(item, str) else dict_of(item)
        call, response = part.get("functionCall"), part.get("functionResponse")
        if not isinstance(call, dict) and not isinstance(response, dict):
            run.append(_block(part))
            continue
        if run:
            parts.append(Said(run))
            run = []
        if isinstance(call, dict):
            parts.append(_called(call))
        else:
            parts.append(_answered(dict_of(response), outcome))
    if run:
        parts.append(Said(run))
    return parts


def _block(part: dict[str, JSON]) -> dict[str, JSON]:
    if isinstance(text := part.get("text"), str):
        # Thinking is kept for exact reads, never text (SPEC 3.1).
        return {"type": "reasoning", "text": text} if part.get("thought") is True else text_block(text)
    for key in ("inlineData", "fileData"):
        if isinstance(data := part.get(key), dict):
            return image_block(mediaType=text_of(data.get("mimeType")) or None)
    return {"type": "unknown"}


def _called(call: dict[str, JSON]) -> Called:
    return Called(text_of(call.get("id")), text_of(call.get("name")) or "unknown", call.get("args", {}))


def _answered(response: dict[str, JSON], outcome: JSON) -> Answered:
    result = dict_of(outcome)
    call_id = text_of(response.get("id")) or text_of(result.get("callId"))
    status = result.get("status")
    text = _response_text(response.get("response")) or text_of(result.get("resultDisplay"))
    failed = status == "error" if isinstance(status, str) else None
    return Answered(call_id, [text_block(text)] if text else [], failed)


def _response_text(response: JSON) -> str:
    if not isinstance(response, dict):
        return json_text(response)
    for key in ("output", "error"):
        if response.get(key) is not None:
            return json_text(response[key])
    return json_text(response) if response else ""
