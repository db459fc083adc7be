"""SPEC 10, 16.1.7, 16.7.6, 16.9: the five tools over a real service; over both doors."""

from __future__ import annotations

import re
from typing import Any

import pytest

from session_query import Caller, Code, ServiceConfig
from session_query.protocol.errors import ToolCode
from support.doors import World, open_world
from support.events import assistant, call_block, event, tool_call, tool_result, user
from support.sessions import HERE, T0, THERE, head, header, log, prompts, sent, title, turn

UNAUTHORIZED, NO_STEP = ToolCode.UNAUTHORIZED.value, ToolCode.NO_CURRENT_STEP.value
MISSING = ToolCode.MISSING_AGENT.value


async def hits(world: World, arguments: dict[str, Any], **caller: Any) -> list[str]:
    """The ids of a session search's hits, as shown."""
    answer = await world.door.call("session_search", arguments, **caller)
    assert answer.code is None, answer
    return re.findall(r"^\d+\. (.+?): ", answer.text, re.MULTILINE)


async def seqs(world: World, arguments: dict[str, Any], **caller: Any) -> list[int]:
    answer = await world.door.call("session_event_search", arguments, **caller)
    assert answer.code is None, answer
    return [int(seq) for seq in re.findall(r"^\d+\. seq (\d+),", answer.text, re.MULTILINE)]


async def test_16_3_a_workspace_without_text_was_not_emptied_by_filters(either: World) -> None:
    arguments: dict[str, Any] = {"query": "fox"}
    empty = await either.door.call("session_search", arguments)
    await either.door.publish("silent", ())
    silent = await either.door.call("session_search", arguments)
    filtered = await either.door.call("session_search", arguments | {"event_types": ["tool/call"]})
    answers = (empty, silent, filtered)
    assert [answer.receipt["filters_excluded_everything"] for answer in answers] == [False, False, True]
    assert ["filters left nothing" in answer.text for answer in answers] == [False, False, True]


# -- 10.8: self ----------------------------------------------------------------------------------------


async def test_10_8_1_a_search_never_returns_its_caller(either: World) -> None:
    await either.door.publish("me", prompts("a fox"))
    await either.publish("other", prompts("a fox"))
    assert await hits(either, {"query": "fox"}, agent="me") == ["other"]
    assert await hits(either, {"query": "fox", "session_ids": ["me"]}, agent="me") == []
    assert sorted(await hits(either, {"query": "fox"})) == ["me", "other"]
    answer = await either.door.call("session_search", {"query": "fox"}, agent="me")
    assert answer.receipt["sessions_in_reach"] == 1  # the caller's own excluded


WITH_STEPS = log(
    user(0, "zebra prompt"),
    *turn(assistant(0, "zebra answer")),
    *turn(user(0, "zebra injected"), assistant(0, "zebra late"), tool_call(0, "c", "zebra"), end=False),
)


@pytest.mark.parametrize("live", [True, False], ids=["live", "stored"])
async def test_10_8_2_nothing_from_the_current_step_on_matches(either: World, live: bool) -> None:
    session = await either.door.publish("me", WITH_STEPS)
    if not live:
        await session.end()
    ask = {"query": "zebra", "match": "some"}
    assert sorted(await seqs(either, ask, agent="me")) == [0, 3]
    assert sorted(await seqs(either, ask | {"session_id": "me"}, agent="me")) == [0, 3]
    assert await seqs(either, ask | {"seq_from": 1}, agent="me") == [3]
    assert sorted(await seqs(either, ask | {"seq_to": 2}, agent="me")) == [0]
    assert len(await seqs(either, ask | {"session_id": "me"})) == 5  # others see all of it (10.8.4)


async def test_10_8_2_an_ended_step_still_counts_as_the_latest(either: World) -> None:
    await either.door.publish("me", log(user(0, "zebra"), *turn(assistant(0, "zebra")), user(0, "zebra")))
    assert await seqs(either, {"query": "zebra"}, agent="me") == [0]


WITHOUT_STEPS = {
    "answer last": (log(user(0, "fox"), assistant(0, "fox"), user(0, "fox")), [0]),
    "call last": (log(user(0, "fox"), assistant(0, "fox"), tool_call(0, "c", "fox"), user(0, "fox")), [0, 1]),
    "result after the call": (log(tool_call(0, "c", "fox"), tool_result(0, "c", "fox")), []),
}


@pytest.mark.parametrize("name", WITHOUT_STEPS)
async def test_16_7_6_without_steps_the_cut_is_the_latest_answer_or_call(either: World, name: str) -> None:
    events, expected = WITHOUT_STEPS[name]
    await either.door.publish("me", events)
    assert sorted(await seqs(either, {"query": "fox"}, agent="me")) == expected


