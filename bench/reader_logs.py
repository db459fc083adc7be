"""Synthetic logs of every JSONL format, for measuring readers: one turn is a prompt, a thought, a tool
call with a result of some KB, and an answer; a sixth of the turns have two calls. The same for the same size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from session_query.bench.reader_log_form import START_MS, Format, Obj, Turn
from session_query.bench.reader_logs_chat import CHAT_FORMATS


def _uuid(turn: Turn, step: int) -> str:
    return f"{turn.number:08x}-0000-4000-8000-{step:012x}"


def _dsh_head() -> list[Obj]:
    return [
        {
            "type": "session",
            "version": 0,
            "id": "bench-1",
            "createdAt": START_MS,
            "cwd": "/bench",
            "delegationDepth": 0,
        }
    ]


class _Dsh:
    """dsh numbers its events across the log, packed members included."""

    def __init__(self) -> None:
        self._seq = 0

    def head(self) -> list[Obj]:
        self._seq = 0
        return _dsh_head()

    def turn(self, turn: Turn) -> list[Obj]:
        n = turn.number + 1
        out = [self._at(turn, 0, "turn/start", {"turn": n})]
        user = {"id": f"u{n}", "role": "user", "content": [_block(turn.prompt)], "source": {"kind": "user"}}
        out.append(self._at(turn, 1, "user/message", user, "append"))
        out.append(self._at(turn, 1, "step/start", {"turn": n, "step": 1}))
        pieces = turn.answer.split(" ")
        first = self._seq
        row = {"turn": n, "step": 1, "index": 0, "dt": [3] * (len(pieces) - 1), "texts": pieces}
        out.append({"type": "text-chunks", "seq0": first, "time0": turn.time(1), "data": row})
        self._seq += len(pieces)
        blocks: list[Obj] = [{"type": "reasoning", "text": turn.thought}, _block(turn.answer)]
        blocks += [
            {"type": "tool-call", "id": call, "name": "read", "arguments": arguments}
            for call, arguments, _ in turn.calls
        ]
        message = {"id": f"a{n}", "role": "assistant", "content": blocks, "source": _MODEL}
        answer = {"turn": n, "step": 1, "message": message}
        out.append(self._at(turn, 2, "assistant/message", answer, "append", [[first, self._seq - 1]]))
        for call, arguments, output in turn.calls:
            made = {"turn": n, "step": 1, "callId": call, "name": "read", "arguments": arguments}
            out.append(self._at(turn, 3, "tool/call", made))
            block = {"type": "tool-result", "toolCallId": call, "content": [_block(output)], "isError": False}
            source = {"kind": "tool", "callId": call}
            result = {"id": f"r{call}", "role": "user", "source": source, "content": [block]}
            done = {"turn": n, "step": 1, "message": result}
            out.append(self._at(turn, 4, "tool/result", done, "append", [self._seq - 1]))
        out.append(self._at(turn, 5, "step/end", {"turn": n, "step": 1}))
        out.append(self._at(turn, 6, "turn/end", {"turn": n, "reason": {"kind": "completed"}}))
        return out

    def _at(
        self,
        turn: Turn,
        step: int,
        kind: str,
        data: Mapping[str, object],
        op: str | None = None,
        sources: object = None,
    ) -> Obj:
        obj: Obj = {"type": kind, "seq": self._seq, "time": turn.time(step), "data": data}
        if op is not None:
            obj["surfaceOp"] = op
        if sources is not None:
            obj["sourceEventSeqs"] = sources
        self._seq += 1
        return obj


_MODEL: Final = {"kind": "model", "provider": "p", "model": "m"}


def _block(text: str) -> Obj:
    return {"type": "text", "text": text}


def _claude(turn: Turn) -> list[Obj]:
    out: list[Obj] = []

    def add(step: int, kind: str, message: Obj, **more: object) -> None:
        parent = _uuid(turn, step - 1) if step else None
        shared = {"isSidechain": False, "cwd": "/bench", "sessionId": _CLAUDE_ID, "version": "2.1.0"}
        ids = {"parentUuid": parent, "uuid": _uuid(turn, step), "timestamp": turn.stamp(step)}
        out.append({**ids, **shared, "type": kind, "message": message, **more})

    add(0, "user", {"role": "user", "content": turn.prompt})
    add(
        1, "assistant", _claude_answer(turn, {"type": "thinking", "thinking": turn.thought, "signature": "s"})
    )
    add(2, "assistant", _claude_answer(turn, _block(turn.answer)))
    for k, (call, arguments, output) in enumerate(turn.calls):
        use = {"type": "tool_use", "id": call, "name": "Read", "input": json.loads(arguments)}
        add(3 + 2 * k, "assistant", _claude_answer(turn, use))
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        add(4 + 2 * k, "user", {"role": "user", "content": [result]}, toolUseResult={"stdout": output})
    return out


def _claude_answer(turn: Turn, block: Obj) -> Obj:
    usage = {"input_tokens": 10, "output_tokens": 20}
    return {"id": f"msg_{turn.number}", "role": "assistant", "model": "m", "content": [block], "usage": usage}


_CLAUDE_ID: Final = "0b1c2d3e-0000-4000-8000-00000000beef"


def _codex_head() -> list[Obj]:
    payload = {"id": _CLAUDE_ID, "timestamp": "2026-09-01T00:00:00Z", "cwd": "/bench", "cli_version": "0.140"}
    return [{"timestamp": "2026-09-01T00:00:00.000Z", "type": "session_meta", "payload": payload}]


def _codex(turn: Turn) -> list[Obj]:
    out: list[Obj] = []

    def item(step: int, kind: str, payload: Mapping[str, object]) -> None:
        out.append({"timestamp": turn.stamp(step), "type": kind, "payload": payload})

    prompt = [{"type": "input_text", "text": turn.prompt}]
    item(0, "response_item", {"type": "message", "role": "user", "content": prompt})
    item(0, "event_msg", {"type": "user_message", "message": turn.prompt})
    thought = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": turn.thought}],
        "content": None,
    }
    item(1, "response_item", thought)
    for call, arguments, output in turn.calls:
        made = {"type": "function_call", "call_id": call, "name": "shell", "arguments": arguments}
        item(2, "response_item", made)
        item(3, "response_item", {"type": "function_call_output", "call_id": call, "output": output})
    answer = [{"type": "output_text", "text": turn.answer}]
    item(4, "response_item", {"type": "message", "role": "assistant", "content": answer})
    item(4, "event_msg", {"type": "agent_message", "message": turn.answer})
    item(5, "event_msg", {"type": "token_count", "info": None})
    return out


_dsh = _Dsh()

FORMATS: Final[dict[str, Format]] = {
    "dsh": Format("--bench--/bench-1/session.jsonl", _dsh.head, _dsh.turn),
    "claude-code": Format(f"-bench/{_CLAUDE_ID}.jsonl", list, _claude),
    **CHAT_FORMATS,
    "codex": Format(f"2026/09/01/rollout-2026-09-01T00-00-00-{_CLAUDE_ID}.jsonl", _codex_head, _codex),
}
