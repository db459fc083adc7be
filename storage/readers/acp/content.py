"""ACP content as core blocks: content blocks, tool call content, plans."""

from __future__ import annotations

from ....protocol.json_value import JSON
from ..corelog.shapes import (
    dict_of,
    first_text,
    image_block,
    json_text,
    list_of,
    text_block,
    text_blocks,
    text_of,
)


def chunk_blocks(content: JSON) -> list[JSON]:
    """The blocks of one chunk or prompt part. Text is kept as it is: chunks carry their own spaces."""
    part = dict_of(content)
    kind = part.get("type")
    if kind == "text":
        text = text_of(part.get("text"))
        return [text_block(text)] if text else []
    if kind == "resource":
        return text_blocks(text_of(dict_of(part.get("resource")).get("text")))
    if kind == "resource_link":
        return text_blocks(first_text(part.get("uri"), part.get("name")))
    if kind in ("image", "audio"):
        return [image_block(mediaType=part.get("mimeType"))]
    return []


def prompt_blocks(prompt: JSON) -> list[JSON]:
    return [block for part in list_of(prompt) for block in chunk_blocks(part)]


def result_blocks(content: JSON, raw_output: JSON) -> list[JSON]:
    """What a tool call ended with: its content (text, the new text of a diff), else its raw output."""
    blocks: list[JSON] = []
    for part in list_of(content):
        if dict_of(part).get("type") == "diff":
            blocks += text_blocks(text_of(dict_of(part).get("path")), text_of(dict_of(part).get("newText")))
        else:
            blocks += chunk_blocks(dict_of(part).get("content"))
    return blocks or text_blocks(_raw_text(raw_output))


def _raw_text(raw: JSON) -> str:
    """Raw output as text: what it says if it says something, else the whole of it."""
    for key in ("text", "output", "content", "formatted_output", "aggregated_output"):
        if text := text_of(dict_of(raw).get(key)):
            return text
    return json_text(raw)


def tool_name(update: dict[str, JSON]) -> str:
    """A tool's own name where a vendor gives it, else the title people see, else the kind."""
    for value in dict_of(update.get("_meta")).values():
        if name := first_text(dict_of(value).get("toolName"), dict_of(value).get("name")):
            return name
    return first_text(update.get("title"), update.get("kind"))


def todos_of(update: dict[str, JSON]) -> list[JSON]:
    return [
        {"content": text_of(dict_of(entry).get("content")), "status": text_of(dict_of(entry).get("status"))}
        for entry in list_of(update.get("entries"))
    ]
