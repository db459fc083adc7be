"""Content of API messages as core blocks, calls and results taken out into events of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....protocol.json_value import JSON
from ..corelog.shapes import image_block, text_block
from .drafts import Blocks, Draft, call_draft, result_draft
from .fields import mapping, string

_CALLS: Final = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))

Say = Callable[[str, Blocks], Draft]
"""Makes the message event for a run of blocks that are neither call nor result, with this id."""


def message_drafts(content: JSON, record_id: str, say: Say) -> list[Draft]:
    """The events of one message, in block order; a run of ordinary blocks is one message event.

    A message of calls alone yields calls alone: ``tool/call`` is where their text stands.
    """
    return _Splitter(record_id, say).split(content)


class _Splitter:
    def __init__(self, record_id: str, say: Say) -> None:
        self._record_id = record_id
        self._say = say
        self._run: Blocks = []
        self._drafts: list[Draft] = []

    def split(self, content: JSON) -> list[Draft]:
        for block in _blocks(content):
            kind = block.get("type")
            if kind in _CALLS:
                self._flush()
                self._drafts.append(self._call(block))
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                self._flush()
                self._drafts.append(self._result(block))
            else:
                self._run.append(core_block(block))
        self._flush()
        return self._drafts

    def _flush(self) -> None:
        if self._run:
            self._drafts.append(self._say(self._next_id(), self._run))
            self._run = []

    def _next_id(self) -> str:
        return f"{self._record_id}:{len(self._drafts)}" if self._drafts else self._record_id

    def _call(self, block: dict[str, JSON]) -> Draft:
        call_id = string(block, "id") or f"call:{self._next_id()}"
        name = string(block, "name") or "unknown"
        return call_draft(call_id, name, block.get("input", {}))

    def _result(self, block: dict[str, JSON]) -> Draft:
        call_id = string(block, "tool_use_id") or f"call:{self._next_id()}"
        inner = block.get("content")
        if inner is None and string(block, "text") is not None:
            inner = block.get("text")
        content: Blocks = [core_block(item) for item in _blocks(inner)]
        failed = block.get("is_error")
        return result_draft(self._next_id(), call_id, content, failed if isinstance(failed, bool) else None)


def _blocks(content: JSON) -> list[dict[str, JSON]]:
    """Content as blocks: a string is one text block, and so is a string among blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, dict):
        return [content]
    if not isinstance(content, list):
        return []
    blocks: list[dict[str, JSON]] = []
    for item in content:
        if isinstance(item, str):
            blocks.append({"type": "text", "text": item})
        elif isinstance(item, dict):
            blocks.append(item)
    return blocks


def core_block(block: dict[str, JSON]) -> dict[str, JSON]:
    """One block in core shape. A block the core does not know keeps its type alone."""
    kind = string(block, "type") or "unknown"
    if kind == "text":
        text = block.get("text")
        return text_block(text if isinstance(text, str) else "")
    if kind == "thinking":
        return _reasoning(string(block, "thinking") or "")
    if kind == "redacted_thinking":
        return _reasoning("")
    if kind in ("image", "document"):
        source = mapping(block, "source")
        written = string(source, "data") if string(source, "type") == "text" else None
        return image_block(mediaType=string(source, "media_type")) if written is None else text_block(written)
    return {"type": kind if kind not in ("reasoning", "tool-call", "tool-result") else f"native-{kind}"}


def _reasoning(text: str) -> dict[str, JSON]:
    """Thinking: kept for exact reads, never text (SPEC 3.1)."""
    return {"type": "reasoning", "text": text}


def plain_text(content: JSON) -> str:
    """The text blocks of a message, one below the other; what tells a wrapper from a prompt."""
    return "\n".join(
        text
        for block in _blocks(content)
        if block.get("type") == "text" and isinstance(text := block.get("text"), str)
    )
