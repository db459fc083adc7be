"""SPEC 2: the surface fold, its eighteen refusals and its worked examples."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.surface_model import Broken, model_fold
from session_query.protocol.errors import Code
from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON
from session_query.protocol.surface import FoldStep, SurfaceError, SurfaceFold, fold
from support.events import assistant, event, replace, text_block, tool_result, user
from support.held import held_bytes
from support.json_values import nested_list

U01 = [user(0, "a"), user(1, "b")]
T0 = [tool_result(0, "c", "long")]

REFUSED: list[tuple[int, str, list[Event]]] = [
    (1, "seq is not the index", [user(0), user(2, op=None)]),
    (1, "the first seq is not 0", [user(1)]),
    (1, "E1 comes before all else", [event("turn/start", 3, op="append")]),
    (2, "log-only with surfaceOp", [event("turn/start", 0, op="append", sources=[])]),
    (2, "log-only with null surfaceOp", [event("x/unknown", 0, op=None)]),
    (3, "log-only with empty sources", [event("turn/start", 0, sources=[])]),
    (3, "log-only with null sources", [event("turn/start", 0, sources=None)]),
    (4, "no surfaceOp", [event("user/message", 0, sources="bad too")]),
    (5, "null", [user(0, op=None)]),
    (5, "array", [user(0, op=["append"])]),
    (5, "another text", [user(0, op="prepend")]),
    (5, "number", [user(0, op=1)]),
    (5, "boolean", [user(0, op=True)]),
    (6, "wrong op", [*U01, user(2, op={"op": "append", "start": 0, "end": 1})]),
    (6, "missing key", [*U01, user(2, op={"op": "replace", "start": 0})]),
    (6, "extra key", [*U01, user(2, op={"op": "replace", "start": 0, "end": 1, "why": 1})]),
    (6, "empty object", [user(0, op={})]),
    (6, "negative bound", [*U01, user(2, op=replace(-1, 1))]),
    (6, "fractional bound", [*U01, user(2, op={"op": "replace", "start": 0.5, "end": 1})]),
    (6, "boolean bound", [*U01, user(2, op={"op": "replace", "start": False, "end": True}, sources=[0, 1])]),
    (6, "unsafe bound", [*U01, user(2, op=replace(0, 2**53))]),
    (6, "text bound", [*U01, user(2, op={"op": "replace", "start": "0", "end": 1})]),
    (7, "start not on the surface", [event("turn/start", 0), user(1), user(2, op=replace(0, 9))]),
    (8, "end not on the surface", [*U01, user(2, op=replace(0, 2))]),
    (9, "start after end", [*U01, user(2, op=replace(1, 0), sources="no array")]),
    (10, "no array", [*U01, user(2, op=replace(0, 1), sources={"0": 1})]),
    (10, "null", [user(0, sources=None)]),
    (11, "empty on a user message", [user(0, sources=[])]),
    (11, "empty on a tool result", [tool_result(0, "c", sources=[])]),
    (12, "a hole", [*U01, user(2, sources=[None])]),
    (12, "a fraction", [*U01, user(2, sources=[0.5])]),
    (12, "a text", [*U01, user(2, sources=["0"])]),
    (12, "negative, before duplicate", [*U01, user(2, sources=[0, 0, -1])]),
    (12, "a boolean", [*U01, user(2, sources=[True])]),
    (12, "unsafe", [*U01, user(2, sources=[2**53])]),
    (13, "duplicate, before future", [*U01, user(2, sources=[0, 7, 0])]),
    (13, "duplicate as a float", [*U01, user(2, sources=[1, 1.0])]),
    (14, "itself", [*U01, user(2, sources=[2])]),
    (14, "the future", [*U01, user(2, sources=[0, 3])]),
    (15, "a removed node is not cited", [*U01, user(2, op=replace(0, 1), sources=[0])]),
    (15, "no sources at all", [*U01, user(2, op=replace(0, 1))]),
    (15, "empty on an assistant message", [*U01, assistant(2, op=replace(0, 0), sources=[])]),
    (15, "before E16", [*T0, user(1), tool_result(2, "c", op=replace(0, 1), sources=[0])]),
    (16, "two removed", [*T0, user(1), tool_result(2, "c", op=replace(0, 1), sources=[0, 1])]),
    (17, "a user message removed", [user(0), tool_result(1, "c", op=replace(0, 0), sources=[0])]),
    (18, "isError differs", [*T0, tool_result(1, "c", "x", op=replace(0, 0), sources=[0], is_error=True)]),
    (18, "call differs", [*T0, tool_result(1, "d", "x", op=replace(0, 0), sources=[0], message_id="r-c")]),
    (18, "id differs", [*T0, tool_result(1, "c", "x", op=replace(0, 0), sources=[0], message_id="m")]),
    (
        18,
        "error appears",
        [*T0, tool_result(1, "c", "x", op=replace(0, 0), sources=[0], error={"name": "E"})],
    ),
    (18, "meta appears", [*T0, tool_result(1, "c", "x", op=replace(0, 0), sources=[0], meta=None)]),
]


@pytest.mark.parametrize(("rule", "events"), [pytest.param(r, e, id=f"E{r} {n}") for r, n, e in REFUSED])
def test_refusals(rule: int, events: list[Event]) -> None:
    with pytest.raises(SurfaceError) as caught:
        fold(events)
    assert caught.value.rule == rule
    assert caught.value.seq == len(events) - 1
    assert caught.value.code is Code.INVALID_SURFACE
    with pytest.raises(Broken) as model:
        model_fold(events)
    assert model.value.rule == rule


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _, _ in REFUSED} == set(range(1, 19))


X1 = [user(0), event("assistant/chunk", 1), assistant(2, sources=[1])]
X3 = [user(0), assistant(1), user(2), user(3, op=replace(0, 1), sources=[0, 1])]

EXAMPLES: list[tuple[str, list[Event], list[int], list[tuple[int, ...]]]] = [
    ("X1", X1, [0, 2], []),
    ("X2", [*X1, user(3, op=replace(0, 2), sources=[0, 2])], [3], [(0, 2)]),
    ("X3", X3, [3, 2], [(0, 1)]),
    ("X3 then", [*X3, user(4, op=replace(3, 2), sources=[3, 2])], [4], [(0, 1), (3, 2)]),
    ("X6", [*T0, tool_result(1, "c", "x", op=replace(0, 0), sources=[0])], [1], [(0,)]),
    ("X8", [assistant(0, sources=[])], [0], []),
    (
        "whole floats count as integers",
        [*U01, user(2, op={"op": "replace", "start": 0.0, "end": 1.0}, sources=[1.0, 0])],
        [2],
        [(0, 1)],
    ),
    ("empty", [], [], []),
    ("empty assistant content is a node", [assistant(0)], [0], []),
    ("extra sources", [event("x/y", 0), user(1), user(2, op=replace(1, 1), sources=[0, 1])], [2], [(1,)]),
]


@pytest.mark.parametrize(("events", "nodes", "removed"), [pytest.param(*c[1:], id=c[0]) for c in EXAMPLES])
def test_worked_examples(events: list[Event], nodes: list[int], removed: list[tuple[int, ...]]) -> None:
    result = fold(events)
    assert list(result.nodes) == nodes
    assert [replacement.removed for replacement in result.replacements] == removed
    assert result.length == len(events)


@pytest.mark.parametrize(
    ("name", "rule", "events"),
    [
        ("X3 reversed", 9, [*X3, user(4, op=replace(2, 3), sources=[2, 3])]),
        ("X4", 7, [*X3, user(4, op=replace(1, 2), sources=[1, 2])]),
        ("X5", 15, [user(0), assistant(1), user(2, op=replace(0, 1), sources=[0])]),
        ("X6", 18, [*T0, tool_result(1, "c", op=replace(0, 0), sources=[0], is_error=False)]),
        ("X7", 3, [event("turn/start", 0, sources=[])]),
        ("X8", 11, [user(0, sources=[])]),
        ("X9", 1, [user(0), user(2)]),
    ],
)
def test_worked_examples_that_fail(name: str, rule: int, events: list[Event]) -> None:
    with pytest.raises(SurfaceError, match=f"^E{rule} "):
        fold(events)
    assert name.startswith("X")


def test_declared_bounds_and_classification() -> None:
    result = fold([*X3, event("turn/end", 4), user(5, op=replace(3, 2), sources=[3, 2])])
    assert [(r.seq, r.start, r.end) for r in result.replacements] == [(3, 0, 1), (5, 3, 2)]
    assert result.surfaces == ("shadowed", "shadowed", "shadowed", "shadowed", "log-only", "current")


def test_key_order_and_number_spelling_do_not_matter_to_e18() -> None:
    old = tool_result(0, "c", "x", meta={"a": 1, "b": [4]})
    new = tool_result(1, "c", op=replace(0, 0), sources=[0], meta={"b": [4.0], "a": 1})
    assert fold([old, new]).nodes == (1,)
    different = tool_result(1, "c", op=replace(0, 0), sources=[0], meta={"b": [4.5], "a": 1})
    with pytest.raises(SurfaceError, match=r"^E18"):
        fold([old, different])
    boolean = tool_result(1, "c", op=replace(0, 0), sources=[0], meta={"b": [4], "a": True})
    with pytest.raises(SurfaceError, match=r"^E18"):
        fold([old, boolean])


def test_e18_compares_deep_values() -> None:
    old = tool_result(0, "c", meta=nested_list(50_000))
    new = tool_result(1, "c", op=replace(0, 0), sources=[0], meta=nested_list(50_000))
    assert fold([old, new]).nodes == (1,)
    other = tool_result(1, "c", op=replace(0, 0), sources=[0], meta=nested_list(50_000, "x"))
    with pytest.raises(SurfaceError, match=r"^E18"):
        fold([old, other])


@pytest.mark.parametrize("content", [None, "text", [], [1], [{}, {}], {"a": 1}])
def test_e18_on_shapes_that_are_no_tool_result_compares_everything(content: JSON) -> None:
    data: JSON = {"message": {"content": content}}
    first = event("tool/result", 0, data, op="append")
    assert fold([first, event("tool/result", 1, data, op=replace(0, 0), sources=[0])]).nodes == (1,)
    other: JSON = {"message": {"content": [text_block("changed")], "x": 1}}
    with pytest.raises(SurfaceError, match=r"^E18"):
        fold([first, event("tool/result", 1, other, op=replace(0, 0), sources=[0])])


def test_a_refused_event_leaves_an_incremental_fold_unchanged() -> None:
    for rule, _, events in REFUSED:
        folder = SurfaceFold()
        for good in events[:-1]:
            folder.append(good)
        before = folder.snapshot(), list(folder.replacements)
        with pytest.raises(SurfaceError, match=f"^E{rule} "):
            folder.append(events[-1])
        assert (folder.snapshot(), folder.replacements) == before
        folder.append(user(len(folder)))


def test_steps_say_what_changed() -> None:
    folder = SurfaceFold()
    steps = [folder.append(e) for e in [*X3, user(4, op=replace(3, 2), sources=[3, 0, 2])]]
    assert steps[0] == FoldStep("current")
    assert steps[3] == FoldStep("current", (0, 1), (0, 1))
    assert steps[4] == FoldStep("current", (3, 2), (3, 0, 2))
    assert folder.append(event("x/y", 5)) == FoldStep("log-only")
    assert folder.is_current(4)
    assert not folder.is_current(3)
    assert len(folder) == 6


def test_a_restored_fold_still_compares_tool_results() -> None:
    folder = SurfaceFold()
    folder.append(T0[0])
    for restored in (SurfaceFold.restore(folder.snapshot()), SurfaceFold.restore(folder.snapshot())):
        with pytest.raises(SurfaceError, match=r"^E18"):
            restored.append(tool_result(1, "c", op=replace(0, 0), sources=[0], is_error=True))
        assert restored.append(tool_result(1, "c", op=replace(0, 0), sources=[0])).shadowed == (0,)


@pytest.mark.parametrize("state", [b"", b"x", msgspec.msgpack.encode((1, [("a", "b", None)]))])
def test_other_bytes_are_no_state(state: bytes) -> None:
    with pytest.raises(ValueError, match="not the state"):
        SurfaceFold.restore(state)


@pytest.mark.parametrize("node", [(1, "user/message", None), (-1, "user/message", None), (0, "x/log", None)])
def test_no_fold_holds_such_a_node(node: tuple[int, str, bytes | None]) -> None:
    with pytest.raises(ValueError, match="not the state"):
        SurfaceFold.restore(msgspec.msgpack.encode((1, [node])))


def test_a_skeleton_folds_without_data() -> None:
    folder = SurfaceFold()
    folder.append_skeleton(T0[0])
    changed = tool_result(1, "c", op=replace(0, 0), sources=[0], is_error=True)
    assert folder.append(changed).shadowed == (0,)


def _result(seq: int, **more: JSON) -> Event:
    return tool_result(seq, "c", **more)


_MAKERS: list[Callable[..., Event]] = [user, assistant, _result]


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Logs that are mostly valid: bounds and sources are drawn near the true surface."""
    events: list[Event] = []
    surface: list[int] = []
    for seq in range(draw(st.integers(0, 14))):
        make = draw(st.sampled_from(_MAKERS))
        if draw(st.booleans()) and surface:
            first = draw(st.integers(0, len(surface) - 1))
            last = draw(st.integers(first, min(len(surface) - 1, first + 2)))
            if draw(st.integers(0, 9)) == 0:
                first, last = last, first
            op = replace(surface[first], surface[last])
            sources = surface[first : last + 1]
            sources += draw(st.lists(st.integers(0, seq), max_size=1))
            built = make(seq, op=op, sources=draw(st.permutations(sources)))
            surface[first : last + 1] = [seq]
        elif draw(st.integers(0, 3)) == 0:
            built = event("x/log", seq)
        else:
            built = make(seq)
            surface.append(seq)
        events.append(built)
    return events


