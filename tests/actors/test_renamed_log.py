"""A log whose name is its session's id is renamed: what is found of it can be read (SPEC 8)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from session_query.actors.config import ServiceConfig, Source
from session_query.actors.service import OPERATOR, Service, open_service
from session_query.protocol.records import SessionSearchRequest
from session_query.protocol.signal import Signal

RECORD = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "sessionId": "inside",
    "cwd": "/w",
    "timestamp": "2026-05-14T10:00:00.000Z",
    "message": {"role": "user", "content": "the walrus has tusks " + "and whiskers " * 2_000},
}


async def found(service: Service) -> list[str]:
    house = await service.house()
    await house.freshness.refresh(full=False, progress=None, signal=Signal())
    page = await service.search_sessions(SessionSearchRequest(query="walrus"))
    return [hit.header.id for hit in page.hits]


async def test_what_is_found_of_a_renamed_log_can_be_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "before.jsonl"
    log.write_bytes(msgspec.json.encode(RECORD) + b"\n")
    sources = (Source(format="claude-code", root=logs),)
    config = ServiceConfig(data_dir=tmp_path / "data", sources=sources, watch=False)
    async with open_service(config) as service:
        assert await found(service) == ["before"]
    log.rename(logs / "after.jsonl")
    for _ in range(2):  # once more with nothing of it in memory
        async with open_service(config) as service:
            assert await found(service) == ["after"]
            window = await service.read_event(OPERATOR, "after", 0, before=0, after=0, signal=Signal())
            assert "tusks" in str(window.events[0].data)
