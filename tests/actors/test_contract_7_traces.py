"""SPEC 7: lineages and event traces, by a whole service; over both doors."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from session_query import Code
from session_query.storage.index.door import SessionKey, SessionState
from support.doors import World
from support.events import assistant, event, replace, user
from support.providers import FakeProvider
from support.sessions import HERE, T0, THERE, header, log, prompts

NOT_FOUND, LINEAGE = Code.SESSION_NOT_FOUND.value, Code.INVALID_LINEAGE.value
NO_EVENT, SURFACE = Code.EVENT_NOT_FOUND.value, Code.INVALID_SURFACE.value


async def family(world: World, *pairs: tuple[str, str | None], **more: Any) -> None:
    """Sessions with their parents, each later than the one before."""
    for number, (session_id, parent) in enumerate(pairs):
        fields: dict[str, Any] = {} if parent is None else {"parent": parent}
        await world.publish(session_id, at=T0 + number, **fields, **more)


async def trace(world: World, session_id: str, who: Any = "operator") -> Any:
    answer = await world.door.query("trace_session", {"session_id": session_id}, who=who)
    return answer.value if answer.code is None else answer.code


def shape(value: Any) -> tuple[list[str], list[tuple[int, str]]]:
    """(ancestors, nearest first; descendants with their depth)."""
    ancestors = [row["header"]["id"] for row in value["ancestors"]]
    return ancestors, [(row["depth"], row["header"]["id"]) for row in value["descendants"]]


async def via_provider(world: World, *pairs: tuple[str, str | None]) -> FakeProvider:
    provider = FakeProvider()
    for number, (session_id, parent) in enumerate(pairs):
        fields: dict[str, Any] = {} if parent is None else {"parent": parent}
        provider.put(header(session_id, at=T0 + number, **fields), prompts("x"))
    world.service.mount("p", provider)
    return provider


TREE = (
    ("root", None),
    ("a", "root"),
    ("b", "root"),
    ("a1", "a"),
    ("a2", "a"),
    ("a11", "a1"),
    ("other", None),
    ("b1", "b"),
)


@pytest.mark.parametrize("fill", [family, via_provider], ids=["index", "provider"])
async def test_7_1_ancestors_and_descendants(either: World, fill: Any) -> None:
    await fill(either, *TREE)
    value = await trace(either, "a")
    assert shape(value) == (["root"], [(1, "a1"), (2, "a11"), (1, "a2")])
    assert (value["complete"], value["root"]["header"]["id"]) == (True, "root")
    assert shape(await trace(either, "root")) == (
        [],
        [(1, "a"), (2, "a1"), (3, "a11"), (2, "a2"), (1, "b"), (2, "b1")],
    )
    assert shape(await trace(either, "a11")) == (["a1", "a", "root"], [])
    assert (await trace(either, "other"))["root"]["header"]["id"] == "other"


async def test_7_1_1_one_observation_and_no_log_is_read(either: World) -> None:
    provider = await via_provider(either, *TREE)
    await trace(either, "a")
    assert provider.calls == [("list", "")]
    assert await trace(either, "nobody") == NOT_FOUND


@pytest.mark.parametrize("fill", [family, via_provider], ids=["index", "provider"])
async def test_7_1_2_a_parent_outside_the_corpus_ends_the_walk(either: World, fill: Any) -> None:
    await fill(either, ("a", "gone"), ("b", "a"))
    value = await trace(either, "b")
    assert shape(value) == (["a"], [])
    assert (value["complete"], value["unresolved_parent_id"], "root" in value) == (False, "gone", False)


@pytest.mark.parametrize("fill", [family, via_provider], ids=["index", "provider"])
@pytest.mark.parametrize(
    ("pairs", "bad", "good"),
    [
        ([("a", "a")], ["a"], []),
        ([("a", "b"), ("b", "a")], ["a", "b"], []),
        ([("a", "b"), ("b", "c"), ("c", "b"), ("d", None)], ["a", "b", "c"], ["d"]),
    ],
    ids=["itself", "two", "above"],
)
async def test_7_1_2_a_cycle_among_the_ancestors(
    either: World, fill: Any, pairs: list[tuple[str, str]], bad: list[str], good: list[str]
) -> None:
    await fill(either, *pairs)
    for session_id in bad:
        assert await trace(either, session_id) == LINEAGE
    for session_id in good:
        assert shape(await trace(either, session_id)) == ([], [])


async def test_7_1_5_a_cycle_beside_the_chain_hangs_nothing(world: World) -> None:
    await family(world, ("root", None), ("a", "b"), ("b", "a"), ("child", "root"))
    with trio.fail_after(30):
        assert shape(await trace(world, "root")) == ([], [(1, "child")])


async def test_7_1_3_siblings_by_creation_then_id(either: World) -> None:
    await either.publish("root", at=1)
    for session_id, at in (("z", 5), ("b", 9), ("a", 9)):
        await either.publish(session_id, at=at, parent="root")
    assert [row for _, row in shape(await trace(either, "root"))[1]] == ["z", "a", "b"]


DEEP = 10_000


async def test_7_1_4_ten_thousand_generations(either: World) -> None:
    house = await either.service.house()

    def fill(store: Any) -> None:
        with store.index.transaction():
            for number in range(DEEP):
                fields = {"parent": f"s{number - 1}"} if number else {}
                one = header(f"s{number}", at=T0 + number, **fields)
                store.index.put_session(SessionKey("codex", "", one.id), SessionState(header=one, rank=2))

    await house.storage.write(fill)
    value = await trace(either, "s5000", "here")
    assert (len(value["ancestors"]), len(value["descendants"])) == (5_000, 4_999)
    assert value["descendants"][-1]["depth"] == 4_999
    assert value["root"]["header"]["id"] == "s0"
    if either.door is either.doors["embedded"]:  # rendering is one for both doors, and takes a second
        shown = await either.door.call("session_trace", {"session_id": f"s{DEEP - 1}"})
        assert "s0: untitled" in shown.text


async def test_16_6_1_of_namesakes_the_nearest_is_the_parent(either: World) -> None:
    provider = FakeProvider()
    provider.put(header("x", at=T0 + 5), prompts("x"))
    provider.put(header("child", at=T0 + 6, parent="x"), prompts("x"))
    either.service.mount("p", provider)
    await either.publish("x", at=T0)
    await either.publish("ours", at=T0 + 1, parent="x")
    assert shape(await trace(either, "child")) == (["p:x"], [])
    assert shape(await trace(either, "ours")) == (["journal:x"], [])
    assert shape(await trace(either, "p:x")) == ([], [(1, "child")])
    listed = await either.door.query("list_sessions")
    parents = {row["header"]["id"]: row["header"].get("parentSession") for row in listed.value["sessions"]}
    assert parents == {"journal:x": None, "p:x": None, "child": "p:x", "ours": "journal:x"}


# -- borders -------------------------------------------------------------------------------------------


async def test_14_L30_the_border_comes_before_a_hidden_cycle(either: World) -> None:
    await family(either, ("h1", "h2"), ("h2", "h1"), cwd=THERE)
    await family(either, ("a", "h1"), ("b", "a"))
    assert await trace(either, "b") == LINEAGE  # the service sees the cycle
    value = await trace(either, "b", "here")
    assert (shape(value), value["complete"]) == ((["a"], []), False)
    shown = await either.door.call("session_trace", {"session_id": "b"})
    assert shown.code is None
    assert "h1" not in shown.text


async def test_10_7_10_beyond_a_hidden_ancestor_nothing_is_shown(either: World) -> None:
    await either.publish("top", at=T0)
    await either.publish("hidden", at=T0 + 1, cwd=THERE, parent="top")
    await either.publish("nether", at=T0 + 2, parent="hidden")
    await either.publish("grandchild", at=T0 + 3, parent="nether")
    value = await trace(either, "nether", "here")
    assert shape(value) == ([], [(1, "grandchild")])
    assert (value["complete"], "unresolved_parent_id" in value, "root" in value) == (False, False, False)
    assert "parentSession" not in value["target"]["header"]
    assert value["target"]["hides_parent"] is True
    assert shape(await trace(either, "top", "here")) == ([], [])  # its subtree went with the hidden one
    shown = await either.door.call("session_trace", {"session_id": "top"})
    assert "nether" not in shown.text


# -- 7.2 -----------------------------------------------------------------------------------------------

EXAMPLE = log(
    event("turn/start", 0, {"turn": 1}),
    event("step/start", 1, {"turn": 1, "step": 1}),
    event("assistant/chunk", 2),
    user(3, "prompt", sources=[2]),
    assistant(4, "compacted", op=replace(3, 3), sources=[3, 2]),
    user(5, "more"),
    event("step/end", 6),
    event("step/start", 7),
    assistant(8, "again", op=replace(4, 4), sources=[2, 4]),
)

TRACES: dict[int, tuple[int | None, list[int], list[int], list[int], list[int]]] = {
    3: (4, [4, 8], [], [2], [4]),
    4: (8, [8], [3], [3, 2], [8]),
    2: (None, [], [], [], [3, 4, 8]),
    8: (None, [], [4], [2, 4], []),
}


@pytest.mark.parametrize("seq", TRACES)
@pytest.mark.parametrize("kind", ["live", "stored", "told"])
async def test_7_2_the_worked_example(either: World, seq: int, kind: str) -> None:
    if kind == "told":
        provider = FakeProvider()
        provider.put(header("x"), EXAMPLE)
        either.service.mount("p", provider)
    else:
        await either.publish("x", EXAMPLE, detach=kind == "stored")
    answer = await either.door.query("trace_event", {"session_id": "x", "seq": seq})
    value = answer.value
    replaced_by, chain, replaced, sources, derived = TRACES[seq]
    assert value.get("replaced_by") == replaced_by
    assert value["replacement_chain"] == chain
    assert value["replaced_event_seqs"] == replaced
    assert value["source_event_seqs"] == sources
    assert value["derived_event_seqs"] == derived
    assert (value["header"]["id"], value["header"]["cwd"]) == ("x", HERE)
    assert value["target"]["seq"] == seq


@pytest.mark.parametrize("seq", [-1, 9, 1.5, "3", None, True, 2**60])
async def test_7_2_1_what_is_no_seq_of_the_log_is_not_found(either: World, seq: object) -> None:
    await either.publish("x", EXAMPLE)
    assert (await either.door.query("trace_event", {"session_id": "x", "seq": seq})).code == NO_EVENT
    assert (await either.door.query("read_event", {"session_id": "x", "seq": seq})).code == NO_EVENT


async def test_7_2_1_the_target_comes_before_the_fold(either: World) -> None:
    provider = FakeProvider()
    provider.put(header("x"), log(user(0, "fine"), user(1, "broken", op=replace(7, 7), sources=[0])))
    either.service.mount("p", provider)
    ask = either.door.query
    assert (await ask("trace_event", {"session_id": "x", "seq": 9})).code == NO_EVENT
    assert (await ask("trace_event", {"session_id": "x", "seq": 0})).code == SURFACE
    assert (await ask("read_event", {"session_id": "x", "seq": 1})).code is None  # 8.4 does not fold


async def test_4_long_logs_are_traced_and_folded_beside_the_loop(world: World) -> None:
    long = log(*(user(n, "word") for n in range(3_000)))
    await world.publish("x", long)
    value = (await world.door.query("trace_event", {"session_id": "x", "seq": 2_999})).value
    assert value["target"]["surface"] == "current"
    listed = await world.door.query("list_events", {"session_id": "x"})
    assert len(listed.value["events"]) == 3_000
