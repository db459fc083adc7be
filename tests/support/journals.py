"""A journal and short ways to fill it."""

from __future__ import annotations

from pathlib import Path

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.storage.guard import open_guarded
from session_query.storage.journal import (
    SCHEMA,
    Journal,
    JournalReader,
)

HEADER = SessionHeader(id="s-1", created_at=1_700_000_000_000, cwd="/proj/a")


def event(seq: int, text: JSON = "hello", kind: str = "user/message") -> Event:
    data: JSON = {"id": f"m{seq}", "role": "user", "content": [{"type": "text", "text": text}]}
    return Event(type=kind, seq=seq, time=1_700_000_000_000 + seq, data=data, surface_op="append")


def events(first: int, last: int) -> list[Event]:
    return [event(seq, f"text {seq} " * (seq % 7)) for seq in range(first, last + 1)]


def open_journal(path: Path | str) -> Journal:
    connection, _ = open_guarded(path, SCHEMA, synchronous="FULL")
    return Journal(connection)


def log(journal: JournalReader, sid: int) -> list[Event]:
    return [one for page in journal.read_all(sid) for one in page]
