"""A clock that jumps: years ahead and back while sessions are published, logs followed and searches asked."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from session_query import Caller, ServiceConfig, Source, open_service
from session_query.actors.service import Service
from session_query.protocol.json_value import JSON
from session_query.protocol.signal import Signal

OPERATOR = Caller(kind="operator")
YEARS_S = 300_000_000
JUMPS_S = (0, YEARS_S, -YEARS_S, 5, -YEARS_S * 3, YEARS_S * 2)


def said(word: str, seq: int) -> dict[str, JSON]:
    content: JSON = [{"type": "text", "text": word}]
    source: JSON = {"kind": "user"}
    data: JSON = {"id": f"m{seq}", "role": "user", "source": source, "content": content}
    return {"type": "user/message", "time": seq, "surfaceOp": "append", "data": data}


async def _found(service: Service, word: str) -> list[str]:
    page = await service.call_tool(
        "session_search", {"query": word}, Caller(kind="workspace", workspaces=("/w",))
    )
    assert not page.is_error, page.text
    ago = page.receipt.checked_ago_s if page.receipt is not None else None
    assert ago is None or 0 <= ago < 60, "an age counts on a clock that only goes forward"
    return [name for name in ("live", "log") if f"session {name}" in page.text or f" {name}" in page.text]


async def test_nothing_waits_or_is_lost_when_the_clock_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset_s = 0
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real() + offset_s)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + offset_s * 1_000_000_000)
    log = tmp_path / "logs" / "--w--" / "log" / "session.jsonl"
    log.parent.mkdir(parents=True)
    head = {"type": "session", "version": 0, "id": "log", "createdAt": 5, "cwd": "/w"}
    log.write_text(json.dumps(head) + "\n")
    config = ServiceConfig(
        data_dir=tmp_path / "data", sources=(Source(format="dsh", root=tmp_path / "logs"),), watch=False
    )
    async with open_service(config) as service:
        handle = await service.attach({"version": 0, "id": "live", "createdAt": 5, "cwd": "/w"})
        for number, offset_s in enumerate(JUMPS_S):  # noqa: B007 - the patched clocks read it
            await handle.append([said(f"published{number}", number)])
            with log.open("a") as file:
                file.write(json.dumps({"seq": number, **said(f"written{number}", number)}) + "\n")
            await (await service.house()).freshness.refresh(full=False, progress=None, signal=Signal())
            window = await service.read_event(OPERATOR, "live", number, before=0, after=0, signal=Signal())
            assert window.target.seq == number
            await handle.detach()
            handle = await service.attach({"version": 0, "id": "live", "createdAt": 5, "cwd": "/w"})
            assert handle.next_seq == number + 1
    async with open_service(config) as service:
        await (await service.house()).freshness.refresh(full=False, progress=None, signal=Signal())
        for number in range(len(JUMPS_S)):
            for word in (f"published{number}", f"written{number}"):
                assert len(await _found(service, word)) == 1, word
