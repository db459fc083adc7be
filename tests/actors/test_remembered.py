"""What reads remember never changes an answer: random histories, asked twice, once without any memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from session_query import Caller, ServiceConfig, open_service
from session_query.actors import tracing
from session_query.actors.recent import KEPT_MAX, Recent
from session_query.actors.service import LiveHandle, Service
from session_query.actors.tracing import Tracing
from session_query.protocol.errors import QueryError
from session_query.protocol.filters import IdClause
from session_query.protocol.json_value import JSON
from session_query.protocol.signal import Signal
from session_query.protocol.wire.codes import WireError

WORKSPACES = ("/a", "/b")
IDS = ("one", "two", "journal:one", "journal//a:one")
CALLERS = (
    Caller(kind="operator"),
    Caller(kind="operator", workspaces=("/b",)),
    Caller(kind="workspace", workspaces=("/a",)),
)


def said(seq: int, op: JSON = "append", sources: JSON = None) -> dict[str, JSON]:
    source: JSON = {"kind": "user"}
    content: JSON = [{"type": "text", "text": f"text {seq}"}]
    event: dict[str, JSON] = {
        "type": "user/message",
        "time": seq,
        "surfaceOp": op,
        "data": {"id": f"m{seq}", "role": "user", "source": source, "content": content},
    }
    return event if sources is None else event | {"sourceEventSeqs": sources}


@contextmanager
def without_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(Recent, "get", lambda *_: None)
        patched.setattr(Tracing, "_find", lambda *_: None)
        yield


async def answers(service: Service) -> list[object]:
    """What every caller is told of every id and of some events; a failure is its code."""
    told: list[object] = []
    signal = Signal()
    for caller in CALLERS:
        for session_id in IDS:
            told.append(await service.filter_sessions(caller, (IdClause((session_id,)),), signal=signal))
            told.append(
                [str(item) for item in await service.read_titles(caller, [session_id], signal=signal)]
            )
            for seq in (0, 3, 7):
                try:
                    told.append(
                        await service.read_event(caller, session_id, seq, before=1, after=1, signal=signal)
                    )
                    told.append(await service.trace_event(caller, session_id, seq, signal=signal))
                except QueryError as failure:
                    told.append(failure.code)
    return told


@pytest.mark.parametrize("seed", range(4))
async def test_no_answer_depends_on_what_was_asked_before(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    live: dict[tuple[str, str], LiveHandle] = {}
    async with open_service(ServiceConfig()) as service:
        for _ in range(40):
            name, cwd = rng.choice(("one", "two")), rng.choice(WORKSPACES)
            await _step(service, rng, live, name, cwd)
            remembered = await answers(service)
            with without_memory(monkeypatch):
                assert remembered == await answers(service)


async def _step(
    service: Service, rng: random.Random, live: dict[tuple[str, str], LiveHandle], name: str, cwd: str
) -> None:
    handle = live.get((name, cwd))
    header: dict[str, JSON] = {"version": 0, "id": name, "createdAt": 5, "cwd": cwd}
    what = rng.choice(("attach", "append", "append", "replace", "detach", "forget"))
    if what == "attach" and handle is None:
        try:
            live[name, cwd] = await service.attach(header)
        except WireError:
            return  # it was forgotten
    elif what == "append" and handle is not None:
        await handle.append([said(handle.next_seq + at) for at in range(rng.randrange(1, 4))])
    elif what == "replace" and handle is not None and handle.next_seq:
        first = handle.next_seq - 1
        await handle.append([said(first + 1, {"op": "replace", "start": first, "end": first}, [first])])
    elif what == "detach" and handle is not None:
        await live.pop((name, cwd)).detach()
    elif what == "forget" and handle is None and rng.random() < 0.2:
        try:
            await service.forget(Caller(kind="operator", workspaces=(cwd,)), name, signal=Signal())
        except QueryError:
            return  # there is none


async def test_a_stored_log_that_came_back_and_grew_is_traced_anew() -> None:
    header: dict[str, JSON] = {"version": 0, "id": "one", "createdAt": 5, "cwd": "/a"}

    async with open_service(ServiceConfig()) as service:

        async def surface() -> str:
            return (await service.trace_event(CALLERS[0], "one", 1, signal=Signal())).target.surface

        handle = await service.attach(header)
        await handle.append([said(0), said(1)])
        assert await surface() == "current"
        await handle.detach()
        assert await surface() == "current"
        handle = await service.attach(header)
        await handle.append([said(2, {"op": "replace", "start": 1, "end": 1}, [1])])
        assert await surface() == "shadowed"
        await handle.detach()
        assert await surface() == "shadowed"


async def test_traces_of_many_logs_stay_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "WEIGHT_MAX", 25)
    async with open_service(ServiceConfig()) as service:
        for name in ("a", "b", "c", "d"):
            handle = await service.attach({"version": 0, "id": name, "createdAt": 5, "cwd": "/a"})
            await handle.append([said(seq) for seq in range(10)])
        kept = (await service.exact()).tracing
        for name in ("a", "b", "c", "a", "d"):
            trace = await service.trace_event(CALLERS[0], name, 9, signal=Signal())
            assert trace.target.seq == 9
            assert kept.weight == sum(one.relations.weight for one in kept._kept.values()) <= 25
        assert len(kept._kept) == 2


def test_what_is_kept_goes_with_its_version_and_is_bounded() -> None:
    recent = Recent[str]()
    recent.keep(1, "a", "A")
    assert recent.get(1, "a") == "A"
    assert recent.get(2, "a") is None
    recent.keep(2, "b", "B")
    assert (recent.get(2, "a"), recent.get(1, "a"), recent.get(2, "b")) == (None, None, "B")
    for number in range(KEPT_MAX + 1):
        recent.keep(2, number, "")
    assert len(recent._kept) <= KEPT_MAX
