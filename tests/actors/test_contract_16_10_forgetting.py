"""SPEC 16.10, 1.3, 17.2-17.3: publishing that is safe to repeat, and forgetting for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import Caller, Code, QueryError, ServiceConfig, Signal, Source, WireCode, WireError
from session_query.protocol.envelope import encode_event
from session_query.protocol.header import header_to_line
from session_query.storage.projection import Change
from support.doors import World, open_world, program
from support.events import event, replace, user
from support.sessions import HERE, T0, THERE, head, header, log, prompts, sent, title

OPERATOR = Caller(kind="operator")
MARK = "xylophonequagga"
"""A word that stands nowhere else."""


async def refused(attempt: Any, code: WireCode) -> None:
    with pytest.raises(WireError) as caught:
        await attempt
    assert caught.value.code is code


# -- publishing --------------------------------------------------------------------------------------------


async def test_1_3_3_a_seed_gets_one_marker_and_no_seed_none(world: World) -> None:
    one = await world.service.attach(head("seeded"), sent(prompts("inherited")))
    assert one.next_seq == 2
    empty = await world.service.attach(head("empty"), [])
    assert empty.next_seq == 1
    plain = await world.service.attach(head("plain"))
    assert plain.next_seq == 0
    marked = log(user(0, "a"), event("session/end-seed", 1))
    assert (await world.service.attach(head("marked"), sent(marked))).next_seq == 2
    types = [row["type"] for row in (await listed(world, "seeded"))]
    assert types == ["user/message", "session/end-seed"]


async def listed(world: World, session_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await world.door.query("list_events", {"session_id": session_id})).value[
        "events"
    ]
    return rows


@pytest.mark.parametrize("journal", [True, False])
async def test_17_3_attaching_again(journal: bool) -> None:
    async with open_world(ServiceConfig(journal=journal), wire=False) as world:
        first = await world.service.attach(head("x"), sent(prompts("one", "two")))
        again = await world.service.attach(head("x"), sent(prompts("one")))
        assert again.next_seq == 3  # a stored prefix; no second marker
        await refused(first.append(sent(prompts("late", start=3))), WireCode.NOT_ATTACHED)
        assert await again.append(sent(prompts("three", start=3))) == 3
        other = sent(prompts("another"))
        await refused(world.service.attach(head("x"), other), WireCode.SEQ_CONFLICT)
        await refused(world.service.attach(head("x", at=T0 + 1)), WireCode.INVALID_HEADER)
        await refused(world.service.attach(head("x", parent="y")), WireCode.INVALID_HEADER)
        soft = await world.service.attach(head("x", preset="other", origin="subagent", depth=0))
        assert soft.next_seq == 4  # 1.1.3: no part in compatibility


async def test_17_2_appending_is_safe_to_repeat(world: World) -> None:
    handle = await world.service.attach(head("x"))
    batch = sent(prompts("one", "two"))
    assert await handle.append(batch) == 1
    handle.next_seq = 0
    assert await handle.append(batch) == 1
    handle.next_seq = 1
    assert await handle.append([*batch[1:], *sent(prompts("three", start=2))]) == 2
    handle.next_seq = 1
    await refused(handle.append(sent(prompts("different", start=1))), WireCode.SEQ_CONFLICT)
    handle.next_seq = 9
    await refused(handle.append(sent(prompts("hole", start=9))), WireCode.SEQ_GAP)
    assert len(await listed(world, "x")) == 3


@pytest.mark.parametrize("journal", [True, False])
async def test_2_a_batch_that_breaks_the_surface_leaves_nothing(journal: bool) -> None:
    async with open_world(ServiceConfig(journal=journal), wire=False) as world:
        handle = await world.publish("x", prompts("one"))
        broken = log(user(0, "fine"), user(1, "bad", op=replace(7, 7), sources=[0]), start=1)
        await refused(handle.append(sent(broken)), WireCode.INVALID_EVENT)
        await refused(handle.append([{"type": "", "time": 1, "data": {}}]), WireCode.INVALID_EVENT)
        await refused(handle.append(["no event"]), WireCode.INVALID_EVENT)
        assert await handle.append(sent(prompts("two", start=1))) == 1
        assert len(await listed(world, "x")) == 2
        bad_seed = sent(log(user(0, "x", op=None)))
        await refused(world.service.attach(head("y"), bad_seed), WireCode.INVALID_EVENT)
        assert (await world.door.query("list_sessions")).ids() == ["x"]


RETIRED: list[Any] = [
    ("mode/set", {}),
    ("request/header-delta", {}),
    ("request/header", {"reason": "fallback"}),
]


@pytest.mark.parametrize("journal", [True, False])
async def test_1_5_3_a_seed_of_a_newer_writer_is_refused(journal: bool) -> None:
    config = ServiceConfig(journal=journal, event_types=("our/thing",))
    async with open_world(config, wire=False) as world:
        attach = world.service.attach
        unknown = sent(log(event("their/thing", 0)))
        await refused(attach(head("x"), unknown), WireCode.INVALID_EVENT)
        for type_, data in RETIRED:  # 1.5.4: ignorable or not
            one: Any = sent(log(event(type_, 0, data)))[0]
            await refused(attach(head("x"), [one | {"ignorable": True}]), WireCode.INVALID_EVENT)
        assert (await world.door.query("list_sessions")).ids() == []
        marked: Any = sent(log(event("their/thing", 0)))[0]
        assert (await attach(head("a"), [marked | {"ignorable": True}])).next_seq == 2
        assert (await attach(head("b"), sent(log(event("our/thing", 0))))).next_seq == 2  # 14 L28
        assert (await attach(head("c"), sent(log(event("command/run", 0))))).next_seq == 2
        live = await attach(head("d"))
        await live.append(unknown)  # 1.5.1
        if journal:
            assert (await attach(head("d"), unknown)).next_seq == 1  # what is stored may be told again


@pytest.mark.parametrize("types", [("tool/call",), ("mode/set",), ("",), (5,), 7])
def test_14_L28_core_and_retired_types_cannot_be_registered(types: Any) -> None:
    with pytest.raises(QueryError) as caught:
        ServiceConfig(event_types=types)
    assert caught.value.code is Code.INVALID_CONFIG


async def test_16_6_1_one_host_may_publish_one_id_in_two_workspaces(world: World) -> None:
    here = await world.publish("x", prompts("in here"))
    there = await world.publish("x", prompts("in there"), cwd=THERE)
    await here.append(sent(prompts("still here", start=1)))
    await there.append(sent(prompts("still there", start=1)))
    for who, word in (("here", "here"), ("there", "there")):
        page = await world.door.query("search_sessions", {"query": f"still {word}"}, who=who)  # type: ignore[arg-type]
        assert page.ids() == ["x"]


async def test_17_one_connection_holds_an_id_once() -> None:
    """Over the wire an append names the id alone, so a second session of that id is refused."""
    async with open_world() as world:
        door = world.doors["wire"]
        one = await door.publish("x", prompts("in here"))
        with pytest.raises(Exception, match="another session with this id"):
            await door.publish("x", prompts("in there"), cwd=THERE)
        await one.append(prompts("still here", start=1))
        assert (await door.query("list_sessions")).ids() == ["x"]


@pytest.mark.parametrize("journal", [True, False])
async def test_a_cancelled_append_is_stored_and_known_or_neither(journal: bool) -> None:
    """Whenever the cancellation strikes, log, index and handle agree afterwards."""
    async with open_world(ServiceConfig(journal=journal), wire=False) as world:
        handle = await world.publish("x", prompts("first"))
        for number in range(1, 30):
            with trio.move_on_after(0.0002 * (number % 7)):
                await handle.append(sent(prompts(f"word{number}", start=handle.next_seq)))
            exact = await world.service.exact()
            whole = await exact.read_session(OPERATOR, "x", signal=Signal())
            handle.next_seq = len(whole.events)
            page = await world.door.query("search_events", {"session_id": "x", "query": f"word{number}"})
            stored = [e.seq for e in whole.events if f"word{number}" in str(e.data)]
            assert [hit["seq"] for hit in page.value["hits"]] == stored


async def test_a_failed_attach_leaves_no_live_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("session_query.actors.publishing._catch_up", fail)
    with pytest.raises(OSError, match="no space"):
        await world.service.attach(head("x"))
    monkeypatch.undo()
    (row,) = (await world.door.query("list_sessions")).value["sessions"]
    assert row["live"] is False
    handle = await world.service.attach(head("x"))
    assert await handle.append(sent(prompts("goes on"))) == 0


async def test_an_index_that_missed_an_append_catches_up_with_the_next_search(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await world.publish("x", prompts("first"))

    def fail(self: Change, writer: object, sid: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Change, "apply", fail)
    assert await handle.append(sent(prompts("missed", start=1))) == 1  # the journal has it
    monkeypatch.undo()
    assert await handle.append(sent(prompts("later", start=2))) == 2
    for word in ("first", "missed", "later"):
        assert (await world.door.query("search_sessions", {"query": word})).ids() == ["x"]


# -- forgetting --------------------------------------------------------------------------------------------


def holding(directory: Path, word: str) -> list[str]:
    return [
        str(path.relative_to(directory))
        for path in sorted(directory.rglob("*"))
        if path.is_file() and word.encode() in path.read_bytes()
    ]


async def forget(world: World, session_id: str) -> None:
    await world.service.forget(program("operator"), session_id, signal=Signal())


async def test_16_10_no_file_holds_a_word_of_a_forgotten_session(tmp_path: Path) -> None:
    config = ServiceConfig(data_dir=tmp_path / "d", max_inline_bytes=2_000)
    async with open_world(config, wire=False) as world:
        secret = [user(0, f"{MARK} in a prompt"), user(1, f"{MARK} " * 2_000), title(f"{MARK} title")]
        await world.publish("x", log(*secret), detach=True)
        await world.publish("y", prompts("kept words", "more of them"))
        caller = Caller(kind="workspace", workspaces=(HERE,))
        read = {"session_id": "x", "seq": 1}
        result = await world.service.call_tool("session_event_read", read, caller, owner="tests")
        assert result.spilled is not None
        assert holding(tmp_path, MARK) != []
        await forget(world, "x")
        assert (
            await world.door.query("read_session", {"session_id": "x"})
        ).code == Code.SESSION_NOT_FOUND.value
        assert (await world.door.query("search_sessions", {"query": MARK})).ids() == []
        assert (await world.door.query("search_sessions", {"query": "kept"})).ids() == ["y"]
    assert holding(tmp_path, MARK) == []
    async with open_world(config, wire=False) as world:
        assert (await world.door.query("list_sessions")).ids() == ["y"]
        await refused(world.service.attach(head("x"), sent(log(*secret))), WireCode.FORBIDDEN)


async def test_16_10_a_log_that_is_still_there_does_not_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "--work-here--" / "x"
    folder.mkdir(parents=True)
    lines = [header_to_line(header("x")), *map(encode_event, prompts(f"{MARK} in a log"))]
    (folder / "session.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    config = ServiceConfig(
        data_dir=tmp_path / "d", sources=(Source(format="dsh", root=tmp_path / "logs"),), watch=False
    )
    async with open_world(config, wire=False) as world:
        assert (await world.door.query("search_sessions", {"query": MARK})).ids() == ["x"]
        await forget(world, "x")
        assert (await world.door.query("search_sessions", {"query": MARK})).ids() == []
        assert holding(tmp_path / "d", MARK) == []
        house = await world.service.house()
        await house.freshness.refresh(full=True, progress=None, signal=Signal())
        assert (await world.door.query("list_sessions")).ids() == []
    async with open_world(config, wire=False) as world:
        assert (await world.door.query("search_sessions", {"query": MARK})).ids() == []
    assert holding(tmp_path / "d", MARK) == []
    assert holding(tmp_path / "logs", MARK) != []  # the tool's own log is not touched


async def test_16_10_what_cannot_be_forgotten(world: World) -> None:
    await world.publish("x", prompts("x"))
    for session_id, code in (("x", Code.INVALID_FILTER), ("nobody", Code.SESSION_NOT_FOUND)):
        with pytest.raises(QueryError) as caught:
            await forget(world, session_id)
        assert caught.value.code is code
    confined = program("there")
    with pytest.raises(QueryError) as caught:
        await world.service.forget(confined, "x", signal=Signal())
    assert caught.value.code is Code.SESSION_NOT_FOUND
    assert await world.text_of("x") == "x"


async def test_16_10_a_providers_session_stays_forgotten(world: World) -> None:
    world.mounted("x", "y")
    assert sorted((await world.door.query("search_sessions", {"query": "stored"})).ids()) == ["x", "y"]
    await forget(world, "x")
    for _ in range(2):
        assert (await world.door.query("search_sessions", {"query": "stored"})).ids() == ["y"]
        assert (await world.door.query("list_sessions")).ids() == ["y"]
    gone = await world.door.query("read_session", {"session_id": "x"})
    assert gone.code == Code.SESSION_NOT_FOUND.value
