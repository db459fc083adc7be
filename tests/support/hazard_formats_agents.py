"""How acp, pi, kimi, goose and hermes write a line; see ``hazard_formats.py``."""

from __future__ import annotations

import json
from typing import Final

from session_query.storage.readers.acp import AcpReader
from session_query.storage.readers.goose import GooseReader
from session_query.storage.readers.hermes import HermesReader
from session_query.storage.readers.kimi import KimiReader
from session_query.storage.readers.pi import PiReader
from support.hazards import HazardFormat, mark

_BEGUN: Final = 1790000000


def _stamp(number: int) -> str:
    return f"2026-09-21T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"


def _acp_line(number: int) -> bytes:
    """A prompt a line, so that no two lines belong to one message."""
    prompt = [{"type": "text", "text": f"say {mark(number)}"}]
    params = {"sessionId": "s-1", "prompt": prompt}
    frame = {"jsonrpc": "2.0", "id": number + 10, "method": "session/prompt", "params": params}
    return json.dumps({**frame, "timestamp": _BEGUN + number}).encode()


ACP: Final = HazardFormat(
    reader=AcpReader(),
    name="w/capture.jsonl",
    head=(b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-1"},"timestamp":1789999999}',),
    line=_acp_line,
)


def _chunk_line(number: int) -> bytes:
    """Chunks of one answer: every line adds to the message of the first."""
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{mark(number)} "}}
    frame = {"method": "session/update", "params": {"sessionId": "s-1", "update": update}}
    return json.dumps({**frame, "timestamp": _BEGUN + number}).encode()


ACP_CHUNKS: Final = HazardFormat(
    reader=AcpReader(),
    name="w/chunks.jsonl",
    head=(b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-1"},"timestamp":1789999999}',),
    line=_chunk_line,
)


def _pi_line(number: int) -> bytes:
    record = {
        "type": "message",
        "id": f"e{number:03d}",
        "parentId": f"e{number - 1:03d}" if number else "head",
        "timestamp": _stamp(number),
        "message": {"role": "user", "content": [{"type": "text", "text": f"say {mark(number)}"}]},
    }
    return json.dumps(record).encode()


PI: Final = HazardFormat(
    reader=PiReader(),
    name="--w--/2026-09-21T10-00-00-000Z_s-1.jsonl",
    head=(b'{"type":"session","version":3,"id":"s-1","timestamp":"2026-09-21T10:00:00Z","cwd":"/w"}',),
    line=_pi_line,
)


def _kimi_line(number: int) -> bytes:
    message = {"role": "user", "content": [{"type": "text", "text": f"say {mark(number)}"}]}
    record = {"type": "context.append_message", "message": {**message, "origin": {"kind": "user"}}}
    return json.dumps({**record, "time": _BEGUN * 1000 + number}).encode()


KIMI: Final = HazardFormat(
    reader=KimiReader(),
    name="wd_w/session_1/agents/main/wire.jsonl",
    head=(b'{"type":"metadata","protocol_version":"1.4","created_at":1789999999000}',),
    line=_kimi_line,
)


def _goose_line(number: int) -> bytes:
    content = [{"type": "text", "text": f"say {mark(number)}"}]
    record = {"id": f"m{number}", "role": "user", "created": _BEGUN + number, "content": content}
    return json.dumps(record).encode()


GOOSE: Final = HazardFormat(
    reader=GooseReader(),
    name="20260921_1.jsonl",
    head=(
        b'{"id":"20260921_1","description":"Saying","working_dir":"/w","created_at":"2026-09-21T10:00:00Z",'
        b'"message_count":6}',
    ),
    line=_goose_line,
    time_keys=("created",),
)


def _hermes_line(number: int) -> bytes:
    record = {"role": "user", "content": f"say {mark(number)}", "timestamp": _stamp(number)}
    return json.dumps(record).encode()


HERMES: Final = HazardFormat(
    reader=HermesReader(),
    name="sessions/20260921_s1.jsonl",
    head=(b'{"role":"session_meta","model":"m"}',),
    line=_hermes_line,
)

AGENT_FORMATS: Final = {
    "acp": ACP,
    "acp-chunks": ACP_CHUNKS,
    "pi": PI,
    "kimi": KIMI,
    "goose": GOOSE,
    "hermes": HERMES,
}
"""By name in test ids; ``acp`` has two ways to write a log."""
