"""SPEC 8, 1.7, 16.6.6: exact reads of live, stored, foreign and provided sessions; over both doors."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import structs

from session_query import Caller, Code, Event, QueryError, ServiceConfig, Signal, Source
from session_query.actors import logs
from session_query.protocol.envelope import encode_event
from session_query.protocol.header import header_to_line
from support.doors import World, open_world
from support.events import assistant, call_block, event, replace, text_block, tool_call, user
from support.providers import FakeProvider
from support.sessions import head, header, log, prompts, sent

WINDOW, NO_EVENT = Code.INVALID_WINDOW.value, Code.EVENT_NOT_FOUND.value
NOT_FOUND, CORRUPT, SURFACE = (
    Code.SESSION_NOT_FOUND.value,
    Code.CORRUPT_SESSION.value,
    Code.INVALID_SURFACE.value,
)
OPERATOR = Caller(kind="operator")
KINDS = ("live", "stored", "memory", "told")


async def given(world: World, kind: str, events: Any, session_id: str = "x") -> None:
    """The same log as a live, a stored, an unjournaled or a provider's session."""
    if kind == "told":
        provider = FakeProvider()
        provider.put(header(session_id), events)
        world.service.mount("p", provider)
    else:
        await world.publish(session_id, events, detach=kind == "stored")


def world_of(kind: str) -> Any:
    return open_world(ServiceConfig(journal=kind != "memory"))


LOG = log(
    event("turn/start", 0, {"turn": 1}),
    user(1, "first"),
    event("custom/thing", 2, {"deep": [1, {"a": None}], "n": 12345678901234567890}),
    user(3, "instead", op=replace(1, 1), sources=[1]),
    assistant(4, "an answer", text_block("more")),
    event("turn/end", 5, {"turn": 1, "reason": {"kind": "completed"}}),
)


@pytest.mark.parametrize("kind", KINDS)
async def test_8_every_read_of_every_kind_of_session(kind: str) -> None:
    async with world_of(kind) as world:
        await given(world, kind, LOG)
        for door in world.doors.values():
            ask = door.query
            whole = (await ask("read_session", {"session_id": "x"})).value
            assert whole == {"header": head("x"), "events": sent(LOG)}
            surface = (await ask("read_surface", {"session_id": "x"})).value
            assert surface["captured_through_seq"] == 5
            assert [row["seq"] for row in surface["events"]] == [3, 4]
            assert surface["events"][1] == sent(LOG)[4]
            listed = (await ask("list_events", {"session_id": "x"})).value
            assert [row["surface"] for row in listed["events"]] == [
                "log-only", "shadowed", "log-only", "current", "current", "log-only",
            ]  # fmt: skip
            for before, after, first, last in ((0, 0, 2, 2), (1, 1, 1, 3), (50, 50, 0, 5), (2.0, 0, 0, 2)):
                window = {"session_id": "x", "seq": 2, "before": before, "after": after}
                value = (await ask("read_event", window)).value
                assert (value["target_seq"], value["first_seq"], value["last_seq"]) == (2, first, last)
                assert value["events"] == sent(LOG)[first : last + 1]
                assert value["header"] == head("x")


@pytest.mark.parametrize("kind", KINDS)
async def test_8_an_empty_log(kind: str) -> None:
    async with world_of(kind) as world:
        await given(world, kind, [])
        for door in world.doors.values():
            surface = (await door.query("read_surface", {"session_id": "x"})).value
            assert (surface["captured_through_seq"], surface["events"]) == (None, [])
            assert (await door.query("read_session", {"session_id": "x"})).value["events"] == []
            assert (await door.query("read_event", {"session_id": "x", "seq": 0})).code == NO_EVENT


@pytest.mark.parametrize("kind", KINDS)
async def test_8_4_ends_of_the_log(kind: str) -> None:
    async with world_of(kind) as world:
        await given(world, kind, LOG)
        ask = world.door.query
        for seq in (0, 5):
            answer = await ask("read_event", {"session_id": "x", "seq": seq, "before": 3, "after": 3})
            assert (answer.value["first_seq"], answer.value["last_seq"]) == (max(0, seq - 3), min(5, seq + 3))
        for no_seq in (6, 7, 2**53, -1, -6, "2", 2.5, None):
            answer = await ask("read_event", {"session_id": "x", "seq": no_seq, "before": 50})
            assert (no_seq, answer.code) == (no_seq, NO_EVENT)


async def test_8_4_windows_are_judged_before_any_source(either: World) -> None:
    provider = either.mounted("x")
    for side in ("before", "after"):
        for bad in (-1, 51, 1.5, "1", None, True, 2**60):
            asked = {"session_id": "nobody", "seq": "no seq", side: bad}
            assert (await either.door.query("read_event", asked)).code == WINDOW
    assert provider.calls == []
    assert (await either.door.query("read_event", {"session_id": "x", "seq": 0, "before": 50})).code is None