def _model_or_rule(events: list[Event]) -> object:
    try:
        return model_fold(events)
    except Broken as broken:
        return broken.rule


def _fold_or_rule(events: list[Event]) -> object:
    try:
        result = fold(events)
    except SurfaceError as exc:
        return exc.rule
    return list(result.nodes), [(r.seq, list(r.removed)) for r in result.replacements], list(result.surfaces)


@given(logs())
@settings(max_examples=200)
def test_the_fold_agrees_with_the_model(events: list[Event]) -> None:
    expected = _model_or_rule(events)
    assert _fold_or_rule(events) == expected
    if isinstance(expected, int):
        return
    folder = SurfaceFold()
    for index, each in enumerate(events):
        if index == len(events) // 2:
            folder = SurfaceFold.restore(folder.snapshot())
        folder.append(each)
    nodes = fold(events).nodes
    assert folder.nodes() == nodes
    assert [seq for seq in range(len(events)) if folder.is_current(seq)] == sorted(nodes)


def test_a_long_log_costs_the_same_per_event() -> None:
    """20,000 replacements at the head of 20,000 nodes: looking places up in a list would take 10^8 steps."""
    folder = SurfaceFold()
    size = 20_000
    for seq in range(size):
        folder.append(user(seq))
    for seq in range(size, 2 * size):
        victim = seq - size
        folder.append(user(seq, op=replace(victim, victim), sources=[victim]))
    assert folder.nodes() == tuple(range(size, 2 * size))
    last = user(2 * size, op=replace(size, 2 * size - 1), sources=list(range(size, 2 * size)))
    assert folder.append(last).shadowed == tuple(range(size, 2 * size))


def test_a_fold_that_is_kept_holds_bytes_and_no_objects() -> None:
    """A live session keeps its own for as long as it lives; in objects it was some 250 bytes an event."""
    folder, size = SurfaceFold(), 3_000
    for seq in range(0, size, 3):
        for each in (user(seq), assistant(seq + 1), tool_result(seq + 2, "c")):
            folder.append(each)
    assert held_bytes(folder) / size <= 32
    for seq in range(size, 2 * size):
        folder.append(user(seq, op=replace(seq - size, seq - size), sources=[seq - size]))
    assert held_bytes(folder) / size <= 52


def test_a_result_after_an_unknown_one_is_compared_again() -> None:
    folder = SurfaceFold()
    folder.append_skeleton(T0[0])
    folder.append(tool_result(1, "c", op=replace(0, 0), sources=[0], is_error=True))
    with pytest.raises(SurfaceError, match=r"^E18"):
        folder.append(tool_result(2, "c", op=replace(1, 1), sources=[1]))
