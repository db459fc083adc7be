"""Memory of a service while it builds its index and while it serves."""

from __future__ import annotations

from pathlib import Path

import trio

from .child import child
from .lines import Line, open_line
from .material import Material, write_logs
from .measuring import Row, Scale, Spread, peak_bytes, resident_bytes

EVENTS = 300
SEARCHES = 300


async def measure(directory: Path, scale: Scale) -> list[Row]:
    """Build the index of logs of some size in a child, then search and read in it."""
    logs = directory / "logs"
    material = Material()
    sessions = max(2, int(scale.build_mb * 1e6 / EVENTS / 800))
    size = write_logs(logs, material, sessions, EVENTS)
    async with child("serve", str(directory / "data"), str(logs)) as service:
        began = trio.current_time()
        async with open_line(service.url) as line:
            with trio.fail_after(600):
                while not await _is_built(line, sessions):  # noqa: ASYNC110 - another process has no event
                    await trio.sleep(0.25)
            seconds = trio.current_time() - began
            building = peak_bytes(service.pid) / 2**20
            for number in range(SEARCHES):
                query = " ".join(material.text().split()[: 1 + number % 4]) or "zq"
                await line.call("session_search", {"query": query}, "/projects/1")
            serving = resident_bytes(service.pid) / 2**20
            peak = peak_bytes(service.pid) / 2**20
    note = f"{size / 1e6:.0f} MB of logs in {sessions} sessions, built in {seconds:.1f} s wall"
    return [
        Row(case="memory", what=what, unit="MiB", ours=Spread(value, value, value), gate=250.0, note=note)
        for what, value in (
            ("most while building", building),
            (f"after {SEARCHES} searches", serving),
            ("most in all", peak),
        )
    ]


async def _is_built(line: Line, sessions: int) -> bool:
    answer = await line.ask("query", method="search_sessions", params={"query": "zqnothing"})
    value = answer["value"]
    assert isinstance(value, dict)
    receipt = value["receipt"]
    assert isinstance(receipt, dict)
    return receipt.get("indexing") is None and receipt.get("sessions_in_reach") == sessions