async def test_4_9_the_window_is_a_setting() -> None:
    async with open_world(ServiceConfig(read_window_max=0)) as world:
        await world.publish("x", LOG)
        for door in world.doors.values():
            assert (await door.query("read_event", {"session_id": "x", "seq": 1})).code is None
            wide = {"session_id": "x", "seq": 1, "after": 1}
            assert (await door.query("read_event", wide)).code == WINDOW
            assert (await door.call("session_event_read", wide)).code == WINDOW  # 10.5.1


async def test_8_4_a_gap_is_not_found_and_never_a_wrong_event(either: World) -> None:
    gap = [event("a", 0), event("b", 2), event("c", 3)]
    await given(either, "told", gap)
    for seq, code in ((0, None), (1, NO_EVENT), (2, NO_EVENT), (3, NO_EVENT)):
        assert (await either.door.query("read_event", {"session_id": "x", "seq": seq})).code == code


async def test_8_1_to_8_3_what_each_operation_demands_of_a_log(either: World) -> None:
    broken_surface = log(user(0, "x"), user(1, "y", op=replace(9, 9), sources=[0]))
    bad_message = log(event("user/message", 0, {"role": "user"}, op="append"))
    await given(either, "told", broken_surface)
    ask = either.door.query
    assert (await ask("list_events", {"session_id": "x"})).code == SURFACE
    assert (await ask("filter_events", {"session_id": "x", "filters": []})).code == SURFACE
    assert (await ask("read_surface", {"session_id": "x"})).code == SURFACE
    assert (await ask("read_session", {"session_id": "x"})).code == CORRUPT
    assert (await ask("read_event", {"session_id": "x", "seq": 1})).code is None
    await given(either, "told", bad_message)
    assert (await ask("read_session", {"session_id": "x"})).code == CORRUPT
    assert (await ask("read_surface", {"session_id": "x"})).code is None


async def test_14_L19_the_defect_is_kept_as_the_cause(world: World) -> None:
    await given(world, "told", log(user(0, "x", op=None)))
    exact = await world.service.exact()
    with pytest.raises(QueryError) as caught:
        await exact.read_session(OPERATOR, "x", signal=Signal())
    assert (caught.value.code, caught.value.__cause__ is None) == (Code.CORRUPT_SESSION, False)


async def test_8_5_reads_see_one_instant_and_nothing_is_cut(either: World) -> None:
    long = "x" * 300_000
    await either.publish("x", prompts(*(f"{long}{number}" for number in range(4))))
    whole = (await either.door.query("read_session", {"session_id": "x"})).value
    assert [len(row["data"]["content"][0]["text"]) for row in whole["events"]] == [300_001] * 4
    window = (await either.door.query("read_event", {"session_id": "x", "seq": 2, "before": 1})).value
    assert [len(row["data"]["content"][0]["text"]) for row in window["events"]] == [300_001] * 2


async def test_8_3_reading_makes_nothing_live(either: World) -> None:
    await either.publish("x", LOG, detach=True)
    await either.door.query("read_session", {"session_id": "x"})
    (row,) = (await either.door.query("list_sessions")).value["sessions"]
    assert row["live"] is False


# -- 1.7, 16.6.6: the balanced view ----------------------------------------------------------------------

TORN = log(
    event("turn/start", 0, {"turn": 1}),
    user(1, "do it"),
    event("step/start", 2, {"turn": 1, "step": 1}),
    assistant(3, call_block("c1"), call_block("c2")),
    tool_call(4, "c1"),
)
CLOSERS = ["tool/result", "tool/result", "step/end", "turn/end"]


async def types(world: World, session_id: str = "x") -> list[str]:
    answer = await world.door.query("list_events", {"session_id": session_id})
    return [row["type"] for row in answer.value["events"]]


