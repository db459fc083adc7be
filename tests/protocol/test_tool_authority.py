"""SPEC 10.7, 16.5, 16.11: who may see what."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.lineage_model import Tree, flat_tree, visible_tree
from session_query.protocol.collected import Caller
from session_query.protocol.errors import Code, ToolCode, ToolError
from session_query.protocol.filters import CwdClause
from session_query.protocol.header import SessionHeader
from session_query.protocol.records import Lineage, SessionRecord
from session_query.protocol.tools.authority import (
    is_authorized,
    own_id,
    prune_lineage,
    reach_clauses,
    reach_of,
    require_caller,
    require_target,
    unauthorized,
)


def head(session_id: str, cwd: str | None) -> SessionHeader:
    return SessionHeader(id=session_id, created_at=0, cwd=cwd)


def agent(cwd: str | None) -> Caller:
    return Caller(kind="agent", header=head("me", cwd))


@pytest.mark.parametrize(
    ("caller", "session_id", "cwd", "allowed"),
    [
        (agent("/w"), "me", "/w", True),
        (agent("/w"), "me", "/x", False),
        (agent("/w"), "me", None, False),
        (agent(None), "me", None, True),
        (agent(None), "me", "/w", False),
        (agent("/w"), "other", "/w", True),
        (agent("/w"), "other", "/w/", False),
        (agent("/w"), "other", "/W", False),
        (agent("/w"), "other", "/w/sub", False),
        (agent("/w"), "other", None, False),
        (agent(None), "other", None, False),
        (agent("rel"), "other", "rel", False),
        (agent("rel"), "me", "rel", True),
        (agent("C:\\w"), "other", "C:\\w", True),
        (Caller(kind="workspace", workspaces=("/w",)), "other", "/w", True),
        (Caller(kind="workspace", workspaces=("/w",)), "other", "/x", False),
        (Caller(kind="workspace", workspaces=("/w",)), "other", None, False),
        (Caller(kind="workspace", workspaces=("rel",)), "other", "rel", False),
        (Caller(kind="operator"), "other", "/x", True),
        (Caller(kind="operator"), "other", None, True),
        (Caller(kind="operator", workspaces=("/w", "/v")), "other", "/v", True),
        (Caller(kind="operator", workspaces=("/w",)), "other", "/x", False),
        (Caller(kind="operator", workspaces=("/w",)), "other", None, False),
        (Caller(kind="operator", workspaces=()), "other", "/w", False),
        (Caller(kind="agent"), "other", "/w", False),
        (Caller(kind="agent", workspaces=("/w",)), "other", "/w", False),
        (Caller(kind="workspace"), "other", "/w", False),
    ],
)
def test_10_7_2_and_16_11(caller: Caller, session_id: str, cwd: str | None, allowed: bool) -> None:
    assert is_authorized(caller, head(session_id, cwd)) == allowed


@pytest.mark.parametrize(
    "caller",
    [
        None,
        Caller(kind="agent"),
        Caller(kind="agent", workspaces=("/w",)),
        Caller(kind="workspace"),
        Caller(kind="workspace", workspaces=()),
        Caller(kind="workspace", workspaces=("/a", "/b")),
    ],
)
def test_10_7_1_a_caller_that_is_not_completely_named_fails_closed(caller: Caller | None) -> None:
    with pytest.raises(ToolError) as caught:
        require_caller(caller)
    assert caught.value.code is ToolCode.MISSING_AGENT


def test_reach() -> None:
    assert reach_of(agent("/w")) == ("/w",)
    assert reach_of(agent(None)) == reach_of(agent("rel")) == ()
    assert reach_of(Caller(kind="operator")) is None
    assert reach_clauses(Caller(kind="operator")) == ()
    assert reach_clauses(Caller(kind="operator", workspaces=("/a", "/b"))) == (CwdClause(("/a", "/b")),)
    assert own_id(agent("/w")) == "me"
    assert own_id(Caller(kind="workspace", workspaces=("/w",))) is None


def test_10_7_4_the_observed_header_must_be_the_asked_one() -> None:
    require_target(agent("/w"), "a", head("a", "/w"))
    for observed in (head("b", "/w"), head("a", "/x"), head("a", None)):
        with pytest.raises(ToolError) as caught:
            require_target(agent("/w"), "a", observed)
        assert caught.value.code is ToolCode.UNAUTHORIZED
        assert "a" not in caught.value.message.split()[0:1]
        assert "/x" not in caught.value.message


def test_10_7_5_an_operator_is_told_not_found() -> None:
    assert unauthorized(agent("/w")).code is ToolCode.UNAUTHORIZED
    assert unauthorized(Caller(kind="operator", workspaces=("/w",))).code is Code.SESSION_NOT_FOUND


def rec(session_id: str, hidden: bool = False) -> SessionRecord:
    return SessionRecord(header=head(session_id, "/x" if hidden else "/w"), live=False, persisted=True)


def lineage(
    ancestors: list[SessionRecord], descendants: list[tuple[int, SessionRecord]], complete: bool
) -> Lineage:
    return Lineage(
        target=rec("t"),
        ancestors=tuple(ancestors),
        complete=complete,
        unresolved_parent_id=None if complete else "lost",
        root=None,
        descendants=tuple(descendants),
    )


@pytest.mark.parametrize(
    ("hidden", "complete", "shown", "boundary"),
    [
        ([], True, [], False),
        ([], False, [], True),
        ([False, False], True, ["a0", "a1"], False),
        ([False, False], False, ["a0", "a1"], True),
        ([True], True, [], True),
        ([False, True, False], True, ["a0"], True),
        ([False, True, False], False, ["a0"], True),
    ],
)
def test_10_7_10_ancestors_end_at_the_first_hidden_one(
    hidden: list[bool], complete: bool, shown: list[str], boundary: bool
) -> None:
    ancestors = [rec(f"a{index}", is_hidden) for index, is_hidden in enumerate(hidden)]
    view = prune_lineage(agent("/w"), lineage(ancestors, [], complete))
    assert [item.header.id for item in view.ancestors] == shown
    assert view.boundary == boundary


TREES: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from("abcdefgh").map(lambda name: (name, [])),
    lambda children: st.tuples(st.sampled_from("abcdefgh"), st.lists(children, max_size=4)),
    max_leaves=20,
)


@settings(max_examples=200)
@given(st.lists(TREES, max_size=4), st.sets(st.sampled_from("abcdefgh")))
def test_10_7_10_descendants_agree_with_the_model(forest: list[Tree], hidden: set[str]) -> None:
    flat = [row for tree in forest for row in flat_tree(tree, 1)]
    rows = [(depth, rec(name, name in hidden)) for depth, name in flat]
    view = prune_lineage(agent("/w"), lineage([], rows, True))
    expected = [row for tree in forest for row in visible_tree(tree, 1, lambda name: name not in hidden)]
    assert [(depth, None if item is None else item.header.id) for depth, item in view.descendants] == expected


def test_7_1_4_a_tree_of_any_depth() -> None:
    rows = [(depth, rec(f"d{depth}", depth == 9_000)) for depth in range(1, 10_001)]
    view = prune_lineage(agent("/w"), lineage([], rows, True))
    assert len(view.descendants) == 9_000
    assert view.descendants[-1] == (9_000, None)
