"""Runtimes that append and agents that search and read, all at once over the wire; then the files are held
against each other. Five seconds usually; SESSION_QUERY_SOAK_S=60 or 600 for longer runs.

How long anything took is reported by the bench and judged by nobody here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
import trio

from session_query.bench.service.child import child
from session_query.bench.service.soak import verify
from session_query.bench.service.work import Plan, work

SOAK_S: Final = float(os.environ.get("SESSION_QUERY_SOAK_S", "5"))
GROWTH_MAX_BYTES: Final = 64 * 2**20


@pytest.mark.slow
async def test_fifty_runtimes_and_twenty_agents_work_beside_each_other(tmp_path: Path) -> None:
    plan = Plan(runtimes=50, agents=20, idle=30, seconds=SOAK_S)
    async with child("serve", str(tmp_path)) as service:
        seen = await work(service, plan)
    assert seen.errors == []
    assert len(seen.acknowledged) == plan.runtimes, "every runtime made progress"
    assert {"append", "search", "session_event_read"} <= seen.times.keys()
    verdict = await trio.to_thread.run_sync(verify, tmp_path, seen.acknowledged)
    assert verdict.lost == 0
    assert verdict.good, verdict.checks
    settled = seen.memory[len(seen.memory) // 3]
    assert seen.memory[-1] - settled < GROWTH_MAX_BYTES
