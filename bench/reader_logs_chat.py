"""Synthetic logs of the formats whose records are chat messages (see ``reader_logs.py``)."""

from __future__ import annotations

import json
from typing import Final

from session_query.bench.reader_log_form import Format, Obj, Turn

_ID: Final = "0b1c2d3e-0000-4000-8000-00000000beef"
_BEGAN: Final = "2026-09-21T13:33:20.000Z"


class _Chain:
    """Records that name the one before them."""

    def __init__(self, key: str, parent: str) -> None:
        self._key, self._parent, self._last, self._count = key, parent, "", 0

    def link(self, obj: Obj) -> Obj:
        before, self._last = self._last, f"r-{self._count:07d}"
        self._count += 1
        return {self._key: self._last, self._parent: before or None, **obj}


_qwen_chain = _Chain("uuid", "parentUuid")
_droid_chain = _Chain("id", "parentId")
_pi_chain = _Chain("id", "parentId")
_copilot_chain = _Chain("id", "parentId")


def _qwen(turn: Turn) -> list[Obj]:
    def record(step: int, kind: str, role: str, parts: list[Obj]) -> Obj:
        shared = {"sessionId": _ID, "timestamp": turn.stamp(step), "type": kind, "cwd": "/bench"}
        return _qwen_chain.link({**shared, "message": {"role": role, "parts": parts}})

    out = [record(0, "user", "user", [{"text": turn.prompt}])]
    parts: list[Obj] = [{"text": turn.thought, "thought": True}, {"text": turn.answer}]
    parts += [
        {"functionCall": {"id": call, "name": "read_file", "args": json.loads(arguments)}}
        for call, arguments, _ in turn.calls
    ]
    out.append(record(1, "assistant", "model", parts))
    for step, (call, _, output) in enumerate(turn.calls):
        answer = {"id": call, "name": "read_file", "response": {"output": output}}
        out.append(record(2 + step, "tool_result", "user", [{"functionResponse": answer}]))
    return out


def _said(turn: Turn) -> list[Obj]:
    return [{"type": "thinking", "thinking": turn.thought}, {"type": "text", "text": turn.answer}]


def _droid(turn: Turn) -> list[Obj]:
    def record(step: int, role: str, content: list[Obj]) -> Obj:
        message = {"role": role, "content": content}
        return _droid_chain.link({"type": "message", "timestamp": turn.stamp(step), "message": message})

    answer: list[Obj] = [
        {"type": "thinking", "thinking": turn.thought},
        {"type": "text", "text": turn.answer},
    ]
    answer += [
        {"type": "tool_use", "id": call, "name": "Read", "input": json.loads(arguments)}
        for call, arguments, _ in turn.calls
    ]
    results: list[Obj] = [
        {"type": "tool_result", "tool_use_id": call, "content": output} for call, _, output in turn.calls
    ]
    return [
        record(0, "user", [{"type": "text", "text": turn.prompt}]),
        record(1, "assistant", answer),
        record(2, "user", results),
    ]


