"""Reads over WebSocket beside a bare echo of the same library, and many connections."""

from __future__ import annotations

import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import trio

from ...protocol.json_value import JSON
from .child import Child, child
from .lines import Line, open_line
from .material import Material, header
from .measuring import Row, Scale, Spread, percentile, process_cpu_s, resident_bytes

LINES: Final = 16
SESSION: Final = "wired"
EVENTS: Final = 200
CONNECTING_AT_ONCE: Final = 32


async def _fill(line: Line, material: Material) -> None:
    await line.ask("attach", session=header(SESSION))
    await line.append(SESSION, 0, material.events(EVENTS))


def _question(number: int) -> dict[str, JSON]:
    arguments: JSON = {"session_id": SESSION, "seq": number * 7 % EVENTS}
    return {
        "type": "call", "id": number, "tool": "session_event_read", "arguments": arguments,
        "workspace": "/bench",
    }  # fmt: skip


async def _asked(lines: list[Line], questions: list[str]) -> float:
    """Ask all questions over all lines, each line one after the other. Returns wall seconds."""

    async def asking(line: Line, mine: list[str]) -> None:
        for question in mine:
            await line.socket.send_message(question)
            answer = await line.socket.get_message()
            assert '"error"' not in answer[:20], answer[:200]

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for at, line in enumerate(lines):
            nursery.start_soon(asking, line, questions[at :: len(lines)])
    return time.perf_counter() - began


async def measure_reads(directory: Path, scale: Scale) -> list[Row]:
    """``session_event_read`` calls, and echoes with answers of the same size, round by round."""
    questions = [json.dumps(_question(number)) for number in range(scale.requests)]
    ours: list[tuple[float, float]] = []
    echoes: list[tuple[float, float]] = []
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        service = await enter(child("serve", str(directory / "data")))
        lines = [await enter(open_line(service.url)) for _ in range(LINES)]
        await _fill(lines[0], Material())
        sizes = [len(await lines[0].send(_question(number))) for number in range(50)]
        echo = await enter(child("echo", str(sum(sizes) // len(sizes))))
        echoing = [await enter(open_line(echo.url, hello=False)) for _ in range(LINES)]
        await _asked(lines, questions[: LINES * 10])
        for _ in range(scale.rounds):
            for taken, peer, used in ((echoes, echo, echoing), (ours, service, lines)):
                cpu = process_cpu_s(peer.pid)
                wall_s = await _asked(used, questions)
                cpu_s = max(process_cpu_s(peer.pid) - cpu, 0.01)
                taken.append((scale.requests / cpu_s, scale.requests / wall_s))
    note = f"{LINES} lines, answers of {sum(sizes) // len(sizes)} characters; floor: bare echo of as many"
    rows = []
    for at, (what, unit) in enumerate((("rate by CPU of the server", "1/CPU s"), ("rate, wall", "1/s"))):
        mine, bare = [one[at] for one in ours], [one[at] for one in echoes]
        shares = Spread.of([one / other for one, other in zip(mine, bare, strict=True)])
        rows.append(
            Row(
                case="wire", what=f"session_event_read, {what}", unit=unit, ours=Spread.of(mine),
                floor=Spread.of(bare), ratio=shares, bound="at least", gate=0.6, note=note,
            )
        )  # fmt: skip
    return rows


async def _connected(stack: AsyncExitStack, url: str, count: int, *, hello: bool = True) -> list[Line]:
    """Many connections, opened some at a time."""
    return [await stack.enter_async_context(open_line(url, hello=hello)) for _ in range(count)]


async def measure_connections(directory: Path, scale: Scale) -> list[Row]:
    """Memory of idle connections beside those of a bare echo; then all of them busy at once."""
    async with child("serve", str(directory / "data")) as service, AsyncExitStack() as stack:
        (first,) = await _connected(stack, service.url, 1)
        await _fill(first, Material())
        for number in range(50):
            await first.send(_question(number))
        before = resident_bytes(service.pid)
        lines = await _connected(stack, service.url, scale.connections)
        await trio.sleep(1.0)
        ours = (resident_bytes(service.pid) - before) / scale.connections / 1024
        busy = await _busy(lines, service)
    async with child("echo", "100") as echo, AsyncExitStack() as stack:
        await _connected(stack, echo.url, 1, hello=False)
        before = resident_bytes(echo.pid)
        await _connected(stack, echo.url, scale.connections, hello=False)
        await trio.sleep(1.0)
        bare = (resident_bytes(echo.pid) - before) / scale.connections / 1024
    idle = Row(
        case="connections", what=f"memory of one of {scale.connections} idle", unit="KiB",
        ours=Spread(ours, ours, ours), gate=40.0, note=f"resident; the bare library {bare:.0f} KiB",
    )  # fmt: skip
    return [idle, *busy]


async def _busy(lines: list[Line], service: Child) -> list[Row]:
    """Every line asks as fast as it is answered, for some seconds: errors, and how even the progress is."""
    done = [0] * len(lines)
    errors = 0
    slow: list[float] = []

    async def asking(at: int, line: Line) -> None:
        nonlocal errors
        while True:
            began = trio.current_time()
            answer = await line.send(_question(at * 31 + done[at] + 1))
            slow.append((trio.current_time() - began) * 1e3)
            errors += '"result"' not in answer[:40]
            done[at] += 1

    seconds = 10.0 if len(lines) >= 1_000 else 1.0
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for at, line in enumerate(lines):
                nursery.start_soon(asking, at, line)
    count = len(lines)
    fair = min(done) / max(1, max(done))
    note = f"{sum(done)} reads in {seconds:.0f} s, {min(done)} to {max(done)} a line"
    return [
        Row(case="connections", what=f"errors of {count} busy ones", unit="errors", gate=0.0,
            ours=Spread(errors, errors, errors), note=note),
        Row(case="connections", what="slowest line by quickest", unit="share", bound="at least", gate=0.5,
            ours=Spread(fair, fair, fair), note=note),
        Row(case="connections", what=f"answer time of {count} busy ones, p50 and p99, wall", unit="ms",
            ours=Spread(percentile(slow, 0.5), min(slow, default=0.0), percentile(slow, 0.99)),
            note="low: quickest, high: p99; closed loop, the client's own time included"),
    ]  # fmt: skip
