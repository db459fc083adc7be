"""Searches: with nothing changed, cancelled in their middle, two beside each other."""

from __future__ import annotations

import builtins
import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import trio

from ...actors.config import ServiceConfig, Source
from ...actors.service import Service, open_service
from ...protocol.json_value import JSON
from ...protocol.records import SessionSearchRequest
from ...protocol.signal import Signal
from ...storage import sqlite
from ...storage.sqlite import Connection
from .material import Material, header, write_logs
from .measuring import Clock, Row, Scale, Spread, clock, percentile

P = ParamSpec("P")
R = TypeVar("R")

_WATCHED: Final = ("stat", "lstat", "scandir", "listdir", "open")
STORED_EVENTS: Final = 6
COMMON: Final = "zqcommon"
SILENT_S: Final = 1.5
"""Without upkeep for so long, there is none left."""
TWO_TIMES: Final = 3
"""Rounds of two searches for each of another case: two threads see all that the machine does beside."""
SEARCHES: Final = 40


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count every look at a file system of this process: the calls that Python code makes for it."""
    seen: Counter[str] = Counter()
    places = [*((os, name) for name in _WATCHED), (builtins, "open"), (io, "open")]
    kept = [(module, name, getattr(module, name)) for module, name in places]

    def counting(name: str, call: Callable[P, R]) -> Callable[P, R]:
        def counted(*args: P.args, **kwargs: P.kwargs) -> R:
            seen[name] += 1
            return call(*args, **kwargs)

        return counted

    try:
        for module, name, call in kept:
            setattr(module, name, counting(name, call))
        yield seen
    finally:
        for module, name, call in kept:
            setattr(module, name, call)


async def measure_unchanged(directory: Path, scale: Scale) -> list[Row]:
    """Search over many stored logs of which none changes: what is looked at on the disk."""
    logs = directory / "logs"
    write_logs(logs, Material(), scale.stored_sessions, STORED_EVENTS)
    config = ServiceConfig(data_dir=directory / "data", sources=(Source(format="dsh", root=logs),))
    async with open_service(config) as service:
        await _indexed(service, scale.stored_sessions)
        taken, looks = [], []
        for _ in range(scale.rounds):
            with counted_calls() as seen, clock() as one:
                for _ in range(SEARCHES):
                    await service.search_sessions(SessionSearchRequest(query="zqnothing"))
            taken.append(one.cpu_s * 1e3 / SEARCHES)
            looks.append(float(seen.total()))
    what = f"over {scale.stored_sessions} unchanged logs"
    return [
        Row(case="unchanged", what=f"search {what}, CPU", unit="ms", ours=Spread.of(taken)),
        Row(
            case="unchanged", what=f"looks at the disk in {SEARCHES} searches", unit="calls",
            ours=Spread.of(looks), gate=0.0, note="stat, lstat, scandir, listdir, open; watch healthy",
        ),
    ]  # fmt: skip


async def _indexed(service: Service, sessions: int) -> None:
    """Wait until all logs are indexed and the watch has settled."""
    house = await service.house()
    await house.freshness.refresh(full=False, progress=None, signal=Signal())
    page = await service.search_sessions(SessionSearchRequest(query="zqnothing"))
    assert page.receipt.sessions_in_reach == sessions, page.receipt
    for _ in range(100):
        with counted_calls() as seen:
            await service.search_sessions(SessionSearchRequest(query="zqnothing"))
        if not seen:
            return
        await trio.sleep(0.1)


async def _filled(service: Service, events: int) -> None:
    """Live sessions of 150 events, every other event with one common word."""
    material = Material()
    for number in range(max(1, events // 150)):
        handle = await service.attach(header(f"filled-{number}"))
        texts = [material.text() + (f" {COMMON}" if seq % 2 else "") for seq in range(150)]
        await handle.append([material.event(seq, text) for seq, text in enumerate(texts)])
        await handle.detach()


async def _kept_up(service: Service) -> None:
    """Wait until the index's idle work is done: it would be a third thread."""
    steps: JSON = None
    while (now := _merge_steps(await service.statistics())) != steps:
        steps = now
        await trio.sleep(SILENT_S)


