"""SPEC 10.7, 16.3, 16.11, 18.4: what lies beyond a border cannot be told from what is not there.

Two comparisons, byte for byte. In one world: a hidden and a missing id, for every method and every tool.
Between two worlds: one with a hidden history and one without, for every question about what is visible.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest

from session_query import WireError
from session_query.actors.queries import run_method
from session_query.protocol.errors import QueryError
from session_query.protocol.signal import Signal
from session_query.protocol.tools.schemas import SPECS
from session_query.protocol.wire.identity import Reach
from session_query.protocol.wire.methods import METHODS
from support.borders import ABSENT, VISIBLE, WORDS, as_bytes, fill, method_questions, tool_questions
from support.doors import Answer, World, open_world
from support.sessions import HERE, THERE, prompts

AT_THE_EDGE = frozenset(("health", "statistics", "metrics"))
"""Answered by the connection itself; they say nothing about sessions to who may not see all of them."""
PROGRAM = [name for name, method in METHODS.items() if not method.operator_only and name not in AT_THE_EDGE]
OPERATOR = [name for name, method in METHODS.items() if method.operator_only and name not in AT_THE_EDGE]


@pytest.fixture
async def bordered() -> AsyncIterator[World]:
    async with open_world(wire=True) as world:
        await fill(world, hidden=True, children=True)
        await world.door.query("search_sessions", {"query": "x"})  # everything is indexed
        yield world


@attrs.frozen
class Pair:
    """Two worlds of the same visible history; only one of them has a hidden one beside it."""

    with_hidden: World
    without: World

    @property
    def worlds(self) -> tuple[World, World]:
        return self.with_hidden, self.without


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with open_world(wire=False) as one, open_world(wire=False) as other:
        await fill(one, hidden=True)
        await fill(other, hidden=False)
        yield Pair(one, other)


def renamed(answer: Answer, target: str) -> bytes:
    """The answer with the id that was asked for taken out: it comes back in some, as it was sent."""
    text = as_bytes([answer.value, answer.code, answer.receipt]).decode()
    return text.replace(f'"{target}"', '"TARGET"').encode()


def whole(answer: Answer) -> bytes:
    return as_bytes([answer.value, answer.code])


async def operator_answer(world: World, method: str, params: Any) -> Answer:
    """An operator's method, asked with a reach that ends at the border."""
    reach = Reach(workspaces=frozenset((HERE,)))
    try:
        return Answer(
            value=await run_method(world.service, method, params, reach=reach, lane="x", signal=Signal())
        )
    except (QueryError, WireError) as exc:
        return Answer(code=exc.code.value)


# -- one world: a hidden and a missing id ----------------------------------------------------------------


async def test_every_method_treats_hidden_and_missing_alike(bordered: World) -> None:
    for door in bordered.doors.values():
        for method in PROGRAM:
            seen: dict[str, list[bytes]] = {target: [] for target in ABSENT}
            for target in ABSENT:
                for params in method_questions(method, target):
                    seen[target].append(renamed(await door.query(method, params, who="here"), target))
            assert seen["hidden"] == seen["missing"], method


async def test_so_does_every_operators_method_inside_a_named_reach(bordered: World) -> None:
    for method in OPERATOR:
        seen: dict[str, list[bytes]] = {target: [] for target in ABSENT}
        for target in ABSENT:
            for params in method_questions(method, target):
                seen[target].append(renamed(await operator_answer(bordered, method, params), target))
        assert seen["hidden"] == seen["missing"], method


CALLERS: dict[str, dict[str, Any]] = {"agent": {"agent": "traced"}, "workspace": {"workspace": HERE}}


@pytest.mark.parametrize("caller", CALLERS)
async def test_every_tool_treats_hidden_and_missing_alike(bordered: World, caller: str) -> None:
    # the wire takes only agents of its own; the tools behind it are these
    doors = [bordered.doors["embedded"]] if caller == "agent" else bordered.doors.values()
    for door in doors:
        for tool in SPECS:
            seen: dict[str, list[bytes]] = {target: [] for target in ABSENT}
            for target in ABSENT:
                for arguments in tool_questions(tool, target):
                    answer = await door.call(tool, arguments, **CALLERS[caller])
                    seen[target].append(renamed(answer, target))
            assert seen["hidden"] == seen["missing"], tool


async def test_no_answer_ever_names_what_is_hidden(bordered: World) -> None:
    """Whatever is asked about the visible, nothing of the hidden history's own stands in any answer."""
    secrets = (b"secret", b"hidden", THERE.encode())
    for method in PROGRAM:
        for target in (*VISIBLE, "missing"):
            for params in method_questions(method, target):
                answer = await bordered.door.query(method, params, who="here")
                raw = as_bytes([answer.value, answer.code]).replace(b"hides_parent", b"")
                assert not any(secret in raw for secret in secrets), (method, params, raw)
    for tool in SPECS:
        for target in VISIBLE:
            for arguments in tool_questions(tool, target):
                answer = await bordered.door.call(tool, arguments)
                raw = as_bytes([answer.value, answer.receipt]).replace(b"hidden subtree", b"")
                assert not any(secret in raw for secret in secrets), (tool, arguments, raw)


