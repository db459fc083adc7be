"""How each JSONL format writes a line, for the hazard suite and the fuzz run. One entry a format."""

from __future__ import annotations

import json
from typing import Final

from session_query.storage.readers.claude_code import ClaudeCodeReader
from session_query.storage.readers.codex import CodexReader
from session_query.storage.readers.dsh import DshReader
from session_query.storage.readers.gemini import GeminiReader
from support.hazard_formats_agents import AGENT_FORMATS
from support.hazard_formats_chat import CHAT_FORMATS
from support.hazards import HazardFormat, mark


def _dsh_line(number: int) -> bytes:
    data = {
        "id": f"m-{number}",
        "role": "user",
        "content": [{"type": "text", "text": f"say {mark(number)}"}],
        "source": {"kind": "user"},
    }
    record = {"type": "user/message", "seq": number, "time": 1790000000000 + number, "data": data}
    return json.dumps({**record, "surfaceOp": "append"}).encode()


DSH: Final = HazardFormat(
    reader=DshReader(),
    name="--w--/s-1/session.jsonl",
    head=(
        b'{"type":"session","version":0,"id":"s-1","createdAt":1790000000000,"cwd":"/w","delegationDepth":0}',
    ),
    line=_dsh_line,
)

_UUID: Final = "0b1c2d3e-0000-4000-8000-00000000beef"


def _stamp(number: int) -> str:
    return f"2026-09-21T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"


def _claude_line(number: int) -> bytes:
    record = {
        "parentUuid": f"u-{number - 1}" if number else "u-head",
        "isSidechain": False,
        "cwd": "/w",
        "sessionId": _UUID,
        "version": "2.1.0",
        "type": "user",
        "message": {"role": "user", "content": f"say {mark(number)}"},
        "uuid": f"u-{number}",
        "timestamp": _stamp(number),
    }
    return json.dumps(record).encode()


CLAUDE: Final = HazardFormat(
    reader=ClaudeCodeReader(),
    name=f"-w/{_UUID}.jsonl",
    head=(
        b'{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"0b1c2d3e-0000-4000-8000-00000000beef",'
        b'"type":"user","message":{"role":"user","content":"begin"},"uuid":"u-head",'
        b'"timestamp":"2026-09-21T09:59:00.000Z"}',
    ),
    line=_claude_line,
)


def _codex_line(number: int) -> bytes:
    content = [{"type": "input_text", "text": f"say {mark(number)}"}]
    payload = {"type": "message", "role": "user", "content": content}
    return json.dumps({"timestamp": _stamp(number), "type": "response_item", "payload": payload}).encode()


CODEX: Final = HazardFormat(
    reader=CodexReader(),
    name=f"2026/09/21/rollout-2026-09-21T10-00-00-{_UUID}.jsonl",
    head=(
        b'{"timestamp":"2026-09-21T10:00:00.000Z","type":"session_meta","payload":{"id":'
        b'"0b1c2d3e-0000-4000-8000-00000000beef","timestamp":"2026-09-21T10:00:00Z","cwd":"/w"}}',
    ),
    line=_codex_line,
)


def _gemini_line(number: int) -> bytes:
    record = {
        "id": f"g-{number}",
        "timestamp": _stamp(number),
        "type": "user",
        "content": [{"text": f"say {mark(number)}"}],
    }
    return json.dumps(record).encode()


GEMINI: Final = HazardFormat(
    reader=GeminiReader(),
    name="project/chats/session-2026-09-21T10-00-0b1c2d3e.jsonl",
    head=(
        b'{"sessionId":"0b1c2d3e-0000-4000-8000-00000000beef","projectHash":"aa","kind":"main",'
        b'"startTime":"2026-09-21T10:00:00.000Z","lastUpdated":"2026-09-21T10:00:00.000Z"}',
    ),
    line=_gemini_line,
)


FORMATS: Final[dict[str, HazardFormat]] = {
    **{form.reader.format: form for form in (DSH, CLAUDE, CODEX, GEMINI, *CHAT_FORMATS)},
    **AGENT_FORMATS,
}
"""By format name. A format whose logs are not lines has no entry."""
