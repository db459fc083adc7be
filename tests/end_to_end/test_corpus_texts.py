"""Texts drawn from real logs, read from the files themselves, are found by search (SPEC 6, 16.2, 16.7)."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from session_query import (
    Caller,
    EventSearchRequest,
    Service,
    ServiceConfig,
    SessionSearchRequest,
    Signal,
    Source,
    open_service,
)
from session_query.protocol.records import EventHit
from support.corpus import need_corpus

pytestmark = pytest.mark.slow
PIECES = 240
WORDS = re.compile(r"[^\W_]+", re.UNICODE)
HAN = re.compile(r"[\u4e00-\u9fff]{2,}")
OPERATOR = Caller(kind="operator")


@attrs.frozen
class Piece:
    """A text as it stands in a file: where from, what kind, and which raw record holds it."""

    format: str
    path: Path
    kind: str
    text: str
    record: object


def _claude(path: Path) -> Iterator[Piece]:
    for record in _records(path):
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            continue
        content = message.get("content")
        kind = "sub-agent " if record.get("isSidechain") else ""
        if isinstance(content, str):
            yield Piece("claude-code", path, kind + "prompt", content, record)
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "text" and isinstance(block.get("text"), str):
                yield Piece("claude-code", path, f"{kind}{record['type']} text", block["text"], record)
            if block.get("type") == "tool_result" and isinstance(block.get("content"), str):
                yield Piece("claude-code", path, kind + "tool output", block["content"], record)
            if block.get("type") == "tool_use" and isinstance(block.get("input"), dict):
                for value in block["input"].values():
                    if isinstance(value, str) and value.isascii() and '"' not in value and "\\" not in value:
                        yield Piece("claude-code", path, kind + "tool call", value.split("\n")[0], record)


def _codex(path: Path) -> Iterator[Piece]:
    for record in _records(path):
        payload = record.get("payload")
        if record.get("type") != "response_item" or not isinstance(payload, dict):
            continue
        for block in payload.get("content") or ():
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                yield Piece("codex", path, f"{payload.get('role')} message", block["text"], record)
        output = payload.get("output")
        if payload.get("type") == "function_call_output" and isinstance(output, str):
            if output.lstrip().startswith(("{", "[")):
                continue  # JSON around the text: its escapes are not what is said
            yield Piece("codex", path, "tool output", output, record)


def _dsh(path: Path) -> Iterator[Piece]:
    for record in _records(path):
        data = record.get("data")
        if not isinstance(data, dict):
            continue
        message = data if record.get("type") == "user/message" else data.get("message")
        if not isinstance(message, dict):
            continue
        for block in message.get("content") or ():
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
                yield Piece("dsh", path, str(record.get("type")), block["text"], record)


def _records(path: Path) -> Iterator[dict[str, object]]:
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"))
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _phrase(text: str, rng: random.Random) -> str | None:
    """A slice of the text that begins and ends on token borders: 3 to 8 words, or a run of Han."""
    han = HAN.findall(text)
    if han and rng.random() < 0.7:
        run = rng.choice(han)
        start = rng.randrange(len(run) - 1)
        return run[start : start + rng.randint(2, 6)]
    words = list(WORDS.finditer(text))
    if len(words) < 4:
        return None
    count = rng.randint(3, min(8, len(words)))
    first = rng.randrange(len(words) - count + 1)
    return text[words[first].start() : words[first + count - 1].end()]


def _draw(corpus: Path, rng: random.Random) -> list[tuple[Piece, str]]:
    pieces: list[Piece] = []
    for folder, extract in (("claude-code", _claude), ("codex", _codex), ("dsh", _dsh)):
        for path in sorted((corpus / folder).rglob("*.jsonl")):
            found = list(extract(path))
            pieces += rng.sample(found, min(12, len(found)))
    rng.shuffle(pieces)
    drawn: list[tuple[Piece, str]] = []
    kinds: dict[str, int] = {}
    for piece in pieces:
        phrase = _phrase(piece.text, rng)
        if phrase is None or len(phrase) > 400 or "\0" in phrase or kinds.get(piece.kind, 0) > PIECES // 4:
            continue
        kinds[piece.kind] = kinds.get(piece.kind, 0) + 1
        drawn.append((piece, phrase))
        if len(drawn) == PIECES:
            break
    return drawn


async def _sessions(service: Service, phrase: str) -> Iterator[str]:
    """Every session that holds the phrase, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        request = SessionSearchRequest(query=phrase, limit=100, cursor=cursor, has_cursor=cursor is not None)
        page = await service.search_sessions(request)
        found += [hit.header.id for hit in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            return iter(found)


async def _holds(service: Service, session_id: str, phrase: str, piece: Piece) -> bool:
    """Whether some hit of this session is an event made from the very record the text was drawn from."""
    exact = await service.exact()
    cursor: str | None = None
    hits: list[EventHit] = []
    while True:
        request = EventSearchRequest(
            session_id=session_id, query=phrase, limit=100, cursor=cursor, has_cursor=cursor is not None
        )
        page = await service.search_events(request)
        hits += page.hits
        cursor = page.next_cursor
        if cursor is None:
            break
    wanted = json.dumps(piece.record, sort_keys=True)
    for hit in hits:
        window = await exact.read_event(OPERATOR, session_id, hit.seq, before=20, signal=Signal())
        for event in (window.target, *window.events):
            data = event.data if isinstance(event.data, dict) else {}
            native = data.get("native")
            if native is not None and json.dumps(native, sort_keys=True) == wanted:
                return True
            inner = json.dumps(phrase, ensure_ascii=False)[1:-1]
            if (
                piece.format == "dsh"
                and event.seq == hit.seq
                and inner in json.dumps(data, ensure_ascii=False)
            ):
                return True
    return False


async def test_texts_of_real_logs_are_found_at_their_place() -> None:
    corpus = need_corpus()
    seed = int(os.environ.get("SESSION_QUERY_SEED", random.SystemRandom().randrange(2**32)))
    print(f"seed {seed} (repeat with SESSION_QUERY_SEED={seed})")
    drawn = _draw(corpus, random.Random(seed))
    assert len(drawn) >= 200
    formats = ("claude-code", "codex", "dsh")
    config = ServiceConfig(
        sources=tuple(Source(format=name, root=corpus / name) for name in formats), watch=False
    )
    missed: list[str] = []
    async with open_service(config) as service:
        house = await service.house()
        await house.freshness.refresh(full=False, progress=None, signal=Signal())
        for piece, phrase in drawn:
            sessions = list(await _sessions(service, phrase))
            if not any([await _holds(service, session, phrase, piece) for session in sessions]):
                missed.append(f"{piece.path.relative_to(corpus)} {piece.kind}: {phrase!r} in {sessions[:3]}")
    assert not missed, f"seed {seed}: {len(missed)} of {len(drawn)} not found:\n" + "\n".join(missed[:20])