async def test_1_7_an_open_turn_is_closed_once_nobody_writes(either: World) -> None:
    handle = await either.publish("x", TORN)
    assert await types(either) == [e.type for e in TORN]  # 1.7.6: live, shown as it is
    await handle.detach()
    assert await types(either) == [e.type for e in TORN] + CLOSERS
    value = (await either.door.query("read_event", {"session_id": "x", "seq": 5})).value
    assert value["events"][0]["sourceEventSeqs"] == [4]
    assert value["events"][0]["data"]["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"
    value = (await either.door.query("read_event", {"session_id": "x", "seq": 6, "after": 2})).value
    assert value["events"][0]["data"]["error"]["code"] == "TOOL_NOT_STARTED"
    assert value["events"][-1]["data"]["reason"]["kind"] == "interrupted"
    trace = (await either.door.query("trace_event", {"session_id": "x", "seq": 4})).value
    assert trace["derived_event_seqs"] == [5]


async def test_1_7_5_closers_are_never_indexed(either: World) -> None:
    await either.publish("x", TORN, detach=True)
    for query in ("interrupted", "retry", "verify"):
        page = await either.door.query("search_events", {"session_id": "x", "query": query})
        assert page.value["hits"] == []


async def test_1_7_reading_changes_nothing_and_the_owner_goes_on(either: World) -> None:
    handle = await either.publish("x", TORN)
    await handle.detach()
    assert len(await types(either)) == 9
    again = await either.service.attach(head("x"))
    assert again.next_seq == 5
    await again.append(sent(log(event("step/end", 0, {"turn": 1, "step": 1}), start=5)))
    assert await types(either) == [*(e.type for e in TORN), "step/end"]


async def test_16_6_6_after_a_crash_the_log_counts_as_written_for_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time() * 1000)
    recent = [structs.replace(one, time=now) for one in TORN]
    async with open_world(ServiceConfig(data_dir=tmp_path), wire=False) as world:
        await world.publish("fresh", recent)
    connection = sqlite3.connect(tmp_path / "journal.db")  # as if the process had been killed
    connection.execute("UPDATE session SET clean = 0")
    connection.commit()
    connection.close()
    async with open_world(ServiceConfig(data_dir=tmp_path), wire=False) as world:
        monkeypatch.setattr("session_query.actors.logs.time.time", lambda: now / 1000 + logs.QUIET_S - 1)
        assert len(await types(world, "fresh")) == 5
        monkeypatch.setattr("session_query.actors.logs.time.time", lambda: now / 1000 + logs.QUIET_S)
        assert len(await types(world, "fresh")) == 9


def dsh_log(root: Path, events: list[Event]) -> Path:
    """A log of session ``x`` where dsh would put it."""
    folder = root / "--work-here--" / "x"
    folder.mkdir(parents=True)
    lines = [header_to_line(header("x")), *map(encode_event, events)]
    (folder / "session.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder / "session.jsonl"


@pytest.mark.parametrize("age_s", [0, 3_600])
async def test_16_6_6_a_dsh_log_is_closed_when_it_has_been_quiet(tmp_path: Path, age_s: int) -> None:
    path = dsh_log(tmp_path, TORN)
    then = time.time() - age_s
    os.utime(path, (then, then))
    config = ServiceConfig(sources=(Source(format="dsh", root=tmp_path),), watch=False)
    async with open_world(config) as world:
        for door in world.doors.values():
            page = await door.query("search_sessions", {"query": "do it"})
            assert page.ids() == ["x"]
            answer = await door.query("list_events", {"session_id": "x"})
            assert len(answer.value["events"]) == (5 if age_s == 0 else 9)


# -- damage and threads ----------------------------------------------------------------------------------


async def test_16_6_4_a_damaged_record_of_the_journal_is_corruption(tmp_path: Path) -> None:
    async with open_world(ServiceConfig(data_dir=tmp_path), wire=False) as world:
        await world.publish("x", prompts("one", "two"), detach=True)
        await world.publish("y", prompts("whole"), detach=True)
    connection = sqlite3.connect(tmp_path / "journal.db")
    (key,) = connection.execute("SELECT min(key) FROM event").fetchone()
    connection.execute("UPDATE event SET body = ? WHERE key = ?", (b"\xff\xfegarbage", key))
    connection.commit()
    connection.close()
    async with open_world(ServiceConfig(data_dir=tmp_path), wire=False) as world:
        damaged = {"session_id": "x", "seq": 0}
        for method in ("read_session", "read_surface", "list_events"):
            assert (await world.door.query(method, {"session_id": "x"})).code == CORRUPT
        assert (await world.door.query("read_event", damaged)).code == CORRUPT
        assert (await world.door.query("read_event", damaged | {"after": 1})).code == CORRUPT
        assert await world.text_of("y") == "whole"
        assert len((await world.door.query("list_sessions")).ids()) == 2


async def test_14_L26_a_cancelled_read_of_a_long_log_stops_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsh_log(tmp_path, LOG)
    started, ended = trio.Event(), list[str]()
    token = trio.lowlevel.current_trio_token()

    def endless(reader: object, located: object, stopped: Any) -> Any:
        token.run_sync_soon(started.set)
        while not stopped():
            time.sleep(0.001)
        ended.append("asked to stop")
        return []

    monkeypatch.setattr(logs, "read_located", endless)
    config = ServiceConfig(sources=(Source(format="dsh", root=tmp_path),), watch=False)
    async with open_world(config, wire=False) as world:
        assert (await world.door.query("search_sessions", {"query": "first"})).ids() == ["x"]
        signal = Signal()
        async with trio.open_nursery() as nursery:

            async def abort() -> None:
                await started.wait()
                signal.abort("enough")

            nursery.start_soon(abort)
            with trio.fail_after(10):
                answer = await world.door.query("read_session", {"session_id": "x"}, signal=signal)
        assert (answer.code, answer.reason, ended) == ("aborted", "enough", ["asked to stop"])


async def test_8_a_hidden_session_cannot_be_read(either: World) -> None:
    await either.publish("x", LOG)
    for method in ("read_session", "read_surface", "list_events", "read_title"):
        assert (await either.door.query(method, {"session_id": "x"}, who="there")).code == NOT_FOUND
