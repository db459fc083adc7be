"""Exact reads by session and seq in the service, beside a bare point read of the same event."""

from __future__ import annotations

import random
from pathlib import Path

import trio

from ...actors.config import ServiceConfig
from ...actors.service import OPERATOR, Service, open_service
from ...protocol.event import Event
from ...protocol.signal import Signal
from ...storage import sqlite
from ...storage.journal.codec import Packer, decode_event
from ...storage.sqlite import Connection
from .material import Material, header
from .measuring import Clock, Row, Scale, Spread, clock, ratios

SESSIONS = 20
EVENTS = 300
TRACED = 1_000


async def measure(directory: Path, scale: Scale) -> list[Row]:
    """Reads of live sessions, then of stored ones, then traces in a long stored session."""
    material = Material()
    config = ServiceConfig(data_dir=directory / "data")
    async with open_service(config) as service:
        for number in range(SESSIONS):
            handle = await service.attach(header(f"read-{number}"))
            await handle.append(material.events(EVENTS))
        live = await _reads(service, directory, scale)
    async with open_service(config) as service:
        stored = await _reads(service, directory, scale)
        traces = await _traces(service, material, scale)
    return [
        _row("of a live session", *live, scale.reads),
        _row("of a stored session", *stored, scale.reads),
        traces,
    ]


def _row(what: str, ours: list[Clock], floor: list[Clock], count: int) -> Row:
    mine = [one.cpu_s * 1e6 / count for one in ours]
    bare = [one.cpu_s * 1e6 / count for one in floor]
    return Row(
        case="read", what=f"one event {what}, CPU", unit="us", ours=Spread.of(mine), floor=Spread.of(bare),
        ratio=ratios(mine, bare), gate=3.0, note="floor: two SELECTs by key and decoding, in this thread",
    )  # fmt: skip


async def _reads(service: Service, directory: Path, scale: Scale) -> tuple[list[Clock], list[Clock]]:
    rng = random.Random(3)
    wanted = [(rng.randrange(SESSIONS), rng.randrange(EVENTS - 1)) for _ in range(scale.reads)]
    connection = sqlite.connect_reader(directory / "data" / "journal.db")
    try:
        bare = BarePoint(connection)
        ours, floor = [], []
        for _ in range(scale.rounds):
            with clock() as taken:
                for number, seq in wanted:
                    assert bare.read(f"read-{number}", seq).seq == seq
            floor.append(taken)
            with clock() as taken:
                for number, seq in wanted:
                    window = await service.read_event(
                        OPERATOR, f"read-{number}", seq, before=0, after=0, signal=Signal()
                    )
                    assert window.target.seq == seq
            ours.append(taken)
    finally:
        connection.close()
    return ours, floor


class BarePoint:
    """An event by session and seq with nothing around it: find the session, find the event, decode it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        ((body,),) = connection.execute("SELECT body FROM dictionary").fetchall()
        self.packer = Packer({1: body}, 1)

    def read(self, session_id: str, seq: int) -> Event:
        ((sid,),) = self.connection.execute(
            "SELECT sid FROM session WHERE source = 'journal' AND place = ? AND id = ?",
            (b"/bench", session_id.encode()),
        ).fetchall()
        ((body,),) = self.connection.execute(
            "SELECT body FROM event WHERE key = ?", (sid << 32 | seq,)
        ).fetchall()
        return decode_event(self.packer.unpack(body))


async def _traces(service: Service, material: Material, scale: Scale) -> Row:
    """The relations of events of one journaled session of 1,000 events, detached, traced again and again."""
    handle = await service.attach(header("traced"))
    for first in range(0, TRACED, 100):
        await handle.append(material.events(100, first))
    await handle.detach()
    count = max(2, scale.reads // 40)
    taken = []
    for _ in range(scale.rounds):
        with clock() as one:
            for seq in range(count):
                await service.trace_event(OPERATOR, "traced", seq * 7 % TRACED, signal=Signal())
                await trio.lowlevel.checkpoint()
        taken.append(one.cpu_s * 1e3 / count)
    what = f"trace of an event among {TRACED}, CPU"
    return Row(case="read", what=what, unit="ms", ours=Spread.of(taken), note="journaled, detached")
