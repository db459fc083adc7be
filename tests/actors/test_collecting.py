"""A process of our own collects garbage seldom and does not look at what its start has made."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from session_query.actors.hosts.collecting import THRESHOLDS, calm_collector


@pytest.fixture
def own_collector() -> Iterator[None]:
    """The collector is one for the whole process: other tests get it back as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("own_collector")
def test_what_is_there_is_set_aside_and_cycles_still_go() -> None:
    calm_collector()
    assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() > 1_000

    class Cycle:
        own: object = None

    seen: list[object] = []
    gc.callbacks.append(lambda phase, info: seen.append(info["generation"]) if phase == "stop" else None)
    try:
        for _ in range(2 * THRESHOLDS[0]):
            cycle = Cycle()
            cycle.own = cycle
    finally:
        gc.callbacks.pop()
    assert 0 in seen


def test_an_embedded_service_leaves_the_collector_alone() -> None:
    code = (
        "import gc, trio; before = gc.get_threshold()\n"
        "from session_query import ServiceConfig, open_service\n"
        "async def main():\n"
        "    async with open_service(ServiceConfig()) as service:\n"
        "        await service.house()\n"
        "        assert gc.get_threshold() == before and gc.get_freeze_count() == 0\n"
        "trio.run(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