async def test_10_8_2_nothing_to_cut_at(either: World) -> None:
    await either.door.publish("me", prompts("fox"))
    answer = await either.door.call("session_event_search", {"query": "fox"}, agent="me")
    assert answer.code == NO_STEP
    assert await hits(either, {"query": "fox"}, agent="me") == []


async def test_10_8_3_and_14_L21_an_empty_range_is_an_empty_result(either: World) -> None:
    await either.door.publish("me", log(event("step/start", 0), assistant(0, "fox"), title("mine")))
    for arguments in ({"query": "fox"}, {"query": "fox", "seq_from": 7}):
        answer = await either.door.call("session_event_search", arguments, agent="me")
        assert answer.code is None
        assert 'session me: "mine"' in answer.text
        assert "No match in this session." in answer.text


async def test_10_8_2_and_16_1_2_the_cut_binds_every_event_that_gives_a_token(either: World) -> None:
    """A word that stands behind the cut alone helps no tier, also not a spread over the session."""
    events = log(user(0, "alpha is here"), *turn(assistant(0, "beta"), end=False))
    await either.door.publish("me", events)
    answer = await either.door.call("session_event_search", {"query": "alpha beta"}, agent="me")
    assert "beta" not in answer.text.replace("alpha beta", "")
    assert await seqs(either, {"query": "beta", "match": "some"}, agent="me") == []


async def test_10_8_2_the_cut_moves_with_the_log(either: World) -> None:
    session = await either.door.publish("me", log(user(0, "fox"), *turn(assistant(0, "fox"))))
    assert await seqs(either, {"query": "fox"}, agent="me") == [0]
    await session.append(log(*turn(assistant(0, "later")), start=6))
    assert sorted(await seqs(either, {"query": "fox"}, agent="me")) == [0, 3]


async def test_10_8_4_other_targets_are_not_cut_even_mid_step(either: World) -> None:
    await either.door.publish("me", prompts("x"))
    await either.publish("other", log(*turn(assistant(0, "fox"), tool_call(0, "c", "fox"), end=False)))
    assert sorted(await seqs(either, {"query": "fox", "session_id": "other"}, agent="me")) == [2, 3]


async def test_10_8_5_own_traces_and_reads_are_not_cut(either: World) -> None:
    await either.door.publish("me", WITH_STEPS)
    last = WITH_STEPS[-1].seq
    assert (await either.door.call("session_event_read", {"seq": last}, agent="me")).code is None
    assert (await either.door.call("session_event_trace", {"seq": last}, agent="me")).code is None
    assert (await either.door.call("session_trace", {}, agent="me")).code is None


async def test_16_11_callers_without_a_session_name_their_target(either: World) -> None:
    await either.publish("x", prompts("fox"))
    for tool, arguments in (
        ("session_event_search", {"query": "fox"}),
        ("session_trace", {}),
        ("session_event_trace", {"seq": 0}),
        ("session_event_read", {"seq": 0}),
    ):
        assert (await either.door.call(tool, arguments)).code == MISSING
        assert (await either.door.call(tool, arguments | {"session_id": "x"})).code is None


async def test_16_6_5_a_session_without_workspace_reaches_itself_alone(either: World) -> None:
    await either.door.publish("me", log(user(0, "fox"), *turn(assistant(0, "x"))), cwd=None)
    await either.publish("other", prompts("fox"), cwd=None, at=T0 + 1)
    assert (await either.door.call("session_search", {"query": "fox"}, agent="me")).code == UNAUTHORIZED
    assert await seqs(either, {"query": "fox"}, agent="me") == [0]
    assert (await either.door.call("session_trace", {}, agent="me")).code is None
    target = {"session_id": "other", "seq": 0}
    assert (await either.door.call("session_event_read", target, agent="me")).code == UNAUTHORIZED


# -- 10.7: parents -------------------------------------------------------------------------------------


async def relatives(world: World) -> None:
    await world.publish("mother", prompts("nothing"))
    await world.publish("hidden", prompts("nothing"), cwd=THERE)
    await world.publish("child", prompts("a fox"), parent="mother")
    await world.publish("stray", prompts("a fox"), parent="hidden")
    await world.publish("orphan", prompts("a fox"), parent="gone")
    await world.publish("rootling", prompts("a fox"))


async def test_10_7_9_parents_are_shown_if_they_may_be(either: World) -> None:
    await relatives(either)
    answer = await either.door.call("session_search", {"query": "fox"})
    found = re.findall(r"^\d+\. (.+?): .*\n.*\n   parent: (.*)$", answer.text, re.MULTILINE)
    parents = dict(found)
    outside = parents["orphan"]
    assert parents == {"child": "mother", "stray": outside, "orphan": outside, "rootling": "root session"}
    assert "hidden" not in answer.text
    assert "gone" not in answer.text


