"""Kimi content as core blocks."""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, image_block, json_text, text_blocks, text_of


def blocks_of(content: JSON) -> list[JSON]:
    """Text and pictures; thinking is left out. Content is text, a part, or a list of parts."""
    if isinstance(content, str):
        return text_blocks(content)
    blocks: list[JSON] = []
    for item in content if isinstance(content, list) else [content]:
        part = dict_of(item)
        if part.get("type") == "text":
            blocks += text_blocks(text_of(part.get("text")))
        elif part.get("type") in ("image_url", "image", "audio_url", "video_url"):
            blocks.append(image_block(kind=part.get("type")))
    return blocks


def output_blocks(output: JSON) -> list[JSON]:
    """What a tool answered: text, parts, or anything else as JSON."""
    if output is None:
        return []
    if isinstance(output, (str, list)):
        return blocks_of(output) or ([] if isinstance(output, str) else text_blocks(json_text(output)))
    return text_blocks(json_text(output))
