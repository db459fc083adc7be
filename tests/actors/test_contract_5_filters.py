"""SPEC 5: filters, as a program sends them, over both doors."""

from __future__ import annotations

from typing import Any

import pytest

from session_query import Code
from support.doors import World
from support.events import assistant, event, replace, user
from support.sessions import ELSEWHERE, HERE, THERE, log

INVALID = Code.INVALID_FILTER.value
EMPTY: dict[str, Any] = {"kind": "id", "values": []}


async def corpus(world: World) -> None:
    await world.publish("live", cwd=HERE, at=10)
    await world.publish("child", cwd=HERE, at=20, parent="live")
    await world.publish("there", cwd=THERE, at=30, detach=True)
    await world.publish("bare", cwd=None, at=40, parent="gone")


def clause(kind: str, *values: Any, **bounds: Any) -> dict[str, Any]:
    return {"kind": kind} | (bounds or {"values": list(values)})


SESSION_CASES: list[tuple[list[dict[str, Any]] | None, list[str]]] = [
    ([], ["bare", "there", "child", "live"]),
    (None, ["bare", "there", "child", "live"]),
    ([clause("id", "live", "bare", "nobody")], ["bare", "live"]),
    ([clause("id", "live", "live")], ["live"]),
    ([clause("id", "live"), clause("id", "child")], []),
    ([clause("id", "live", "child"), clause("id", "child")], ["child"]),
    ([clause("cwd", HERE)], ["child", "live"]),
    ([clause("cwd", None)], ["bare"]),
    ([clause("cwd", THERE, None)], ["bare", "there"]),
    ([clause("cwd", HERE + "/")], []),
    ([{"kind": "created-at", "from": 20, "to": 30}], ["there", "child"]),
    ([{"kind": "created-at", "from": 20.5}], ["bare", "there"]),
    ([{"kind": "created-at", "to": 10}], ["live"]),
    ([{"kind": "created-at", "from": 20, "to": 20}], ["child"]),
    ([{"kind": "created-at"}], ["bare", "there", "child", "live"]),
    ([clause("parent", "live")], ["child"]),
    ([clause("parent", "gone")], ["bare"]),
    ([clause("parent", None)], ["there", "live"]),
    ([clause("parent", None, "live")], ["there", "child", "live"]),
    ([clause("availability", "live")], ["bare", "child", "live"]),
    ([clause("availability", "persisted")], ["bare", "there", "child", "live"]),
    ([clause("availability", "live", "persisted")], ["bare", "there", "child", "live"]),
    ([clause("availability", "live"), clause("cwd", HERE), clause("parent", None)], ["live"]),
    ([EMPTY], []),
    ([clause("cwd")], []),
    ([clause("parent")], []),
    ([clause("availability")], []),
]


@pytest.mark.parametrize("case", range(len(SESSION_CASES)))
async def test_5_5_filter_sessions(either: World, case: int) -> None:
    await corpus(either)
    filters, expected = SESSION_CASES[case]
    assert (await either.door.query("filter_sessions", {"filters": filters})).ids() == expected


@pytest.mark.parametrize("case", range(len(SESSION_CASES)))
async def test_6_4_a_search_takes_the_same_session_filters(world: World, case: int) -> None:
    for session_id, more in (
        ("live", {"cwd": HERE, "at": 10}),
        ("child", {"cwd": HERE, "at": 20, "parent": "live"}),
        ("there", {"cwd": THERE, "at": 30, "detach": True}),
        ("bare", {"cwd": None, "at": 40, "parent": "gone"}),
    ):
        await world.publish(session_id, log(user(0, "the same words")), **more)
    filters, expected = SESSION_CASES[case]
    page = await world.door.query("search_sessions", {"query": "same words", "session_filters": filters})
    assert sorted(page.ids()) == sorted(expected)


LOG = log(
    user(0, "first prompt"),
    event("turn/start", 1, {"turn": 1}),
    assistant(2, "an ANSWER\twith  space"),
    user(3, "rewritten", op=replace(0, 0), sources=[0]),
    event("custom/thing", 4, {"text": "not searchable"}),
    user(5, "C++ and (regex|chars) İ ß"),
)

EVENT_CASES: list[tuple[list[dict[str, Any]] | None, list[int]]] = [
    ([], [0, 2, 3, 5]),
    (None, [0, 2, 3, 5]),
    ([{"kind": "seq", "from": 2, "to": 3}], [2, 3]),
    ([{"kind": "seq", "from": 2.5}], [3, 5]),
    ([{"kind": "time", "to": LOG[2].time}], [0, 2]),
    ([clause("type", "user/message")], [0, 3, 5]),
    ([clause("type", "custom/thing")], []),
    ([clause("type", "no/such")], []),
    ([clause("surface", "current")], [2, 3, 5]),
    ([clause("surface", "shadowed")], [0]),
    ([clause("surface", "log-only")], []),
    ([clause("surface")], []),
    ([{"kind": "text", "text": " answer with space "}], [2]),
    ([{"kind": "text", "text": "nswe"}], [2]),
    ([{"kind": "text", "text": "c++ AND"}], [5]),
    ([{"kind": "text", "text": "(regex|chars)"}], [5]),
    ([{"kind": "text", "text": "i"}], [0, 2, 3]),
    ([{"kind": "text", "text": "ẞ"}], [5]),
    ([{"kind": "text", "text": "ss"}], []),
    ([{"kind": "text", "text": "prompt"}, clause("surface", "current")], []),
]


@pytest.mark.parametrize("case", range(len(EVENT_CASES)))
async def test_5_5_filter_events(either: World, case: int) -> None:
    await either.publish("x", LOG)
    filters, expected = EVENT_CASES[case]
    found = await either.door.query("filter_events", {"session_id": "x", "filters": filters})
    assert [row["seq"] for row in found.value["events"]] == expected


