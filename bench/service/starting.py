"""How soon a service with an existing index is ready, after its imports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import trio

from ...actors.config import ServiceConfig
from ...actors.service import open_service
from .material import Material, header
from .measuring import Row, Scale, Spread

_CHILD: Final = """
import sys, time
from pathlib import Path
import trio
from session_query.actors.config import ServiceConfig
from session_query.actors.service import open_service

async def main():
    began, cpu = time.perf_counter(), time.process_time()
    async with open_service(ServiceConfig(data_dir=Path(sys.argv[1]))):
        print(time.perf_counter() - began, time.process_time() - cpu, flush=True)

trio.run(main)
"""


async def measure(directory: Path, scale: Scale) -> list[Row]:
    """A store of journaled sessions, opened again and again by new processes."""
    material = Material()
    sessions = max(2, scale.stored_sessions // 10)
    async with open_service(ServiceConfig(data_dir=directory / "data")) as service:
        for number in range(sessions):
            handle = await service.attach(header(f"started-{number}"))
            await handle.append(material.events(20))
            await handle.detach()
    wall, cpu = [], []
    for _ in range(scale.rounds):
        command = [sys.executable, "-c", _CHILD, str(directory / "data")]
        done = await trio.run_process(command, capture_stdout=True)
        one, other = done.stdout.split()
        wall.append(float(one))
        cpu.append(float(other))
    note = f"{sessions} sessions of 20 events"
    return [
        Row(case="start", what="ready after imports, wall", unit="s", ours=Spread.of(wall), gate=0.3,
            note=note),
        Row(case="start", what="ready after imports, CPU", unit="s", ours=Spread.of(cpu), note=note),
    ]  # fmt: skip