PARENT_CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"parent_session_ids": ["mother"]}, ["child"]),
    ({"parent_session_ids": ["mother", "mother"]}, ["child"]),
    ({"parent_session_ids": ["hidden"]}, []),
    ({"parent_session_ids": ["gone"]}, []),
    ({"parent_session_ids": ["rootling"]}, []),
    ({"parent_session_ids": ["hidden", "mother"]}, ["child"]),
    ({"include_root_sessions": True}, ["rootling"]),
    ({"include_root_sessions": False}, ["child", "orphan", "rootling", "stray"]),
    ({"parent_session_ids": ["mother"], "include_root_sessions": True}, ["child", "rootling"]),
    ({"parent_session_ids": ["hidden"], "include_root_sessions": True}, ["rootling"]),
]


@pytest.mark.parametrize("case", range(len(PARENT_CASES)))
async def test_10_7_7_and_10_7_8_requested_parents(either: World, case: int) -> None:
    await relatives(either)
    arguments, expected = PARENT_CASES[case]
    assert sorted(await hits(either, {"query": "fox"} | arguments)) == expected


async def test_10_7_7_hidden_missing_and_childless_parents_are_one(either: World) -> None:
    await relatives(either)
    answers = [
        await either.door.call("session_search", {"query": "fox", "parent_session_ids": [parent]})
        for parent in ("hidden", "gone", "rootling", "nobody")
    ]
    assert answers == [answers[0]] * 4
    assert answers[0].receipt["filters_excluded_everything"] is True


async def test_10_7_7_an_agent_may_ask_for_its_own_children(either: World) -> None:
    await either.door.publish("me", prompts("x"))
    await either.publish("mine", prompts("a fox"), parent="me")
    await either.publish("other", prompts("a fox"))
    assert await hits(either, {"query": "fox", "parent_session_ids": ["me"]}, agent="me") == ["mine"]


# -- 10.9-10.11, 16.9 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "capped"), [(2, True), (3, False)])
async def test_10_9_2_the_cap(cap: int, capped: bool) -> None:
    async with open_world(ServiceConfig(max_search_results=cap)) as world:
        for number in range(3):
            await world.publish(f"s{number}", prompts("fox"))
        await world.publish("events", prompts("bear", "bear", "bear"))
        for door in world.doors.values():
            answer = await door.call("session_search", {"query": "fox"})
            assert ("narrow" in answer.text.lower()) == capped
            answer = await door.call("session_event_search", {"query": "bear", "session_id": "events"})
            assert ("narrow" in answer.text.lower()) == capped


async def test_10_9_2_the_caller_itself_does_not_cap() -> None:
    async with open_world(ServiceConfig(max_search_results=2), wire=False) as world:
        await world.door.publish("me", prompts("fox fox fox"))
        for number in range(2):
            await world.publish(f"s{number}", prompts("fox"))
        answer = await world.door.call("session_search", {"query": "fox"}, agent="me")
        assert "narrow" not in answer.text.lower()


async def test_16_4_a_busy_store_never_makes_a_tool_stale(world: World) -> None:
    handle = await world.publish("x", prompts("fox"))
    caller = Caller(kind="workspace", workspaces=(HERE,))
    for number in range(1, 20):
        await handle.append([{"type": "custom/tick", "time": number, "data": {}}])
        result = await world.service.call_tool("session_search", {"query": "fox"}, caller)
        assert not result.is_error


async def test_16_9_sub_agents_stand_under_their_parent_and_forks_count_once(either: World) -> None:
    await either.publish("main", prompts("orchestrates"))
    await either.publish("sub", prompts("a fox"), parent="main", origin="subagent", at=T0 + 1)
    shared = prompts("zebra", "common")
    await either.publish("origin", shared)
    inherited = head("fork", at=T0 + 2, parent="origin", seed=2)
    fork = await either.service.attach(inherited, sent(shared))
    assert fork.next_seq == 3
    answer = await either.door.call("session_search", {"query": "fox"})
    assert answer.text.index("1. main") < answer.text.index("- sub")
    assert await hits(either, {"query": "zebra"}) == ["origin"]
    page = await either.door.query("search_sessions", {"query": "zebra"})  # a program sees both (16.9)
    assert sorted(page.ids()) == ["fork", "origin"]


async def test_16_1_7_searches_do_not_find_searches(either: World) -> None:
    events = log(
        assistant(0, call_block("c", "session_search", '{"query":"zebra"}')),
        tool_call(0, "c", "session_search", '{"query":"zebra"}'),
        tool_result(0, "c", "No match for zebra"),
    )
    await either.publish("x", events)
    assert await hits(either, {"query": "zebra"}) == []
    assert await hits(either, {"query": "zebra", "event_types": ["tool/call"]}) == ["x"]


