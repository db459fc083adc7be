"""Short makers of events for tests: a log is a list of these, numbered by ``log``."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON


def event(type_: str, seq: int = 0, data: JSON = None, **more: JSON) -> Event:
    """An event; ``op`` and ``sources`` set surfaceOp and sourceEventSeqs, ``time`` its time."""
    op: JSON | UnsetType = more.get("op", UNSET)
    sources: JSON | UnsetType = more.get("sources", UNSET)
    time = more.get("time", 1000 + seq)
    assert isinstance(time, int)
    payload: JSON = {} if data is None else data
    return Event(type=type_, seq=seq, time=time, data=payload, surface_op=op, source_event_seqs=sources)


def text_block(text: str) -> JSON:
    return {"type": "text", "text": text}


def call_block(call_id: str, name: str = "grep", arguments: str = "{}") -> JSON:
    return {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}


def user(seq: int, *content: JSON, op: JSON = "append", kind: str = "user", **more: JSON) -> Event:
    """A user message; strings become text blocks."""
    data: JSON = {"id": f"m{seq}", "role": "user", "content": _blocks(content), "source": {"kind": kind}}
    return event("user/message", seq, data, op=op, **more)


def assistant(seq: int, *content: JSON, op: JSON = "append", **more: JSON) -> Event:
    source: JSON = {"kind": "model", "provider": "p", "model": "m"}
    message: JSON = {"id": f"m{seq}", "role": "assistant", "content": _blocks(content), "source": source}
    return event("assistant/message", seq, {"turn": 1, "step": 1, "message": message}, op=op, **more)


def tool_call(seq: int, call_id: str, name: str = "grep", arguments: str = "{}") -> Event:
    data: JSON = {"turn": 1, "step": 1, "callId": call_id, "name": name, "arguments": arguments}
    return event("tool/call", seq, data)


def tool_result(seq: int, call_id: str, *content: JSON, op: JSON = "append", **more: JSON) -> Event:
    """A tool result; ``is_error``, ``error``, ``message_id`` and ``meta`` set those fields."""
    block: dict[str, JSON] = {"type": "tool-result", "toolCallId": call_id, "content": _blocks(content)}
    if "is_error" in more:
        block["isError"] = more.pop("is_error")
    data: dict[str, JSON] = {
        "turn": 1,
        "step": 1,
        "message": {
            "id": more.pop("message_id", f"r-{call_id}"),
            "role": "user",
            "source": {"kind": "tool", "callId": call_id},
            "content": [block],
        },
    }
    data |= {key: more.pop(key) for key in ("error", "meta") if key in more}
    return event("tool/result", seq, data, op=op, **more)


def replace(start: int, end: int) -> JSON:
    return {"op": "replace", "start": start, "end": end}


def _blocks(content: tuple[JSON, ...]) -> list[JSON]:
    return [text_block(part) if isinstance(part, str) else part for part in content]