def _merge_steps(statistics: JSON) -> JSON:
    assert isinstance(statistics, dict)
    told = statistics["merge_steps"]
    assert isinstance(told, dict)
    return told["count"]


async def measure_cancel(directory: Path, scale: Scale) -> list[Row]:
    """Cancel a search in its middle: how long until its thread is quiet, and whether the next one works."""
    async with open_service(ServiceConfig(data_dir=directory / "data", search_concurrency=1)) as service:
        await _filled(service, scale.search_events)
        request = SessionSearchRequest(query=COMMON)
        with clock() as whole:
            await service.search_sessions(request)
        quiet, ended = [], 0
        for number in range(scale.cancels):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(service.search_sessions, request)
                    await trio.sleep(whole.wall_s * (0.1 + 0.6 * number / scale.cancels))
                    asked = time.perf_counter()
                    ended += not nursery.child_tasks
                    scope.cancel()
            quiet.append((time.perf_counter() - asked) * 1e3)
            await service.search_sessions(SessionSearchRequest(query="zqnothing"))  # the one reader again
    note = f"{scale.cancels} cancels of a search of {whole.wall_s * 1e3:.0f} ms, {ended} had ended before"
    return [
        Row(
            case="cancel", what=f"quiet after a cancel, {name}, wall", unit="ms", gate=gate, note=note,
            ours=Spread(value, min(quiet), max(quiet)),
        )
        for name, gate, value in (
            ("p50", 5.0, percentile(quiet, 0.5)), ("p99", 50.0, percentile(quiet, 0.99)),
        )
    ]  # fmt: skip


async def measure_two(directory: Path, scale: Scale) -> list[Row]:
    """Searches on one reader thread and on two: how much more is done in the same time.

    Beside it the same with bare full-text scans, which hold no lock of Python's: what the machine, with
    whatever else it does at that moment, gives to two threads at all.
    """
    gains, bare_gains, cores = [], [], []
    count = 6 if scale.search_events < 100_000 else 40
    config = ServiceConfig(data_dir=directory / "data", search_concurrency=2)
    async with open_service(config) as service:
        await _filled(service, scale.search_events)
        request = SessionSearchRequest(query=COMMON)
        await service.search_sessions(request)
        await _kept_up(service)
        connections = [sqlite.connect_reader(directory / "data" / "index.db") for _ in range(2)]
        for _ in range(TWO_TIMES * scale.rounds):
            taken = [await _beside(service, request, count, beside) for beside in (1, 2)]
            gains.append(taken[0].wall_s / taken[1].wall_s)
            cores.append(taken[1].cpu_s / taken[1].wall_s)
            scans = [await _scanned(connections[:beside], 8 * count // beside) for beside in (1, 2)]
            bare_gains.append(scans[0].wall_s / scans[1].wall_s)
        for connection in connections:
            connection.close()
    return [
        Row(
            case="two readers", what="throughput of two searches beside that of one, wall", unit="times",
            ours=Spread.of(gains), floor=Spread.of(bare_gains), bound="at least", gate=1.7,
            note=f"{Spread.of(cores).median:.2f} cores busy with two; floor: two bare scans beside one",
        )
    ]  # fmt: skip


async def _beside(service: Service, request: SessionSearchRequest, count: int, beside: int) -> Clock:
    left = iter(range(count))  # one supply for both, else the quicker one waits at the end

    async def several() -> None:
        for _ in left:
            await service.search_sessions(request)

    with clock() as taken:
        async with trio.open_nursery() as nursery:
            for _ in range(beside):
                nursery.start_soon(several)
    return taken


async def _scanned(connections: list[Connection], count: int) -> Clock:
    def scan(connection: Connection) -> None:
        for _ in range(count):
            connection.execute("SELECT count(*) FROM fts WHERE fts MATCH ?", (COMMON,)).fetchall()

    with clock() as taken:
        async with trio.open_nursery() as nursery:
            for connection in connections:
                nursery.start_soon(trio.to_thread.run_sync, scan, connection)
    return taken