# -- 10.4-10.6 through the whole -----------------------------------------------------------------------

TIMES: list[tuple[dict[str, str], list[str]]] = [
    ({"created_at_from": "2031-03-05T06:07:08Z"}, ["a", "b"]),
    ({"created_at_from": "2031-03-05T06:07:08.0000001Z"}, ["b"]),
    ({"created_at_to": "2031-03-05T06:07:08.0009999Z"}, ["a"]),
    ({"created_at_to": "2031-03-05T11:37:08+05:30"}, ["a"]),
    ({"created_at_from": "2031-03-05T06:07:08.0001Z", "created_at_to": "2031-03-05T06:07:08.0002Z"}, []),
    ({"event_time_from": "2031-03-05T06:07:08.000Z"}, ["a", "b"]),
    ({"event_time_from": "2031-03-05T06:07:08.00000001Z"}, []),
    ({"created_at_from": "0000-01-01T00:00+23:59"}, ["a", "b"]),
    ({"created_at_to": "9999-12-31T23:59:59.999-23:59"}, ["a", "b"]),
]


@pytest.mark.parametrize("case", range(len(TIMES)))
async def test_10_6_timestamps_to_the_last_digit(either: World, case: int) -> None:
    await either.publish("a", prompts("fox"), at=T0)
    await either.publish("b", prompts("fox"), at=T0 + 1)
    arguments, expected = TIMES[case]
    assert sorted(await hits(either, {"query": "fox"} | arguments)) == expected


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("session_search", {"query": " "}, Code.INVALID_QUERY.value),
    ("session_search", {"query": "a\u0000"}, Code.INVALID_QUERY.value),
    ("session_search", {"query": "x", "session_ids": []}, Code.INVALID_FILTER.value),
    ("session_search", {"query": "x", "event_seq_from": 3, "event_seq_to": 2}, Code.INVALID_FILTER.value),
    ("session_search", {"query": "x", "created_at_from": "2028-02-30T00:00Z"}, Code.INVALID_FILTER.value),
    ("session_search", {"query": "x", "limit": 5, "match": "fuzzy"}, "INVALID_ARGS"),
    ("session_search", {"query": 5}, "INVALID_ARGS"),
    ("session_search", {}, "INVALID_ARGS"),
    ("session_event_read", {"session_id": "x", "seq": 1.5}, "INVALID_ARGS"),
    ("session_event_read", {"session_id": "x", "seq": -1}, Code.INVALID_FILTER.value),
    ("session_event_read", {"session_id": "x", "seq": 0, "before": 51}, Code.INVALID_WINDOW.value),
    ("session_event_trace", {"session_id": "x", "seq": 9}, Code.EVENT_NOT_FOUND.value),
    ("session_event_search", {"session_id": "y", "query": " "}, UNAUTHORIZED),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
async def test_10_5_refusals_carry_their_code(either: World, case: int) -> None:
    await either.publish("x", prompts("fox"))
    tool, arguments, code = REFUSED[case]
    assert (await either.door.call(tool, arguments)).code == code


async def test_10_3_1_unknown_arguments_are_ignored(either: World) -> None:
    await either.publish("x", prompts("fox"), cwd=THERE)
    arguments = {"query": "fox", "workspace": THERE, "cwd": THERE, "reach": "all", "agent": "x"}
    assert await hits(either, arguments) == []  # 10.7.1: arguments widen nothing


async def test_10_7_1_an_agent_is_who_the_runtime_says(either: World) -> None:
    await either.publish("x", prompts("fox"), cwd=THERE)
    forged = Caller(kind="agent", header=header("x", cwd=HERE), source="journal")
    result = await either.service.call_tool("session_event_read", {"seq": 0}, forged)
    assert result.code == Code.SESSION_NOT_FOUND.value


async def test_16_3_an_operator_gets_totals_and_a_line_for_each_workspace(either: World) -> None:
    await either.publish("a", prompts("fox"))
    await either.publish("b", prompts("fox"), cwd=THERE)
    both = Caller(kind="operator", workspaces=(HERE, THERE, "/empty"))
    result = await either.service.call_tool("session_search", {"query": "fox"}, both)
    assert result.receipt is not None
    shares = [(share.workspace, share.sessions_in_reach) for share in result.receipt.by_workspace]
    assert shares == [("/empty", 0), (HERE, 1), (THERE, 1)]
    assert result.receipt.sessions_in_reach == 2
    assert f"- {HERE}: 1 session" in result.text
    one = Caller(kind="operator", workspaces=(HERE,))
    result = await either.service.call_tool("session_search", {"query": "fox"}, one)
    assert result.receipt is not None
    assert result.receipt.by_workspace == ()
    agent = await either.door.call("session_search", {"query": "fox"})
    assert "by_workspace" not in agent.receipt