async def test_5_5_documents_come_back_whole(either: World) -> None:
    await either.publish("x", LOG)
    filters = [clause("surface", "shadowed")]
    found = await either.door.query("filter_events", {"session_id": "x", "filters": filters})
    assert found.value == {
        "session_id": "x",
        "events": [
            {
                "seq": 0,
                "type": "user/message",
                "time": LOG[0].time,
                "surface": "shadowed",
                "text": "first prompt",
            }
        ],
    }


BAD_SESSION_FILTERS: list[Any] = [
    "no list",
    {"kind": "id", "values": ["a"]},
    [None],
    ["id"],
    [{"values": ["a"]}],
    [{"kind": "unknown", "values": []}],
    [{"kind": None}],
    [{"kind": "id"}],
    [{"kind": "id", "values": "a"}],
    [{"kind": "id", "values": [1]}],
    [{"kind": "id", "values": [None]}],
    [{"kind": "cwd", "values": [True]}],
    [{"kind": "parent", "values": [0]}],
    [{"kind": "availability", "values": ["gone"]}],
    [{"kind": "availability", "values": [None]}],
    [{"kind": "created-at", "from": 2, "to": 1}],
    [{"kind": "created-at", "from": "1"}],
    [{"kind": "created-at", "from": None}],
    [{"kind": "created-at", "from": True}],
    [{"kind": "text", "text": "not for sessions"}],
    [{"kind": "seq", "from": 1}],
]
BAD_EVENT_FILTERS: list[Any] = [
    "no list",
    [None],
    [{"kind": "id", "values": ["a"]}],
    [{"kind": "type", "values": [None]}],
    [{"kind": "surface", "values": ["visible"]}],
    [{"kind": "seq", "from": 3, "to": 2}],
    [{"kind": "time", "to": "now"}],
    [{"kind": "text"}],
    [{"kind": "text", "text": 5}],
    [{"kind": "text", "text": "  \u00a0"}],
    [{"kind": "text", "text": ""}],
]


async def test_5_3_and_5_4_defects_are_found_even_with_nothing_to_filter(either: World) -> None:
    for number, bad in enumerate(BAD_SESSION_FILTERS):
        answer = await either.door.query("filter_sessions", {"filters": bad})
        assert (number, answer.code) == (number, INVALID)
        answer = await either.door.query("search_sessions", {"query": "x", "session_filters": bad})
        assert (number, answer.code) == (number, INVALID)
    for number, bad in enumerate(BAD_EVENT_FILTERS):
        answer = await either.door.query("filter_events", {"session_id": "nobody", "filters": bad})
        assert (number, answer.code) == (number, INVALID)
        answer = await either.door.query("search_sessions", {"query": "x", "event_filters": bad})
        assert (number, answer.code) == (number, INVALID)


@pytest.mark.parametrize("bound", [float("nan"), float("inf"), float("-inf"), 10**400])
async def test_5_2_bounds_are_finite(world: World, bound: float) -> None:
    answer = await world.door.query("filter_sessions", {"filters": [{"kind": "created-at", "from": bound}]})
    assert answer.code == INVALID


async def test_10_7_8_a_parent_beyond_the_border_makes_no_root(either: World) -> None:
    await either.publish("hidden", cwd=THERE)
    for session_id, parent in (("stray", "hidden"), ("orphan", "gone"), ("child", "root")):
        await either.publish(session_id, log(user(0, "fox")), parent=parent)
    await either.publish("root", log(user(0, "fox")))
    for filters, expected in (
        ([clause("parent", None)], ["root"]),
        ([clause("parent", "hidden", "gone")], []),
        ([clause("parent", "root", None)], ["child", "root"]),
    ):
        found = await either.door.query("filter_sessions", {"filters": filters}, who="here")
        assert found.ids() == expected
        page = {"query": "fox", "session_filters": filters}
        assert sorted((await either.door.query("search_sessions", page, who="here")).ids()) == expected


async def test_0_filters_belong_to_the_operation_from_its_first_step(world: World) -> None:
    await corpus(world)
    provider = world.mounted("told")
    filters = [{"kind": "id", "values": ["live"]}]
    provider.before = lambda operation, _: filters.clear()
    assert (await world.door.query("filter_sessions", {"filters": filters})).ids() == ["live"]


async def test_6_8_many_values_run_or_are_refused_before_work(either: World) -> None:
    await corpus(either)
    many = [f"nobody-{number}" for number in range(32_000)]
    found = await either.door.query("filter_sessions", {"filters": [clause("id", *many, "live")]})
    assert found.ids() == ["live"]
    page = {"query": "x", "session_filters": [clause("parent", *many), clause("cwd", *many, ELSEWHERE)]}
    assert (await either.door.query("search_sessions", page)).ids() == []
    too_many = [f"nobody-{number}" for number in range(125_000)]
    for filters in ([clause("id", *too_many)], [clause("cwd", *too_many)]):
        assert (await either.door.query("filter_sessions", {"filters": filters})).code == INVALID


async def test_6_8_fourteen_conditions_run_and_thousands_are_refused(either: World) -> None:
    await corpus(either)
    one = {"kind": "created-at", "from": 0, "to": 99}
    fourteen = [one] * 5 + [clause("cwd", HERE), clause("id", "live"), clause("parent", None)]
    assert (await either.door.query("filter_sessions", {"filters": fourteen})).ids() == ["live"]
    answer = await either.door.query("filter_sessions", {"filters": [one] * 5_000})
    assert answer.code == INVALID
