"""Content of Anthropic-style API messages in core blocks; what is a call or a result stands apart.

Several tools keep messages in this shape. A message of calls alone yields calls alone: ``tool/call`` is
where their text stands, and saying it twice would find it twice.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from ...protocol.json_value import JSON
from .corelog.shapes import dict_of, image_block, text_block, text_of

Blocks: TypeAlias = list[JSON]

_CALLS: Final = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_CORE: Final = frozenset(("reasoning", "tool-call", "tool-result"))


class Said(msgspec.Struct, frozen=True):
    """A run of blocks that are neither call nor result."""

    blocks: Blocks


class Called(msgspec.Struct, frozen=True):
    """A tool call; ``call_id`` is empty if the writer gave none."""

    call_id: str
    name: str
    arguments: JSON


class Answered(msgspec.Struct, frozen=True):
    """The result of a call; ``is_error`` is None if the writer does not say."""

    call_id: str
    blocks: Blocks
    is_error: bool | None


Part: TypeAlias = Said | Called | Answered


def content_parts(content: JSON) -> list[Part]:
    """Split the content of a message, in block order."""
    if isinstance(content, str):
        return [Said([text_block(content)])]
    parts: list[Part] = []
    run: Blocks = []
    for block in _blocks(content):
        kind = text_of(block.get("type"))
        if kind in _CALLS or kind.endswith("tool_result"):
            if run:
                parts.append(Said(run))
                run = []
            parts.append(_called(block) if kind in _CALLS else _answered(block))
        else:
            run.append(_core_block(block))
    if run:
        parts.append(Said(run))
    return parts


def plain_text(content: JSON) -> str:
    """The text blocks of a message, one below the other: what tells a wrapper from a prompt."""
    if isinstance(content, str):
        return content
    return "\n".join(
        [
            text
            for block in _blocks(content)
            if block.get("type") == "text" and isinstance(text := block.get("text"), str)
        ]
    )


def _blocks(content: JSON) -> list[dict[str, JSON]]:
    """Content as blocks: a string is one text block, and so is a string among blocks."""
    found: list[dict[str, JSON]] = []
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            found.append({"type": "text", "text": item})
        elif isinstance(item, dict):
            found.append(item)
    return found


def _called(block: dict[str, JSON]) -> Called:
    return Called(text_of(block.get("id")), text_of(block.get("name")) or "unknown", block.get("input", {}))


def _answered(block: dict[str, JSON]) -> Answered:
    inner = block.get("content")
    if inner is None:  # seen beside newer shapes: the text at the top of the block
        inner = block.get("text")
    failed = block.get("is_error")
    return Answered(
        text_of(block.get("tool_use_id")),
        [_core_block(item) for item in _blocks(inner)],
        failed if isinstance(failed, bool) else None,
    )


def _core_block(block: dict[str, JSON]) -> dict[str, JSON]:
    """One block in core shape. A block the core does not know keeps its type alone."""
    kind = text_of(block.get("type")) or "unknown"
    if kind == "text":
        return text_block(text_of(block.get("text")))
    if kind == "thinking":
        return _reasoning(text_of(block.get("thinking")))
    if kind == "redacted_thinking":
        return _reasoning("")
    if kind in ("image", "document"):
        source = dict_of(block.get("source"))
        if source.get("type") == "text":
            return text_block(text_of(source.get("data")))
        return image_block(mediaType=text_of(source.get("media_type")) or None)
    return {"type": f"native-{kind}" if kind in _CORE else kind}


def _reasoning(text: str) -> dict[str, JSON]:
    """Thinking: kept for exact reads, never text (SPEC 3.1)."""
    return {"type": "reasoning", "text": text}
