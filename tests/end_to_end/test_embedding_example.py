"""The README's embedding example, run inside a larger Trio host that also does other work."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import trio

import session_query
from support import embedding_host

ROOT = Path(session_query.__file__).parent
EXAMPLE = Path(embedding_host.__file__)


def test_the_readme_shows_this_very_code() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert EXAMPLE.read_text("utf-8") in blocks


def test_the_short_example_runs_as_it_stands_and_has_fifteen_lines() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 15
    done = subprocess.run([sys.executable, "-c", blocks[0]], capture_output=True, text=True, check=True)
    assert "the quick brown fox" in done.stdout


async def test_a_host_with_other_work_finds_what_its_agents_said() -> None:
    said: list[Any] = []
    beats: list[float] = []
    others: list[int] = []

    async def other_work() -> None:
        for number in range(1_000_000):
            others.append(number)
            await trio.sleep(0.001)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other_work)
        await embedding_host.main(said, beats)
        nursery.cancel_scope.cancel()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert beats
    assert others
    texts = {name: text for name, text, _ in said}
    assert texts.keys() == {"ada", "bob", "host"}
    for name, text, receipt in said:
        if receipt is not None:
            assert f". {name}: " not in text  # a search never returns its caller
            assert "notes" in text
            assert receipt.sessions_in_reach in (1, 2)  # the other agent may not have attached yet
    assert "foxes cannot be trusted" in texts["host"]


async def test_two_services_and_a_crash_of_the_host_leave_nothing_running(tmp_path: Path) -> None:
    config = session_query.ServiceConfig(data_dir=tmp_path / "d")
    threads = threading.active_count()
    for _ in range(2):
        try:
            async with (
                trio.open_nursery() as nursery,
                session_query.open_service(config) as one,
                session_query.open_service(session_query.ServiceConfig()) as other,
            ):
                await one.attach({"version": 0, "id": "x", "createdAt": 1, "cwd": "/proj"})
                await other.attach({"version": 0, "id": "x", "createdAt": 1, "cwd": "/proj"})
                nursery.start_soon(fail)
                await trio.sleep_forever()
        except* ZeroDivisionError:
            pass
    assert trio.lowlevel.current_statistics().tasks_living < 20
    assert threading.active_count() <= threads + 10  # Trio keeps a few idle worker threads


async def fail() -> None:
    raise ZeroDivisionError