# -- two worlds: with a hidden history and without -------------------------------------------------------


async def test_a_hidden_history_moves_no_byte_of_any_query(pair: Pair) -> None:
    for method in PROGRAM:
        for target in (*VISIBLE, *ABSENT):
            for params in method_questions(method, target):
                one = await pair.with_hidden.door.query(method, params, who="here")
                other = await pair.without.door.query(method, params, who="here")
                assert as_bytes([one.value, one.code]) == as_bytes([other.value, other.code]), (
                    method,
                    params,
                )


async def test_nor_of_an_operators_inside_its_reach(pair: Pair) -> None:
    for method in OPERATOR:
        for target in (*VISIBLE, *ABSENT):
            for params in method_questions(method, target):
                one = await operator_answer(pair.with_hidden, method, params)
                other = await operator_answer(pair.without, method, params)
                assert as_bytes([one.value, one.code]) == as_bytes([other.value, other.code]), (
                    method,
                    params,
                )


@pytest.mark.parametrize("caller", CALLERS)
async def test_nor_of_any_tool(pair: Pair, caller: str) -> None:
    for tool in SPECS:
        targets = (*VISIBLE, *ABSENT) if tool != "session_search" else ("v0", "stray", *ABSENT)
        for target in targets:
            for arguments in tool_questions(tool, target):
                one = await pair.with_hidden.door.call(tool, arguments, **CALLERS[caller])
                other = await pair.without.door.call(tool, arguments, **CALLERS[caller])
                assert one == other, (tool, arguments)


async def test_16_1_3_word_weights_come_from_the_reach_alone(pair: Pair) -> None:
    for query in (*WORDS, "quartz", "of the", "inherited", "qua", "++"):
        for match in ("exact", "words", "some", "auto"):
            asked = {"query": query, "match": match}
            pages = [await w.door.query("search_sessions", asked, who="here") for w in pair.worlds]
            assert as_bytes(pages[0].value) == as_bytes(pages[1].value), asked
            found = [await w.door.call("session_search", asked) for w in pair.worlds]
            assert found[0] == found[1], asked


async def test_7_hidden_children_are_told_to_no_program(bordered: World) -> None:
    """The one place that the tools mark (10.7.10) is left out for programs (16.11)."""
    async with open_world(wire=False) as without:
        await fill(without, hidden=False)
        here = await bordered.doors["wire"].query("trace_session", {"session_id": "v0"}, who="here")
        there = await without.door.query("trace_session", {"session_id": "v0"}, who="here")
        assert as_bytes(here.value) == as_bytes(there.value)


async def test_6_9_hidden_changes_make_no_cursor_stale(bordered: World) -> None:
    for door in bordered.doors.values():
        first = await door.query("search_sessions", {"query": "quartz", "limit": 1}, who="here")
        again = {"query": "quartz", "limit": 1, "cursor": first.value["next_cursor"]}
        await bordered.publish(f"hidden-{id(door)}", prompts("quartz"), cwd=THERE)
        await bordered.door.query("search_sessions", {"query": "x"})
        assert (await door.query("search_sessions", again, who="here")).code is None


async def test_18_1_sessions_without_a_workspace_are_a_permission_of_their_own(bordered: World) -> None:
    for door in bordered.doors.values():
        assert (await door.query("list_sessions", who="homeless")).ids() == ["hidden-homeless"]
        found = await door.query("search_sessions", {"query": "quartz"}, who="homeless")
        assert found.ids() == ["hidden-homeless"]
        assert "hidden-homeless" not in (await door.query("list_sessions", who="here")).ids()


async def test_16_11_an_operator_token_is_not_widened_by_the_workspaces_it_names(bordered: World) -> None:
    params = {"query": "quartz", "workspaces": [THERE]}
    answer = await operator_answer(bordered, "find_sessions", params)
    assert answer.value["hits"] == []
    assert answer.value["receipt"]["sessions_in_reach"] == 0
    for method in ("index", "sources", "add_source", "drop_source", "doctor"):
        params = next(iter(method_questions(method, "x")))
        assert (await operator_answer(bordered, method, params)).code == "FORBIDDEN"


async def test_18_1_a_reader_is_refused_every_operators_method_in_one_wording(bordered: World) -> None:
    for method in METHODS.values():
        if method.operator_only:
            params = next(iter(method_questions(method.name, "hidden")))
            answer = await bordered.doors["wire"].query(method.name, params, who="here")
            assert answer.code == "FORBIDDEN"
