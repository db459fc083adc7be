"""Semantic text as SPEC 3 tells it, with plain recursion; for shallow events only."""

from __future__ import annotations

from typing import Any

from session_query.protocol.event import Event

SPACES = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def model_text(event: Event) -> str:
    """The text of a well-formed event."""
    return _join(_parts(event.type, event.data))


def _join(parts: list[str]) -> str:
    return "\n".join(part.strip(SPACES) for part in parts if part.strip(SPACES))


def _parts(kind: str, data: Any) -> list[str]:
    if kind == "user/message":
        return _blocks(data["content"])
    if kind == "assistant/message":
        return _blocks(data["message"]["content"])
    if kind == "tool/call":
        return [data["name"], data["arguments"]]
    if kind == "tool/result":
        error = data.get("error")
        return [
            _join(_blocks(data["message"]["content"])),
            *([error["name"], error["code"]] if error else []),
        ]
    return []


def _blocks(blocks: list[Any]) -> list[str]:
    parts: list[str] = []
    for block in blocks:
        if block["type"] == "text":
            parts.append(block["text"])
        elif block["type"] == "tool-call":
            parts += [block["name"], block["arguments"]]
        elif block["type"] == "tool-result":
            parts += _blocks(block["content"])
    return parts
