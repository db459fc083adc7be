"""The surface fold as slowly and plainly as SPEC 2 says it: a list, and positions looked up in it."""

from __future__ import annotations

import copy
from typing import Any

from msgspec import UNSET

from session_query.protocol.event import Event

SURFACE = ("user/message", "assistant/message", "tool/result")


class Broken(Exception):
    def __init__(self, rule: int) -> None:
        super().__init__(f"E{rule}")
        self.rule = rule


def model_fold(events: list[Event]) -> tuple[list[int], list[tuple[int, list[int]]], list[str]]:
    """(current nodes, [(replacement, removed)], classification by seq), or Broken with the rule."""
    nodes: list[int] = []
    replacements: list[tuple[int, list[int]]] = []
    for index, event in enumerate(events):
        removed = _one(events, nodes, index, event)
        if removed is not None:
            replacements.append((index, removed))
    gone = {seq for _, removed in replacements for seq in removed}
    kinds = ["current" if i in nodes else "shadowed" if i in gone else "log-only" for i in range(len(events))]
    return nodes, replacements, kinds


def _one(events: list[Event], nodes: list[int], index: int, event: Event) -> list[int] | None:
    op, sources = event.surface_op, event.source_event_seqs
    _rule(1, event.seq == index)
    if event.type not in SURFACE:
        _rule(2, op is UNSET)
        _rule(3, sources is UNSET)
        return None
    _rule(4, op is not UNSET)
    _rule(5, op == "append" or isinstance(op, dict))
    removed: list[int] | None = None
    if isinstance(op, dict):
        _rule(
            6,
            set(op) == {"op", "start", "end"}
            and op["op"] == "replace"
            and _seq(op["start"])
            and _seq(op["end"]),
        )
        _rule(7, op["start"] in nodes)
        _rule(8, op["end"] in nodes)
        bounds: Any = op
        first, last = nodes.index(bounds["start"]), nodes.index(bounds["end"])
        _rule(9, first <= last)
        removed = nodes[first : last + 1]
    cited = _sources(event, sources)
    if removed is not None:
        _rule(15, all(seq in cited for seq in removed))
        if event.type == "tool/result":
            _rule(16, len(removed) == 1)
            _rule(17, events[removed[0]].type == "tool/result")
            _rule(18, _stripped(events[removed[0]]) == _stripped(event))
        at = nodes.index(removed[0])
        nodes[at : at + len(removed)] = [index]
    else:
        nodes.append(index)
    return removed


def _sources(event: Event, sources: object) -> list[int]:
    if sources is UNSET:
        return []
    _rule(10, isinstance(sources, list))
    assert isinstance(sources, list)
    _rule(11, bool(sources) or event.type == "assistant/message")
    _rule(12, all(_seq(source) for source in sources))
    _rule(13, len(set(sources)) == len(sources))
    _rule(14, all(source < event.seq for source in sources))
    return sources


def _seq(value: object) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and value == int(value)
        and 0 <= value < 2**53
    )


def _rule(number: int, holds: bool) -> None:
    if not holds:
        raise Broken(number)


def _stripped(event: Event) -> object:
    data: Any = copy.deepcopy(event.data)
    del data["message"]["content"][0]["content"]
    return data
