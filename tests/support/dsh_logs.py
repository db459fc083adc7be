"""dsh logs for tests: records, logs, zstd frames, and reading them."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard

from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.dsh import READER
from support.reader_conformance import check_session, read_unit, units_of

HEADER: dict[str, JSON] = {
    "type": "session",
    "version": 0,
    "id": "s-1",
    "createdAt": 1000,
    "cwd": "/w",
    "delegationDepth": 0,
}


def lines(*records: dict[str, JSON]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def log(*records: dict[str, JSON], version: int = 0, **header: JSON) -> bytes:
    """A log of these records behind a header; keywords change the header."""
    return lines({**HEADER, "version": version, **header}, *records)


def read(tmp_path: Path, content: bytes, name: str = "session.jsonl") -> Collected:
    path = tmp_path / name
    path.write_bytes(content)
    (unit,) = units_of(READER, path)
    return read_unit(READER, unit)


def session_of(collected: Collected) -> CollectedSession:
    (session,) = collected.sessions.values()
    check_session(session)
    return session


def events(tmp_path: Path, *records: dict[str, JSON], version: int = 0, **header: JSON) -> list[Event]:
    return session_of(read(tmp_path, log(*records, version=version, **header))).events


def at(seq: int, kind: str, data: JSON, **more: JSON) -> dict[str, JSON]:
    return {"type": kind, "seq": seq, "time": 2000 + seq, "data": data, **more}


def user(seq: int, text: str, **more: JSON) -> dict[str, JSON]:
    data: JSON = {
        "id": f"u{seq}",
        "role": "user",
        "content": [{"type": "text", "text": text}],
        "source": {"kind": "user"},
    }
    return at(seq, "user/message", data, surfaceOp="append") | more


def result(seq: int, text: str, **more: JSON) -> dict[str, JSON]:
    block: JSON = {"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": text}]}
    message: JSON = {
        "id": "r",
        "role": "user",
        "source": {"kind": "tool", "callId": "c"},
        "content": [block],
    }
    return at(seq, "tool/result", {"turn": 1, "step": 1, "message": message}, surfaceOp="append") | more


def zstd(*batches: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return b"".join(compressor.compress(batch) for batch in batches)