def _pi(turn: Turn) -> list[Obj]:
    def record(step: int, message: Obj) -> Obj:
        return _pi_chain.link({"type": "message", "timestamp": turn.stamp(step), "message": message})

    answer: list[Obj] = [
        {"type": "thinking", "thinking": turn.thought},
        {"type": "text", "text": turn.answer},
    ]
    answer += [
        {"type": "toolCall", "id": call, "name": "read", "arguments": json.loads(arguments)}
        for call, arguments, _ in turn.calls
    ]
    out = [
        record(0, {"role": "user", "content": [{"type": "text", "text": turn.prompt}]}),
        record(1, {"role": "assistant", "content": answer, "provider": "p", "model": "m"}),
    ]
    for call, _, output in turn.calls:
        content = [{"type": "text", "text": output}]
        out.append(
            record(2, {"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content})
        )
    return out


def _copilot(turn: Turn) -> list[Obj]:
    def record(step: int, kind: str, data: Obj) -> Obj:
        return _copilot_chain.link({"type": kind, "data": data, "timestamp": turn.stamp(step)})

    requests = [
        {"toolCallId": call, "name": "view", "arguments": json.loads(arguments)}
        for call, arguments, _ in turn.calls
    ]
    answer: Obj = {"messageId": f"m{turn.number}", "content": turn.answer, "toolRequests": requests}
    out = [record(0, "user.message", {"content": turn.prompt}), record(1, "assistant.message", answer)]
    for request, (call, _, output) in zip(requests, turn.calls, strict=True):
        out.append(record(2, "tool.execution_start", {"toolName": "view", **request}))
        done: Obj = {"toolCallId": call, "success": True, "result": {"content": output}}
        out.append(record(3, "tool.execution_complete", done))
    return out


def _gemini(turn: Turn) -> list[Obj]:
    calls = [
        {
            "id": call,
            "name": "read_file",
            "args": json.loads(arguments),
            "result": [
                {"functionResponse": {"id": call, "name": "read_file", "response": {"output": output}}}
            ],
            "status": "success",
            "timestamp": turn.stamp(2),
        }
        for call, arguments, output in turn.calls
    ]
    thought = {"subject": "thinking", "description": turn.thought, "timestamp": turn.stamp(1)}
    shared = {"id": f"g{turn.number}", "timestamp": turn.stamp(1), "type": "gemini", "model": "m"}
    return [
        {
            "id": f"u{turn.number}",
            "timestamp": turn.stamp(0),
            "type": "user",
            "content": [{"text": turn.prompt}],
        },
        {**shared, "content": turn.answer, "thoughts": [thought], "toolCalls": calls},
    ]


def _acp(turn: Turn) -> list[Obj]:
    def update(step: int, body: Obj) -> Obj:
        params = {"sessionId": _ID, "update": body}
        stamp = turn.time(step) / 1000
        return {"timestamp": stamp, "jsonrpc": "2.0", "method": "session/update", "params": params}

    prompt = {"sessionId": _ID, "prompt": [{"type": "text", "text": turn.prompt}]}
    asked: Obj = {"jsonrpc": "2.0", "id": turn.number + 2, "method": "session/prompt", "params": prompt}
    out: list[Obj] = [{"timestamp": turn.time(0) / 1000, **asked}]
    words = turn.answer.split(" ")
    for at in range(0, len(words), 6):
        piece = {"type": "text", "text": " ".join(words[at : at + 6]) + " "}
        out.append(update(1, {"sessionUpdate": "agent_message_chunk", "content": piece}))
    for call, arguments, output in turn.calls:
        shared: Obj = {"toolCallId": call, "title": "read", "kind": "read"}
        made: Obj = {"sessionUpdate": "tool_call", **shared, "rawInput": json.loads(arguments)}
        out.append(update(2, made))
        content = [{"type": "content", "content": {"type": "text", "text": output}}]
        done: Obj = {"toolCallId": call, "status": "completed", "content": content}
        out.append(update(3, {"sessionUpdate": "tool_call_update", **done}))
    out.append({"jsonrpc": "2.0", "id": turn.number + 2, "result": {"stopReason": "end_turn"}})
    return out


def _acp_head() -> list[Obj]:
    params = {"cwd": "/bench", "mcpServers": []}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params},
        {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": _ID}},
    ]


def _one(obj: Obj) -> list[Obj]:
    return [obj]


CHAT_FORMATS: Final[dict[str, Format]] = {
    "qwen": Format(f"-bench/chats/{_ID}.jsonl", list, _qwen),
    "droid": Format(
        f"-bench/{_ID}.jsonl",
        lambda: _one({"type": "session_start", "id": _ID, "title": "Bench", "cwd": "/bench"}),
        _droid,
    ),
    "pi": Format(
        f"--bench--/2026-09-21T13-33-20-000Z_{_ID}.jsonl",
        lambda: _one({"type": "session", "version": 3, "id": _ID, "timestamp": _BEGAN, "cwd": "/bench"}),
        _pi,
    ),
    "copilot": Format(
        f"{_ID}/events.jsonl",
        lambda: _one(
            _copilot_chain.link(
                {
                    "type": "session.start",
                    "data": {"sessionId": _ID, "startTime": _BEGAN, "context": {"cwd": "/bench"}},
                    "timestamp": _BEGAN,
                }
            )
        ),
        _copilot,
    ),
    "gemini": Format(
        f"bench/chats/session-2026-09-21T13-33-{_ID[:8]}.jsonl",
        lambda: _one({"sessionId": _ID, "projectHash": "aa", "startTime": _BEGAN, "kind": "main"}),
        _gemini,
    ),
    "acp": Format(f"%2Fbench/{_ID}/updates.jsonl", _acp_head, _acp),
}
"""By format name."""
