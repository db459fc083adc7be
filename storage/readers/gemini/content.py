"""Gemini content as core blocks: message parts, tool results."""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, image_block, json_text, list_of, text_blocks, text_of


def message_blocks(content: JSON) -> list[JSON]:
    """Content is text or a list of parts; thoughts and function parts are no text."""
    if isinstance(content, str):
        return text_blocks(content)
    blocks: list[JSON] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            blocks += text_blocks(part)
        elif dict_of(part).get("thought") is not True:
            blocks += text_blocks(text_of(dict_of(part).get("text")))
            data = dict_of(part).get("inlineData") or dict_of(part).get("fileData")
            if isinstance(data, dict):
                blocks.append(image_block(mediaType=data.get("mimeType")))
    return blocks


def result_blocks(result: JSON) -> list[JSON]:
    """What a tool answered: ``[{functionResponse: {response}}]``, other parts, or anything else as it is."""
    blocks: list[JSON] = []
    for part in list_of(result) or [result]:
        answer = dict_of(part).get("functionResponse")
        if isinstance(answer, dict):
            blocks += _response(answer.get("response"))
        elif isinstance(part, dict) and ("text" in part or "inlineData" in part):
            blocks += message_blocks(part)
        else:
            blocks += text_blocks(json_text(part))
    return blocks


def _response(response: JSON) -> list[JSON]:
    texts = [dict_of(response).get(key) for key in ("output", "error", "content")]
    told = [json_text(text) for text in texts if text is not None]
    return text_blocks(*told) if told else text_blocks(json_text(response))
