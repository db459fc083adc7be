"""A history with a border through it, and every question that may be asked across it.

``fill`` makes what is visible from ``HERE``; with ``hidden`` also what lies beyond: sessions that share ids,
words, parents and origins with the visible ones. The questions are generated from the wire's methods and
the tools' schemas, so that a parameter nobody thought of fails a test.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from session_query.protocol.tools.schemas import SPECS
from session_query.protocol.wire.methods import METHODS
from support.doors import World
from support.events import assistant, event, tool_call, user
from support.providers import FakeProvider
from support.sessions import ELSEWHERE, HERE, T0, THERE, head, header, log, prompts, sent, title

WORDS = ("quartz lamp", "the quartz in a lamp", "lamp", "a quartz, a lamp and a fox", "fox")


async def fill(world: World, *, hidden: bool, children: bool = False) -> None:
    """Args: children: hidden sessions are children of visible ones; tools mark their places (10.7.10)."""
    await _visible(world)
    provider = FakeProvider()
    provider.put(header("told", at=T0 + 50), log(user(0, "quartz told"), title("told title")))
    provider.put(header("bad", at=T0 + 51), log(user(0, "x", op=None)))
    below = header("told-child", at=T0 + 52, parent="shared", origin="subagent")
    provider.put(below, prompts("quartz below"))  # of two namesakes the hidden one is of its own source
    if hidden:
        await _hidden(world, children)
        for session_id in ("hidden-told", "shared"):
            provider.put(header(session_id, cwd=THERE, at=T0 + 60), prompts(*WORDS * 3))
        provider.put(header("hidden-bad", cwd=THERE, at=T0 + 61), log(user(0, "x", op=None)))
    world.service.mount("p", provider)


async def _visible(world: World) -> None:
    """Parents beyond the border are missing ones when nothing is hidden."""
    for number, words in enumerate(WORDS):
        await world.publish(f"v{number}", log(user(0, words), title(f"title {number}")), at=T0 + number)
    await world.publish("shared", prompts("quartz shared"), at=T0 + 10)
    await world.publish("stray", prompts("quartz stray"), at=T0 + 11, parent="hidden")
    await world.publish("sub", prompts("quartz sub"), at=T0 + 12, parent="hidden", origin="subagent")
    await world.publish(
        "namesake", prompts("quartz namesake"), at=T0 + 13, parent="shared", origin="subagent"
    )
    for number in range(2):  # two forks of one origin that is not in reach
        fork = head(f"fork{number}", at=T0 + 14 + number, parent="hidden", seed=2)
        seed = log(user(0, "quartz inherited"), user(1, "lamp inherited"), event("session/end-seed", 2))
        handle = await world.service.attach(fork, sent(seed))
        await handle.append(sent(prompts(f"fox of fork {number}", start=3)))
    steps = (assistant(0, "quartz"), event("step/start", 0), tool_call(0, "c", "lamp"))
    await world.publish("traced", log(user(0, "quartz"), *steps), at=T0 + 20, parent="v0")


async def _hidden(world: World, children: bool) -> None:
    words = prompts(*WORDS * 20)
    await world.publish("hidden", log(*words, title("secret title")), cwd=THERE, at=T0 + 1)
    await world.publish("shared", words, cwd=THERE, at=T0 + 2)
    await world.publish("shared", words, cwd=ELSEWHERE, at=T0 + 10)
    await world.publish("hidden-child", words, cwd=THERE, parent="hidden", origin="subagent")
    await world.publish("hidden-homeless", words, cwd=None, detach=True)
    await world.publish("hidden-fork", cwd=THERE, parent="hidden", seed=2, at=T0)
    if children:
        await world.publish("hidden-of-v0", words, cwd=THERE, parent="v0", at=T0 + 30)
        await world.publish("visible-below", at=T0 + 31, parent="hidden-of-v0")


VISIBLE = ("v0", "shared", "stray", "fork0", "traced", "told-child", "bad")
ABSENT = ("hidden", "missing")

FILTERS: dict[str, Any] = {
    "id": lambda target: [{"kind": "id", "values": [target, "v1"]}],
    "parent": lambda target: [{"kind": "parent", "values": [target]}],
    "parent or root": lambda target: [{"kind": "parent", "values": [target, None]}],
    "cwd": lambda target: [{"kind": "cwd", "values": [{"hidden": THERE}.get(target, f"/no/{target}")]}],
    "cwd null": lambda target: [{"kind": "cwd", "values": [None]}],
    "created": lambda target: [{"kind": "created-at", "from": T0 + 2, "to": T0 + 14}],
    "live": lambda target: [{"kind": "availability", "values": ["live"]}],
    "none": lambda target: [],
}
PARAMETERS: dict[str, list[Any]] = {
    "session_id": ["target"],
    "session_ids": [["target", "v0", "target"]],
    "seq": [0, 3, 99],
    "before": [0, 50],
    "after": [0, 50],
    "query": ["quartz lamp", "fox", "inherited"],
    "match": ["exact", "auto"],
    "limit": [2, 100],
    "cursor": [],
    "workspaces": [[HERE], [HERE, THERE]],
    "event_filters": [[], [{"kind": "type", "values": ["user/message"]}]],
    "full": [],
    "samples": [],
    "format": ["dsh"],
    "path": ["/nowhere"],
}
"""Values for every parameter of a method. A parameter that is not here fails ``method_questions``."""
SESSION_FILTERS = ("filters", "session_filters")


def method_questions(name: str, target: str) -> Iterator[dict[str, Any]]:
    """Parameters for one method: each value of each parameter at least once."""
    method = METHODS[name]
    fields = {field: _values(name, field, target) for field in (*method.required, *method.optional)}
    required = {field: fields[field][0] for field in method.required}
    yield required
    for field, values in fields.items():
        for value in values:
            yield required | {field: value}


def _values(method: str, field: str, target: str) -> list[Any]:
    if field in SESSION_FILTERS and method != "filter_events":
        return [make(target) for make in FILTERS.values()]
    if field == "filters":
        return [[], [{"kind": "text", "text": "quartz"}]]
    return [_aimed(value, target) for value in PARAMETERS[field]]


def _aimed(value: Any, target: str) -> Any:
    if isinstance(value, list):
        return [_aimed(item, target) for item in value]
    return target if value == "target" else value


ARGUMENTS: dict[str, list[Any]] = {
    "query": ["quartz lamp", "fox", "inherited"],
    "match": ["exact", "auto", "words", "some"],
    "session_ids": [["target"], ["target", "v0"]],
    "created_at_from": ["2031-03-05T06:07:08.003Z"],
    "created_at_to": ["2031-03-05T06:07:08.012Z"],
    "parent_session_ids": [["target"], ["target", "v0"]],
    "include_root_sessions": [True],
    "availability": [["live"]],
    "event_seq_from": [1],
    "event_seq_to": [0],
    "event_time_from": ["2031-03-05T06:07:08Z"],
    "event_time_to": ["2031-03-05T06:07:08Z"],
    "event_types": [["user/message"]],
    "event_surfaces": [["current"]],
    "session_id": ["target"],
    "seq_from": [0],
    "seq_to": [9],
    "time_from": ["2031-03-05T06:07:08Z"],
    "time_to": ["2031-03-05T06:07:08Z"],
    "surfaces": [["current"]],
    "seq": [0],
    "before": [1],
    "after": [1],
}
"""Values for every argument of a tool. An argument that is not here fails ``tool_questions``."""


def tool_questions(name: str, target: str) -> Iterator[dict[str, Any]]:
    """Argument sets for one tool: each value of each argument at least once."""
    properties = _properties(name)
    required = {"session_id": target} if "session_id" in properties else {}
    for field in ("query", "seq"):
        if field in properties:
            required[field] = ARGUMENTS[field][0]
    yield required
    for field in properties:
        for value in ARGUMENTS[field]:
            yield required | {field: _aimed(value, target)}


def _properties(name: str) -> list[str]:
    parameters = SPECS[name].parameters()
    assert isinstance(parameters, dict)
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    return list(properties)


def as_bytes(value: Any) -> bytes:
    """An answer as bytes; of a cursor, what it says of the position."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _position(item) if key == "next_cursor" and item else _plain(item)
            for key, item in value.items()
        }
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _position(cursor: str) -> Any:
    text = cursor.partition(".")[0]
    payload = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return [payload["t"], payload["k"]]
