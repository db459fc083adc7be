"""Spilled results are swept by age and size while a service runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from session_query import ServiceConfig, open_service
from session_query.actors.policies.retention import keep_swept
from session_query.storage.spill import SPILL_FOLDER, SpillNotFound, SpillRetention, SpillStore, Swept

DAY_S = 86_400


def spilled(store: SpillStore, age_s: float) -> str:
    plan = store.plan("token:x", "session_search.txt")
    store.write(plan, b"words")
    then = time.time() - age_s
    os.utime(plan.path, (then, then))
    return plan.locator


async def test_a_running_service_deletes_what_is_too_old(tmp_path: Path) -> None:
    store = SpillStore(root=tmp_path / SPILL_FOLDER)
    old, young = spilled(store, 31 * DAY_S), spilled(store, 29 * DAY_S)
    async with open_service(ServiceConfig(data_dir=tmp_path, max_inline_bytes=100)):
        await _until(lambda: not _holds(store, old))
    assert not _holds(store, old)
    assert store.read_range(young, 0, 10).data == "words"


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await trio.sleep(0.01)


def _holds(store: SpillStore, locator: str) -> bool:
    try:
        store.read_range(locator, 0, 1)
    except SpillNotFound:
        return False
    return True


class Sweeping(SpillStore):
    """Counts sweeps; the first one fails."""

    def __init__(self) -> None:
        super().__init__(root=Path("nowhere"))
        object.__setattr__(self, "sweeps", [])

    def sweep(self, now_s: float, retention: SpillRetention) -> Swept:
        self.sweeps.append(threading.current_thread())  # type: ignore[attr-defined]
        if len(self.sweeps) == 1:  # type: ignore[attr-defined]
            raise PermissionError
        return Swept(files=2, bytes=10)


async def test_a_failed_sweep_is_told_and_tried_again(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    store = Sweeping()
    caplog.set_level("INFO")
    nursery.start_soon(lambda: keep_swept(store, SpillRetention(), every_s=0.001))
    await _until(lambda: len(caplog.messages) >= 2)
    nursery.cancel_scope.cancel()
    assert caplog.messages[:2] == [
        "spilled results could not be swept: PermissionError",
        "2 spilled results of 10 bytes were deleted",
    ]
    assert threading.main_thread() not in store.sweeps  # type: ignore[attr-defined]
