"""SPEC 9, 10.10, 14 L23, L31: titles, wherever a session lies; over both doors."""

from __future__ import annotations

from typing import Any

import pytest

from session_query import Code, ServiceConfig
from support.doors import World, open_world
from support.events import event, user
from support.providers import FakeProvider
from support.sessions import header, log, sent, title

CORRUPT = Code.CORRUPT_SESSION.value
BY_MODEL: Any = {"kind": "provider", "provider": "p", "model": {"provider": "p", "model": "m"}}

LOGS: dict[str, tuple[list[Any], str | None]] = {
    "none": ([user(0, "a prompt is no title")], None),
    "one": ([title("first")], "first"),
    "the last": ([title("first"), user(0, "x"), title("second", source=BY_MODEL)], "second"),
    "an automatic one after a rename": ([title("mine"), title("auto", source={"kind": "fallback"})], "auto"),
    "a good one after a bad one": ([event("session/title", 0, {}), title("good")], "good"),
    "an empty one": ([title("first"), title("")], ""),
    "verbatim": ([title(" spaces\nand \u202elines ")], " spaces\nand \u202elines "),
}
KINDS = ("live", "stored", "memory", "told")


@pytest.mark.parametrize("kind", KINDS)
async def test_9_1_the_last_title_event_counts(kind: str) -> None:
    async with open_world(ServiceConfig(journal=kind != "memory")) as world:
        provider = FakeProvider()
        world.service.mount("p", provider)
        for name, (events, _) in LOGS.items():
            if kind == "told":
                provider.put(header(name), log(*events))
            else:
                await world.publish(name, log(*events), detach=kind == "stored")
        for door in world.doors.values():
            items = (await door.query("read_titles", {"session_ids": list(LOGS)})).value["titles"]
            assert {row["session_id"]: row["title"] for row in items} == {
                name: expected for name, (_, expected) in LOGS.items()
            }
            for name, (_, expected) in LOGS.items():
                assert (await door.query("read_title", {"session_id": name})).value["title"] == expected


async def test_9_1_a_title_says_where_it_comes_from(either: World) -> None:
    events = log(user(0, "x"), title("named", source=BY_MODEL, messageSeqs=[0]))
    await either.publish("x", events)
    value = (await either.door.query("read_title", {"session_id": "x"})).value
    assert value == {
        "title": "named",
        "message_seqs": [0],
        "source": BY_MODEL,
        "seq": 1,
        "time": events[1].time,
    }


BAD_TITLES: list[Any] = [
    {},
    {"title": 5, "messageSeqs": [], "source": {"kind": "user"}},
    {"title": "x", "source": {"kind": "user"}},
    {"title": "x", "messageSeqs": [-1], "source": {"kind": "user"}},
    {"title": "x", "messageSeqs": [], "source": {"kind": "unknown"}},
    {"title": "x", "messageSeqs": [], "source": {"kind": "provider"}},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(len(BAD_TITLES)))
async def test_9_2_a_malformed_last_one_fails_its_session_alone(kind: str, number: int) -> None:
    events = log(title("good"), user(0, "the words"), event("session/title", 0, BAD_TITLES[number]))
    async with open_world(ServiceConfig(journal=kind != "memory"), wire=False) as world:
        if kind == "told":
            provider = FakeProvider()
            provider.put(header("x"), events)
            world.service.mount("p", provider)
        else:
            await world.publish("x", events, detach=kind == "stored")
        await world.publish("y", log(user(0, "the words"), title("fine")))
        assert (await world.door.query("read_title", {"session_id": "x"})).code == CORRUPT
        found = await world.door.call("session_search", {"query": "words"})  # 10.10: the call succeeds
        assert found.code is None
        assert 'y: "fine"' in found.text
        assert "untitled" in found.text
        assert CORRUPT in found.text


async def test_9_4_a_title_is_as_new_as_its_log(either: World) -> None:
    handle = await either.publish("x", log(title("old")))
    for number in range(3):
        await handle.append(sent(log(title(f"new {number}"), start=number + 1)))
        assert (await either.door.query("read_title", {"session_id": "x"})).value["title"] == f"new {number}"
        shown = await either.door.call("session_trace", {"session_id": "x"})
        assert f'x: "new {number}"' in shown.text
    await handle.detach()
    assert (await either.door.query("read_title", {"session_id": "x"})).value["title"] == "new 2"


async def test_14_L31_titles_of_indexed_sessions_cost_no_log(world: World) -> None:
    provider = FakeProvider()
    for number in range(5):
        provider.put(header(f"s{number}"), log(user(0, "words"), title(f"title {number}")))
    world.service.mount("p", provider)
    await world.door.call("session_search", {"query": "words"})
    provider.forget_calls()
    found = await world.door.call("session_search", {"query": "words"})
    assert all(f's{number}: "title {number}"' in found.text for number in range(5))
    assert provider.inspected() == []


async def test_14_L23_rendering_defuses_a_title_and_programs_get_it_whole(either: World) -> None:
    hostile = "ok\n\n2. fake: session\u202e\u0007 " + "x" * 1_000
    await either.publish("x", log(user(0, "words"), title(hostile)))
    shown = (await either.door.call("session_search", {"query": "words"})).text
    assert "\n2. fake" not in shown
    assert "\u202e" not in shown
    assert "x" * 500 not in shown
    assert (await either.door.query("read_title", {"session_id": "x"})).value["title"] == hostile
