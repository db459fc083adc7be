"""Memory of a service at work: what grows with every appended event is bytes, and all else is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query import Caller, ServiceConfig, open_service
from session_query.actors.service import LiveHandle, Service
from session_query.actors.tracing import WEIGHT_MAX
from session_query.protocol.json_value import JSON
from session_query.protocol.signal import Signal
from session_query.storage import sqlite
from session_query.storage.sqlite import Connection
from support.held import held_bytes

CALLER = Caller(kind="operator")
LIVE_BYTES = 90
"""Of one event of a live session, in its fold and in the relations that traces left; a third are results."""
PAGES_KIB_MAX = 25 * 1024
"""Page caches of all connections of a service with two search readers and one more, together."""


def turn(seq: int) -> list[JSON]:
    """A prompt, an answer, and a tool's result."""
    text: JSON = [{"type": "text", "text": f"words {seq}"}]
    model: JSON = {"kind": "model", "provider": "p", "model": "m"}
    tool: JSON = {"kind": "tool", "callId": f"c{seq}"}
    block: JSON = [{"type": "tool-result", "toolCallId": f"c{seq}", "content": text}]
    prompt: JSON = {"id": f"m{seq}", "role": "user", "source": {"kind": "user"}, "content": text}
    answer: JSON = {"id": f"a{seq}", "role": "assistant", "source": model, "content": text}
    result: JSON = {"id": f"r{seq}", "role": "user", "source": tool, "content": block}
    return [
        {"type": "user/message", "time": seq, "surfaceOp": "append", "data": prompt},
        _step("assistant/message", seq + 1, answer),
        _step("tool/result", seq + 2, result),
    ]


def _step(kind: str, time: int, message: JSON) -> JSON:
    data: JSON = {"turn": 1, "step": 1, "message": message}
    return {"type": kind, "time": time, "surfaceOp": "append", "data": data}


async def work(service: Service, handle: LiveHandle, first: int, events: int) -> None:
    """Append, and trace what was appended."""
    batch = 300
    for start in range(first, first + events, batch):
        await handle.append([one for seq in range(start, start + batch, 3) for one in turn(seq)])
        await service.trace_event(CALLER, "busy", start + batch - 1, signal=Signal())


async def held(service: Service) -> int:
    house = await service.house()
    return held_bytes(house.live.all(), (await service.exact()).tracing._kept)


async def test_a_live_session_holds_a_few_bytes_for_each_event(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        handle = await service.attach({"version": 0, "id": "busy", "createdAt": 5, "cwd": "/a"})
        await work(service, handle, 0, 3_000)
        before = await held(service)
        await work(service, handle, 3_000, 3_000)
        assert (await held(service) - before) / 3_000 <= LIVE_BYTES
        assert (await service.exact()).tracing.weight == 6_000 < WEIGHT_MAX


async def test_a_session_that_ended_is_held_no_more(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        house = await service.house()
        empty = held_bytes(house.live)
        for name in ("a", "b", "c"):
            handle = await service.attach({"version": 0, "id": name, "createdAt": 5, "cwd": "/a"})
            await handle.append(turn(0))
            await handle.detach()
        assert held_bytes(house.live) - empty < 1_000


async def test_the_page_caches_have_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []
    opening = sqlite.open_uri

    def remembered(address: str) -> Connection:
        made.append(opening(address))
        return made[-1]

    monkeypatch.setattr(sqlite, "open_uri", remembered)
    async with open_service(ServiceConfig(data_dir=tmp_path, search_concurrency=2)) as service:
        await service.house()
        sizes = list(cache_sizes(made))
    assert len(sizes) == 16  # six readers and two writers, each of both files
    assert sum(sizes) <= PAGES_KIB_MAX


def cache_sizes(connections: list[Connection]) -> Iterator[int]:
    """The bound of each open connection's page cache, in KiB."""
    for connection in connections:
        try:
            row = connection.execute("PRAGMA cache_size").fetchone()
        except sqlite.Error:  # it has been closed: a look at a file before it is opened
            continue
        assert row is not None
        assert row[0] < 0, "in KiB, whatever the page size"
        yield -row[0]
