"""Headers and logs as a runtime sends them: plain JSON, camelCase."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from session_query import Event, SessionHeader
from session_query.protocol.envelope import event_to_json
from session_query.protocol.header import header_from_json
from session_query.protocol.json_value import JSON
from support import events as make

HERE, THERE, ELSEWHERE = "/proj/here", "/proj/there", "/proj/elsewhere"
T0 = 1_930_457_228_000  # 2031-03-05T06:07:08Z


def head(session_id: str, cwd: str | None = HERE, at: int = T0, **more: Any) -> dict[str, JSON]:
    """A header; ``parent``, ``seed``, ``origin``, ``depth`` and ``preset`` set the optional fields."""
    fields: dict[str, JSON] = {"version": 0, "id": session_id, "createdAt": at}
    if cwd is not None:
        fields["cwd"] = cwd
    names = {
        "parent": "parentSession",
        "seed": "seedLength",
        "origin": "origin",
        "depth": "delegationDepth",
        "preset": "agentPreset",
    }
    return fields | {names[name]: value for name, value in more.items()}


def header(session_id: str, cwd: str | None = HERE, at: int = T0, **more: Any) -> SessionHeader:
    """The same as an object."""
    return header_from_json(head(session_id, cwd, at, **more))


def log(*events: Event, start: int = 0) -> list[Event]:
    """Events numbered from ``start``; times follow the numbers."""
    return [
        Event(
            type=event.type,
            seq=seq,
            time=T0 + seq,
            data=event.data,
            surface_op=event.surface_op,
            source_event_seqs=event.source_event_seqs,
        )
        for seq, event in enumerate(events, start)
    ]


def sent(events: Iterable[Event]) -> list[JSON]:
    """Events as JSON records."""
    return [event_to_json(event) for event in events]


def prompt_record(text: str, *, id_: str, time: int = 1) -> dict[str, Any]:
    """One user message as a foreign client writes it, without a seq."""
    content = [{"type": "text", "text": text}]
    data = {"id": id_, "role": "user", "source": {"kind": "user"}, "content": content}
    return {"type": "user/message", "time": time, "surfaceOp": "append", "data": data}


def prompts(*texts: str, start: int = 0) -> list[Event]:
    """A log of user messages."""
    return log(*(make.user(start + n, text) for n, text in enumerate(texts)), start=start)


def title(text: str, **changes: JSON) -> Event:
    data: dict[str, JSON] = {"title": text, "messageSeqs": [], "source": {"kind": "user"}}
    return make.event("session/title", 0, data | changes)


def turn(*inside: Event, end: bool = True) -> list[Event]:
    """A turn with one step around some events."""
    closing = [
        make.event("step/end", 0, {"turn": 1, "step": 1}),
        make.event("turn/end", 0, {"turn": 1, "reason": {"kind": "completed"}}),
    ]
    return [
        make.event("turn/start", 0, {"turn": 1}),
        make.event("step/start", 0, {"turn": 1, "step": 1}),
        *inside,
        *(closing if end else []),
    ]
