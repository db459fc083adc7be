"""pi content as core blocks."""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, image_block, list_of, text_blocks, text_of


def blocks_of(content: JSON) -> list[JSON]:
    """Text and pictures of a message, in order; thinking and tool calls are left out."""
    if isinstance(content, str):
        return text_blocks(content)
    blocks: list[JSON] = []
    for block in list_of(content):
        part = dict_of(block)
        if part.get("type") == "text":
            blocks += text_blocks(text_of(part.get("text")))
        elif part.get("type") == "image":
            blocks.append(image_block(mediaType=part.get("mimeType")))
    return blocks


def calls_of(content: JSON) -> list[dict[str, JSON]]:
    return [part for part in map(dict_of, list_of(content)) if part.get("type") == "toolCall"]
