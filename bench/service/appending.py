"""Appending: one event and batches of sixteen, journal and index, beside a bare journal commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import trio

from ...actors.config import ServiceConfig
from ...actors.service import LiveHandle, Service, open_service
from ...protocol.envelope import event_from_json
from ...protocol.event import Event
from ...protocol.header import header_from_json
from ...protocol.json_value import JSON
from ...protocol.records import SessionSearchRequest
from ...storage.guard import open_guarded
from ...storage.journal import SCHEMA, Journal
from .material import Material, header, numbered
from .measuring import Clock, Row, Scale, Spread, clock, ratios

BATCH = 16
BESIDE = 16
"""Sessions that are appended to beside each other: their commits are put together."""
SHORT_SESSION = 100
TURNS_TIMES = 5
"""Sessions that get single appends while the index's turns are timed: of 72 turns the p99 is the longest."""


class BareJournal:
    """A journal file without anything around it: no index, no loop, no other thread."""

    def __init__(self, directory: Path) -> None:
        connection, _ = open_guarded(directory / "bare.db", SCHEMA, synchronous="FULL")
        self.connection = connection
        self.journal = Journal(connection)
        self.ids = numbered("bare")

    def appended(self, events: Sequence[Event], size: int) -> Clock:
        """Commit events in batches of ``size`` to a new session; the time of the commits."""
        known = header_from_json(header(next(self.ids)))
        sid = self.journal.attach("/bench", known, None, 0).sid
        with clock() as taken:
            for first in range(0, len(events), size):
                self.journal.append(sid, first, events[first : first + size])
        return taken


async def _appended(service: Service, handle: LiveHandle, events: Sequence[JSON], size: int) -> Clock:
    """Append in batches, then look: the last one is indexed by then, and that is paid for in here."""
    with clock() as taken:
        for first in range(0, len(events), size):
            await handle.append(events[first : first + size])
        await service.search_sessions(SessionSearchRequest(query="zqnothing", limit=1))
    return taken


async def _beside(service: Service, handles: Sequence[LiveHandle], events: Sequence[JSON]) -> Clock:
    """Single appends to several sessions beside each other, then look, as ``_appended``."""

    async def one(handle: LiveHandle) -> None:
        for event in events:
            await handle.append([event])

    with clock() as taken:
        async with trio.open_nursery() as nursery:
            for handle in handles:
                nursery.start_soon(one, handle)
        await service.search_sessions(SessionSearchRequest(query="zqnothing", limit=1))
    return taken


async def _through_a_thread(bare: BareJournal, events: Sequence[Event]) -> Clock:
    """The bare commit as any program with an event loop has to do it: each in a worker thread."""
    known = header_from_json(header(next(bare.ids)))
    sid = bare.journal.attach("/bench", known, None, 0).sid
    with clock() as taken:
        for first, event in enumerate(events):
            await trio.to_thread.run_sync(bare.journal.append, sid, first, [event])
    return taken


async def measure(directory: Path, scale: Scale) -> list[Row]:
    """All rows about appending. The sessions are new in every round, the service is one."""
    material = Material()
    raw = material.events(scale.appends * 4)
    made = [event_from_json(event, default_seq=seq) for seq, event in enumerate(raw)]
    bare = BareJournal(directory)
    ids = numbered("appended")
    names = ("one", "bare one", "thread one", "beside", "batch", "bare batch", "short", "long")
    taken: dict[str, list[Clock]] = {name: [] for name in names}
    one, many = scale.appends, scale.appends * 4
    config = ServiceConfig(data_dir=directory / "data")
    async with open_service(config) as service:
        long = await service.attach(header("long"))
        for first in range(0, scale.long_session, 500):
            await long.append(material.events(min(500, scale.long_session - first), first))
    async with open_service(config) as service:  # another one: its counters know nothing of the filling

        async def fresh() -> LiveHandle:
            return await service.attach(header(next(ids)))

        long = await service.attach(header("long"))
        await _appended(service, await fresh(), raw[:50], 1)  # warm
        for _ in range(scale.rounds):
            taken["bare one"].append(bare.appended(made[:one], 1))
            taken["one"].append(await _appended(service, await fresh(), raw[:one], 1))
            taken["thread one"].append(await _through_a_thread(bare, made[:one]))
            several = [await fresh() for _ in range(BESIDE)]
            taken["beside"].append(await _beside(service, several, raw[: one // 4]))
            taken["bare batch"].append(bare.appended(made, BATCH))
            taken["batch"].append(await _appended(service, await fresh(), raw[:many], BATCH))
            short = await fresh()
            await _appended(service, short, material.events(SHORT_SESSION), BATCH)
            taken["short"].append(await _appended(service, short, raw[: one // 2], 1))
            taken["long"].append(await _appended(service, long, raw[: one // 2], 1))
    async with open_service(config) as service:  # and one for single appends alone
        for _ in range(TURNS_TIMES):
            handle = await service.attach(header(next(ids)))
            for event in raw:
                await handle.append([event])
        statistics = await service.statistics()
    bare.connection.close()
    return [*_rows(taken, scale), *_index_rows(statistics)]


def _rows(taken: dict[str, list[Clock]], scale: Scale) -> list[Row]:
    def ms(name: str, count: int, *, wall: bool = False) -> list[float]:
        return [(one.wall_s if wall else one.cpu_s) * 1e3 / count for one in taken[name]]

    def row(what: str, ours: list[float], floor: list[float], gate: float | None, note: str) -> Row:
        return Row(
            case="append", what=what, unit="ms", ours=Spread.of(ours), floor=Spread.of(floor),
            ratio=ratios(ours, floor), gate=gate, note=note,
        )  # fmt: skip

    one, many = scale.appends, scale.appends * 4
    single, bare = ms("one", one), ms("bare one", one)
    batch = ms("batch", many)
    half = one // 2
    return [
        row("one event, CPU", single, bare, 1.5, "floor: the journal's commit alone, in the calling thread"),
        row("one event, CPU", single, ms("thread one", one), 1.5, "floor: that commit in a pool's thread"),
        row("one event, wall", ms("one", one, wall=True), ms("bare one", one, wall=True), None, ""),
        row(
            f"one event, {BESIDE} sessions beside each other, CPU", ms("beside", BESIDE * (one // 4)), bare,
            None, "commits are put together; floor: one commit alone, in the calling thread",
        ),
        Row(case="append", what="an event of 16, CPU", unit="ms", ours=Spread.of(batch), gate=0.2),
        row("an event of 16, CPU", batch, ms("bare batch", many), None, "floor: the commit alone"),
        row(
            f"one event to a session of {scale.long_session}, CPU",
            ms("long", half), ms("short", half), 1.25, f"floor: to a session of {SHORT_SESSION}",
        ),
    ]  # fmt: skip


def _index_rows(statistics: JSON) -> list[Row]:
    """What the index's part of an append took, as the service counts it."""
    assert isinstance(statistics, dict)
    rows = []
    for name, what, gates in (
        ("index_of_an_event", "index part of one event, its share of a turn", (2.0, 10.0)),
        ("index_turns", "that turn, of up to 16 single appends", (None, 10.0)),
        ("merge_steps", "merge step between appends", (None, None)),
    ):
        told = statistics[name]
        assert isinstance(told, dict)
        for field, gate in zip(("p99_ms", "max_ms"), gates, strict=True):
            value = float(str(told[field]))
            rows.append(
                Row(
                    case="append", what=f"{what}, {field[:3]}, CPU", unit="ms", gate=gate,
                    ours=Spread(value, value, value), note=f"of {told['count']}",
                )
            )  # fmt: skip
    return rows
