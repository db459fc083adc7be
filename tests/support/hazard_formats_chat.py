"""How qwen, droid and copilot write a line; see ``hazard_formats.py``."""

from __future__ import annotations

import json
from typing import Final

from session_query.storage.readers.copilot import CopilotReader
from session_query.storage.readers.droid import DroidReader
from session_query.storage.readers.qwen import QwenReader
from support.hazards import HazardFormat, mark


def _stamp(number: int) -> str:
    return f"2026-05-06T07:{number // 60 % 60:02d}:{number % 60:02d}.000Z"


def _qwen_line(number: int) -> bytes:
    record = {
        "uuid": f"u-{number}",
        "parentUuid": f"u-{number - 1}" if number else None,
        "sessionId": "s-1",
        "timestamp": _stamp(number),
        "type": "user",
        "cwd": "/w",
        "message": {"role": "user", "parts": [{"text": f"say {mark(number)}"}]},
    }
    return json.dumps(record).encode()


QWEN: Final = HazardFormat(
    reader=QwenReader(),
    name="-w/chats/s-1.jsonl",
    head=(
        b'{"uuid":"u-head","parentUuid":null,"sessionId":"s-1","timestamp":"2026-05-06T06:59:00.000Z",'
        b'"type":"system","subtype":"attribution_snapshot","cwd":"/w","systemPayload":{}}',
    ),
    line=_qwen_line,
)


def _droid_line(number: int) -> bytes:
    record = {
        "type": "message",
        "id": f"m-{number}",
        "parentId": f"m-{number - 1}",
        "timestamp": _stamp(number),
        "message": {"role": "user", "content": [{"type": "text", "text": f"say {mark(number)}"}]},
    }
    return json.dumps(record).encode()


DROID: Final = HazardFormat(
    reader=DroidReader(),
    name="-w/s-1.jsonl",
    head=(b'{"type":"session_start","id":"s-1","title":"Saying","cwd":"/w"}',),
    line=_droid_line,
)


def _copilot_line(number: int) -> bytes:
    record = {
        "type": "user.message",
        "data": {"content": f"say {mark(number)}"},
        "id": f"e-{number}",
        "timestamp": _stamp(number),
        "parentId": f"e-{number - 1}",
    }
    return json.dumps(record).encode()


COPILOT: Final = HazardFormat(
    reader=CopilotReader(),
    name="s-1/events.jsonl",
    head=(
        b'{"type":"session.start","data":{"sessionId":"s-1","context":{"cwd":"/w"}},"id":"e",'
        b'"timestamp":"2026-05-06T07:00:00.000Z","parentId":null}',
    ),
    line=_copilot_line,
)

CHAT_FORMATS: Final = (QWEN, DROID, COPILOT)
