"""Reads answered in one step say, word for word, what the ordinary way says, or leave it to it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio.testing

from session_query import Caller, ServiceConfig, open_service
from session_query.actors.quick_reads import QUICK_BYTES, READ_TOOL
from session_query.actors.service import LiveHandle, Service
from session_query.protocol.errors import QueryError
from session_query.protocol.header import header_from_json
from session_query.protocol.json_value import JSON
from session_query.protocol.signal import Signal
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Encoding
from session_query.protocol.wire.codes import WireError
from support.providers import FakeProvider
from support.wire_edge import open_edge
from support.wire_fake import FakeService

IDS = ("one", "two", "journal:one", "journal//a:one", "nobody")
SEQS: tuple[JSON, ...] = (0, 1, 4, 9, -1, 2.0, True, None, "1")
WINDOWS: tuple[dict[str, JSON], ...] = ({}, {"before": 1, "after": 2}, {"before": 51}, {"after": None})


def header(name: str, cwd: str | None, **more: JSON) -> dict[str, JSON]:
    made: dict[str, JSON] = {"version": 0, "id": name, "createdAt": 5, **more}
    return made if cwd is None else {**made, "cwd": cwd}


def agent(name: str, cwd: str | None) -> Caller:
    return Caller(kind="agent", header=header_from_json(header(name, cwd)), source="journal")


CALLERS = (
    Caller(kind="operator"),
    Caller(kind="operator", workspaces=("/b",)),
    Caller(kind="workspace", workspaces=("/a",)),
    Caller(kind="workspace", workspaces=("relative",)),
    Caller(kind="workspace"),
    agent("one", "/a"),
    agent("one", None),
)


def said(seq: int, text: str = "text") -> dict[str, JSON]:
    content: JSON = [{"type": "text", "text": f"{text} {seq} `x` ```"}]
    data: JSON = {"id": f"m{seq}", "role": "user", "source": {"kind": "user"}, "content": content}
    return {"type": "user/message", "time": seq, "surfaceOp": "append", "data": data}


def titled(seq: int, title: str) -> dict[str, JSON]:
    source: JSON = {"kind": "user"}
    return {
        "type": "session/title",
        "time": seq,
        "data": {"title": title, "messageSeqs": [], "source": source},
    }


async def compared(service: Service, caller: Caller, arguments: dict[str, JSON]) -> bool:
    """Whether a read was answered at once; if so, with exactly the ordinary result."""
    quick = service.read_nowait(caller, arguments)
    ordinary = await service.call_tool(READ_TOOL, arguments, caller, owner="o")
    if quick is not None:
        assert not ordinary.is_error, (caller, arguments, ordinary.text)
        assert ordinary.text == quick
        assert ordinary.spilled is None
    return quick is not None


async def all_compared(service: Service) -> int:
    """Every caller, id, seq and window; how many were answered at once."""
    quick = 0
    for caller in CALLERS:
        for session_id in IDS:
            for seq in SEQS:
                window = WINDOWS[quick % 2 if type(seq) is int else 2]
                quick += await compared(service, caller, {"session_id": session_id, "seq": seq, **window})
        quick += await compared(service, caller, {"seq": 1})
    return quick


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happened_before_both_ways_say_the_same(seed: int) -> None:
    rng = random.Random(seed)
    live: dict[tuple[str, str], LiveHandle] = {}
    quick = 0
    async with open_service(ServiceConfig()) as service:
        for _ in range(20):
            await _step(service, rng, live, rng.choice(("one", "two")), rng.choice(("/a", "/b")))
            quick += await all_compared(service)
    assert quick > 40


async def _step(
    service: Service, rng: random.Random, live: dict[tuple[str, str], LiveHandle], name: str, cwd: str
) -> None:
    handle = live.get((name, cwd))
    what = rng.choice(("attach", "append", "append", "title", "detach", "forget"))
    if handle is None and what != "forget":
        try:
            live[name, cwd] = await service.attach(header(name, cwd))
        except WireError:
            return  # it was forgotten
    elif handle is None:
        try:
            await service.forget(Caller(kind="operator", workspaces=(cwd,)), name, signal=Signal())
        except QueryError:
            return  # there is none
    elif what == "title":
        await handle.append([titled(handle.next_seq, f"title {rng.random()}")])
    elif what == "detach":
        await live.pop((name, cwd)).detach()
    else:
        await handle.append([said(handle.next_seq + at) for at in range(rng.randrange(1, 4))])


async def test_live_and_stored_sessions_are_read_at_once_and_mounted_ones_are_not() -> None:
    caller, read = CALLERS[2], {"session_id": "one", "seq": 1}
    async with open_service(ServiceConfig()) as service:
        assert service.read_nowait(caller, read) is None, "the store is not open yet"
        handle = await service.attach(header("one", "/a"))
        await handle.append([said(0), said(1), said(2), titled(3, "called")])
        assert not await compared(service, caller, read), "which mounts there are was not looked at yet"
        assert await compared(service, caller, read)
        await handle.detach()
        assert await compared(service, caller, read)
        assert '"called"' in str(service.read_nowait(caller, read))
        assert not await compared(service, caller, {"session_id": "one", "seq": 3}), "closers may follow"
        service.mount("elsewhere", FakeProvider())
        assert not await compared(service, caller, read)
        service.unmount("elsewhere")
        await service.call_tool(READ_TOOL, read, caller)
        assert await compared(service, caller, read)
        await service.end()
        assert service.read_nowait(caller, read) is None


async def test_what_is_large_spills_or_fails_goes_the_ordinary_way(tmp_path: Any) -> None:
    config = ServiceConfig(data_dir=tmp_path, max_inline_bytes=2_000)
    caller = CALLERS[2]
    async with open_service(config) as service:
        handle = await service.attach(header("one", "/a"))
        texts = ("short", "x" * 1_500, "é" * 950, "x" * 3_000, "x" * 2 * QUICK_BYTES)
        await handle.append([said(seq, text) for seq, text in enumerate(texts)])
        await compared(service, caller, {"seq": 0, "session_id": "one"})
        asked = [{"session_id": "one", "seq": seq} for seq in range(len(texts))]
        assert [await compared(service, caller, one) for one in asked] == [True, True, False, False, False]
        house = await service.house()
        house.exact.pool.under_way = 10**6
        assert service.read_nowait(caller, asked[0]) is None, "the pool is full: it says so"
        house.exact.pool.under_way = 0


async def test_sessions_kept_in_memory_go_the_ordinary_way() -> None:
    async with open_service(ServiceConfig(journal=False)) as service:
        handle = await service.attach(header("one", "/a"))
        await handle.append([said(0)])
        assert not await compared(service, CALLERS[2], {"session_id": "one", "seq": 0})


async def test_other_spellings_of_a_workspace_are_looked_up_first() -> None:
    async with open_service(ServiceConfig(canonical_workspaces=True)) as service:
        handle = await service.attach(header("one", "/a"))
        await handle.append([said(0)])
        assert not await compared(service, CALLERS[2], {"session_id": "one", "seq": 0})


# ---------------------------------------------------------------- on a connection


def call(request_id: int, **more: Any) -> m.Call:
    return m.Call(id=request_id, arguments={"do": ""}, **({"tool": "read", "workspace": "/w"} | more))


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_an_answer_at_once_needs_no_task_and_is_counted(encoding: Encoding) -> None:
    service = FakeService(quick="here it is")
    async with open_edge(service) as edge, edge.peer(encoding) as peer:
        for number in (1, 2):
            await peer.send(call(number))
        assert [await peer.receive(), await peer.receive()] == [
            m.Result(id=number, text="here it is", card={"kind": "read"}) for number in (1, 2)
        ]
        assert service.calls == []
        assert service.quick_callers == [Caller(kind="workspace", workspaces=("/w",))] * 2
        told = edge.server.statistics()
        assert told["requests"]["call"] == 2  # type: ignore[index, call-overload]
        counts = [one["count"] for one in told["request_times"].values()]  # type: ignore[union-attr, index, call-overload]
        assert sum(counts) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("quick", "more"),
    [
        ("here \ud800 it is", {}),  # takes Python to encode
        ("x" * 5_000, {}),  # more than one part
        ("here", {"workspace": "/foreign"}),
        ("here", {"workspace": None}),
        ("here", {"reach": ["/w"]}),
        ("here", {"workspace": None, "reach": ["/w"]}),
        ("here", {"workspace": None, "agent": "nobody"}),
        ("here", {"agent": "nobody"}),
        ("here", {"tool": "none"}),
    ],
)
async def test_everything_else_is_told_the_ordinary_way(quick: str, more: dict[str, Any]) -> None:
    answers = []
    for service in (FakeService(quick=quick), FakeService()):
        async with open_edge(service, part_bytes=4_096) as edge, edge.peer() as peer:
            await peer.send(call(1, **more))
            answers.append(await peer.receive())
    assert answers[0] == answers[1]


async def test_answers_at_once_wait_in_tasks_while_the_peer_does_not_read() -> None:
    service = FakeService(quick="x" * 1_000)
    async with open_edge(service, unsent_bytes=10_000, in_flight=4) as edge, edge.peer() as peer:
        for number in range(1, 101):
            await peer.send(call(number))
        await trio.testing.wait_all_tasks_blocked()
        assert max(one._outbox.unsent_bytes for one in edge.server.connections.values()) <= 20_000
        codes = [getattr(await peer.receive(), "code", "") for _ in range(100)]
    assert set(codes) <= {"", "BUSY"}
