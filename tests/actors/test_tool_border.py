"""SPEC 10.7.3, 10.7.5, 16.3: hidden and missing sessions are one and the same, byte for byte."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest

from session_query.protocol.collected import Caller
from session_query.protocol.errors import Code, QueryError
from support.fake_tools import ELSEWHERE, FakeToolService, agent, call, corpus, record, workspace

TARGETED: dict[str, dict[str, Any]] = {
    "session_event_search": {"query": "q"},
    "session_trace": {},
    "session_event_trace": {"seq": 1},
    "session_event_read": {"seq": 1},
}
CALLERS = {"agent": agent(), "workspace": workspace(), "homeless agent": agent(cwd=None)}

# What is behind the id: another workspace, no workspace, nothing, a name that looks like ours.
TARGETS = ["foreign", "homeless", "no-such-session", "sibling2", "", "me\n", "ｍｅ"]


@pytest.mark.parametrize("caller", CALLERS.values(), ids=CALLERS)
@pytest.mark.parametrize("tool", TARGETED)
async def test_hidden_and_missing_targets_give_the_same_bytes(tool: str, caller: Caller) -> None:
    seen = []
    for target in TARGETS:
        service = corpus(record("sibling2", "/proj/here/"))
        result = await call(service, tool, TARGETED[tool] | {"session_id": target}, caller)
        seen.append((result.text.encode(), result.code, result.receipt, result.is_error, service.names()))
    assert seen.count(seen[0]) == len(TARGETS)
    assert seen[0][1] == "SESSION_QUERY_TOOL_UNAUTHORIZED"
    for secret in (b"foreign", b"homeless", ELSEWHERE.encode(), b"TOP SECRET"):
        assert secret not in seen[0][0]


@pytest.mark.parametrize("tool", TARGETED)
async def test_what_a_hidden_session_holds_changes_nothing(tool: str) -> None:
    """The same call while the hidden session is sound, damaged, live, titled or gone."""

    def damaged(service: FakeToolService) -> None:
        service.titles["foreign"] = QueryError(Code.CORRUPT_SESSION)
        service.events["foreign"] = []

    def live(service: FakeToolService) -> None:
        service.records = [
            attrs.evolve(rec, live=True) if rec.header.id == "foreign" else rec for rec in service.records
        ]

    def gone(service: FakeToolService) -> None:
        service.records = [rec for rec in service.records if rec.header.id != "foreign"]

    seen = []
    for change in (lambda service: None, damaged, live, gone):
        service = corpus()
        change(service)
        seen.append(
            (await call(service, tool, TARGETED[tool] | {"session_id": "foreign"}, agent()), service.names())
        )
    assert all(one == two for one, two in itertools.pairwise(seen))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"session_ids": ["foreign"]},
        {"session_ids": ["foreign", "sibling"]},
        {"parent_session_ids": ["foreign"]},
        {"parent_session_ids": ["foreign", "sibling"]},
        {"parent_session_ids": ["foreign"], "include_root_sessions": True},
    ],
)
async def test_a_session_search_is_blind_to_what_lies_outside(arguments: dict[str, Any]) -> None:
    """With and without the foreign session, and with many of them: one text, one receipt."""
    seen = []
    for foreign in range(3):
        service = corpus(*(record(f"more-{n}", ELSEWHERE, parent="sibling") for n in range(foreign)))
        if foreign == 0:
            service.records = [rec for rec in service.records if rec.header.id != "foreign"]
        seen.append(await call(service, "session_search", {"query": "q"} | arguments, agent()))
    assert seen[0] == seen[1] == seen[2]


async def test_arguments_cannot_name_a_workspace() -> None:
    """SPEC 10.7.1: nothing in the arguments can widen the reach."""
    plain = await call(corpus(), "session_search", {"query": "q"}, agent())
    for name in ("cwd", "workspace", "caller", "agent", "session_id"):
        service = corpus()
        assert await call(service, "session_search", {"query": "q", name: ELSEWHERE}, agent()) == plain


@pytest.mark.parametrize("tool", ["session_search", *TARGETED])
async def test_no_caller_means_nothing(tool: str) -> None:
    service = corpus()
    arguments = TARGETED.get(tool, {"query": "q"})
    for caller in (None, Caller(kind="agent"), Caller(kind="workspace", workspaces=("/a", "/b"))):
        result = await call(service, tool, arguments | {"session_id": "sibling"}, caller)
        assert result.code == "SESSION_QUERY_TOOL_MISSING_AGENT"
    assert service.calls == []
