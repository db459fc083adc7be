"""Statistics of a real service, and the same numbers as Prometheus text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from session_query import Caller, Service, ServiceConfig, SessionSearchRequest, open_service
from session_query.actors.edge.request_times import BOUNDS_S, CLASSES, Histogram, request_class
from session_query.actors.metrics import PREFIX, prometheus_text
from session_query.actors.queries import run_method
from session_query.protocol.json_value import JSON
from session_query.protocol.signal import Signal
from session_query.protocol.tools.schemas import SPECS
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.identity import EVERYTHING
from session_query.protocol.wire.methods import METHODS
from support import exposition
from support.wire_edge import Edge, open_edge
from support.wire_fake import FakeService

HEADER = {"version": 0, "id": "s1", "createdAt": 1, "cwd": "/proj"}
EVENT = {
    "type": "user/message",
    "time": 1,
    "surfaceOp": "append",
    "data": {
        "id": "m1",
        "role": "user",
        "source": {"kind": "user"},
        "content": [{"type": "text", "text": "the quick brown fox"}],
    },
}


def parsed(text: str) -> dict[str, float]:
    """Sample name with its labels, as written, to value; fails on anything that is not as it should be."""
    found: dict[str, float] = {}
    for family in exposition.read(text).values():
        for (name, labels), value in family.samples.items():
            inside = ",".join(f'{label}="{content}"' for label, content in labels)
            found[f"{name}{{{inside}}}" if inside else name] = value
    return found


async def statistics(service: Service) -> Any:
    return await run_method(service, "statistics", {}, reach=EVERYTHING, lane="test", signal=Signal())


async def test_statistics_tell_what_was_done(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        before = (await statistics(service))["service"]
        live = await service.attach(HEADER)
        await live.append([EVENT])
        await live.append([EVENT | {"time": 2}])
        await service.search_sessions(SessionSearchRequest(query="brown fox"))
        told = (await statistics(service))["service"]
    assert told["open"] is True
    assert told["live_sessions"] == 1
    assert told["appends"] - before["appends"] == 2
    assert told["append_groups"] <= told["appends"] <= told["writes"]
    assert told["searches"] == {"queued": 0, "running": 0, "served": 1, "refused": 0}
    assert told["reads_under_way"] == 0
    assert told["index"]["generation"] > before["index"]["generation"]
    assert told["index"]["sessions"] == 1
    assert told["index"]["lost_records"] == told["index"]["unread_sessions"] == 0
    assert told["index"]["bytes"] > 0
    assert told["sources"]["checked_ago_s"] is None
    assert told["memory"]["peak_bytes"] > 1_000_000
    assert told["disk_free_bytes"] > 0
    assert told["uptime_s"] >= before["uptime_s"]


async def test_a_service_that_is_not_open_yet_says_so(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path, open_at="first-search")) as service:
        told = (await statistics(service))["service"]
        assert (told["open"], "index" in told) == (False, False)
        assert parsed(prometheus_text({"service": told}))[f"{PREFIX}up"] == 0


async def test_health_is_the_same_whatever_the_service_holds() -> None:
    async with open_service(ServiceConfig()) as service:
        assert set(service.health()) == {"ready", "uptime_s"}  # type: ignore[arg-type]
        live = await service.attach(HEADER)
        await live.append([EVENT])
        health: Any = await run_method(service, "health", {}, reach=EVERYTHING, lane="test", signal=Signal())
        assert (set(health), health["ready"]) == ({"ready", "uptime_s"}, True)
        await service.close()
        assert service.health()["ready"] is False  # type: ignore[call-overload, index]


async def test_the_same_numbers_as_prometheus_text(tmp_path: Path) -> None:
    async with open_service(ServiceConfig(data_dir=tmp_path)) as service:
        live = await service.attach(HEADER)
        await live.append([EVENT])
        caller = Caller(kind="workspace", workspaces=("/proj",))
        await service.call_tool("session_search", {"query": "fox"}, caller)
        told = await statistics(service)
        text = await run_method(service, "metrics", {}, reach=EVERYTHING, lane="test", signal=Signal())
    assert isinstance(text, str)
    numbers = parsed(text)
    assert numbers[f"{PREFIX}up"] == 1
    assert numbers[f"{PREFIX}appends_total"] == told["service"]["appends"]
    assert numbers[f"{PREFIX}searches_served_total"] == 1
    assert numbers[f"{PREFIX}live_sessions"] == 1
    assert numbers[f"{PREFIX}memory_resident_bytes"] > 1_000_000
    assert f"{PREFIX}sources_checked_ago_seconds" not in numbers  # current: no age


def test_labels_hold_anything_a_path_or_reason_may_hold() -> None:
    source: dict[str, JSON] = {"format": "dsh", "path": 'a"b\\c\nd\ud800', "logs": 3, "missing": True}
    value: JSON = {
        "service": {
            "open": True,
            "sources": {"listed": [source, {"format": "codex", "path": "/x", "logs": 0}]},
        },
        "connections": {"open": 2, "requests": {"call": 5}, "ends": {"slow reader": 1}, "errors": {}},
    }
    numbers = parsed(prometheus_text(value))
    assert numbers[f'{PREFIX}source_logs{{format="dsh",path="a\\"b\\\\c\\nd?"}}'] == 3
    assert numbers[f'{PREFIX}source_logs{{format="codex",path="/x"}}'] == 0
    assert numbers[f'{PREFIX}source_missing{{format="dsh",path="a\\"b\\\\c\\nd?"}}'] == 1
    assert numbers[f'{PREFIX}requests_total{{type="call"}}'] == 5
    assert numbers[f'{PREFIX}connections_ended_total{{reason="slow reader"}}'] == 1
    assert numbers[f"{PREFIX}connections_open"] == 2


@pytest.mark.parametrize("nonsense", [None, [], "x", {"service": None}, {"service": {"searches": []}}])
def test_what_is_not_known_is_left_out(nonsense: JSON) -> None:
    assert prometheus_text(nonsense) == ""


# ---------------------------------------------------------------- how long requests take


def test_every_request_has_a_class_and_every_class_a_request() -> None:
    requests: list[m.Request] = [
        m.Attach(id=1, session=None),
        m.Append(id=1, session_id="s", from_seq=0, events=[]),
        m.Detach(id=1, session_id="s"),
        m.Fetch(id=1, locator="x"),
        m.ToolsRequest(id=1),
        *(m.Call(id=1, tool=tool, arguments=None) for tool in (*SPECS, "no_such_tool")),
        *(m.Query(id=1, method=method) for method in (*METHODS, "no_such_method")),
    ]
    assert {request_class(request) for request in requests} == set(CLASSES)
    calls = [request for request in requests if isinstance(request, m.Call)]
    assert {call.tool: request_class(call) for call in calls} == {
        "session_search": "search",
        "session_event_search": "search",
        "session_trace": "trace",
        "session_event_trace": "trace",
        "session_event_read": "read",
        "no_such_tool": "other",
    }


def test_a_bound_holds_what_took_exactly_so_long() -> None:
    histogram = Histogram()
    for seconds in (0.0, BOUNDS_S[0], BOUNDS_S[1], BOUNDS_S[-1], BOUNDS_S[-1] + 1):
        histogram.note(seconds)
    told: Any = histogram.told()
    assert told["buckets"]["0.001"] == 2
    assert told["buckets"]["0.0025"] == 3
    assert (told["buckets"]["30"], told["buckets"]["+Inf"], told["count"]) == (4, 5, 5)
    assert told["sum_s"] == pytest.approx(61.0035)


async def _metrics(edge: Edge) -> dict[str, exposition.Family]:
    async with edge.peer(hello="op") as operator:
        answer = await operator.ask(m.Query(id=1, method="metrics"))
    return exposition.read(answer.value)


async def test_requests_are_timed_from_arrival_to_answer_by_class(autojump_clock: MockClock) -> None:
    service = FakeService()
    async with open_edge(service) as edge, edge.peer() as peer:
        for seconds in (0.0, 0.2, 40.0):
            sleeping = m.Call(id=7, tool="read", arguments={"do": "stubborn", "s": seconds}, workspace="/w")
            await peer.ask(sleeping)
        times = (await _metrics(edge))[f"{PREFIX}request_duration_seconds"]
    of = {
        dict(labels)["le"]: value
        for (name, labels), value in times.samples.items()
        if name.endswith("_bucket") and dict(labels)["class"] == "other"
    }
    assert (of["0.001"], of["0.1"], of["0.25"], of["30"], of["+Inf"]) == (1, 1, 2, 2, 3)
    name = times.name
    assert times.samples[f"{name}_sum", (("class", "other"),)] == pytest.approx(40.2)
    assert {dict(labels)["class"] for _, labels in times.samples} == set(CLASSES), "also those that are zero"
