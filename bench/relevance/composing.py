"""From written sessions to logs: shared exchanges are mixed in, turns become events. Seeded, no clock.

Ids, times and the choice of shared exchanges come from a digest of the session's slug, so that the same
data files give the same logs everywhere, and nothing of a slug is ever searchable.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
from msgspec import UNSET

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.json_value import JSON
from .notation import Part, Script, Topic, Turn

EPOCH_MS: Final = 1_740_000_000_000
SPAN_MS: Final = 370 * 86_400_000
SHARED_OF_TOPIC: Final = (1, 3)
SHARED_OF_ALL: Final = (1, 2)
"""How many shared exchanges a session holds, fewest and most."""


@attrs.frozen(kw_only=True)
class LabelledSession:
    """One session of the set: its log, and what the labels need to know about it."""

    slug: str
    topic: str
    header: SessionHeader
    events: tuple[Event, ...]
    inherited: int
    asks: bool
    searches: bool
    aside: bool
    parent: str | None
    is_sub_agent: bool


def session_id(slug: str) -> str:
    """The outward id of a written session: tells nothing about it."""
    digest = hashlib.sha256(f"relevance/{slug}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def compose(topics: Iterable[Topic], common: Mapping[str, Sequence[Turn]]) -> list[LabelledSession]:
    """Turn all topics into logs, parents before their children.

    Args: ``common``: exchanges that any session of a language may hold, by language.
    Raises: ValueError: a fork or sub-agent names a session that is not written, or forks in a circle.
    """
    maker = _Maker(common)
    for topic in topics:
        for script in topic.scripts:
            if script.slug in maker.scripts:
                raise ValueError(f"{script.slug} is written twice")
            maker.scripts[script.slug] = (topic, script)
    for slug in maker.scripts:
        maker.make(slug)
    return list(maker.made.values())


@attrs.define
class _Maker:
    common: Mapping[str, Sequence[Turn]]
    scripts: dict[str, tuple[Topic, Script]] = attrs.field(factory=dict)
    made: dict[str, LabelledSession] = attrs.field(factory=dict)
    turns: dict[str, list[tuple[Turn, bool]]] = attrs.field(factory=dict)
    ends: dict[str, list[int]] = attrs.field(factory=dict)
    doing: set[str] = attrs.field(factory=set)

    def make(self, slug: str) -> LabelledSession:
        if slug in self.made:
            return self.made[slug]
        if slug in self.doing or slug not in self.scripts:
            raise ValueError(f"{slug} is its own ancestor or not written")
        self.doing.add(slug)
        topic, script = self.scripts[slug]
        rng = random.Random(f"relevance/{slug}")
        chosen = mix(topic, script, self.common.get(topic.lang, ()), rng)
        self.turns[slug] = chosen
        parent = script.fork[0] if script.fork else script.sub
        above = self.make(parent) if parent else None
        seed = self._seed(script)
        created = EPOCH_MS + rng.randrange(SPAN_MS)
        if above is not None:
            created = max(above.header.created_at, above.events[-1].time) + rng.randrange(5_000, 900_000)
        log = _Log(list(seed), created, rng, slug)
        if seed:
            log.add("session/end-seed", {})
        self.ends[slug] = [log.turn(turn, at) for at, (turn, _) in enumerate(chosen, 1)]
        log.add("session/title", {"title": script.title, "messageSeqs": [], "source": {"kind": "model"}})
        made = LabelledSession(
            slug=slug,
            topic=topic.name,
            header=SessionHeader(
                id=session_id(slug),
                created_at=created,
                cwd=topic.cwd,
                parent_session=session_id(parent) if parent else None,
                seed_length=len(seed) if script.fork else None,
                origin="subagent" if script.sub else None,
                delegation_depth=1 if script.sub else 0,
            ),
            events=tuple(log.events),
            inherited=len(seed),
            asks=script.asks,
            searches=script.searches,
            aside=script.aside,
            parent=parent,
            is_sub_agent=script.sub is not None,
        )
        self.made[slug] = made
        return made

    def _seed(self, script: Script) -> Sequence[Event]:
        """The events a fork inherits: its parent's log to the end of the named written turn."""
        if script.fork is None:
            return ()
        parent, wanted = script.fork
        self.make(parent)
        written = 0
        for (_, own), end in zip(self.turns[parent], self.ends[parent], strict=True):
            written += own
            if written == wanted:
                return self.made[parent].events[: end + 1]
        raise ValueError(f"{parent} has no written turn {wanted}")


def written_log(turns: Iterable[Turn], created_at: int, name: str) -> list[Event]:
    """The log of a session that consists of these turns alone, seeded by its name."""
    log = _Log([], created_at, random.Random(f"relevance/{name}"), name)
    for number, turn in enumerate(turns, 1):
        log.turn(turn, number)
    return log.events


def mix(topic: Topic, script: Script, common: Sequence[Turn], rng: random.Random) -> list[tuple[Turn, bool]]:
    """The turns of a session in order, each with whether it is the session's own."""
    own = [(turn, True) for turn in script.turns]
    if script.filler is not None:
        shared = list(topic.shared)
        rng.shuffle(shared)
        chosen = shared[: script.filler]
    else:
        chosen = _some(topic.shared, SHARED_OF_TOPIC, rng) + _some(common, SHARED_OF_ALL, rng)
    places = sorted(rng.randrange(len(own) + 1) for _ in chosen)
    rng.shuffle(chosen)
    for place, turn in sorted(zip(places, chosen, strict=True), key=lambda pair: -pair[0]):
        own.insert(place, (turn, False))
    return own


def _some(turns: Sequence[Turn], bounds: tuple[int, int], rng: random.Random) -> list[Turn]:
    wanted = min(rng.randint(*bounds), len(turns))
    return rng.sample(list(turns), wanted)


@attrs.define
class _Log:
    events: list[Event]
    now: int
    rng: random.Random
    slug: str
    calls: int = 0

    def add(self, kind: str, data: JSON, *, surface: bool = False) -> int:
        self.now += self.rng.randrange(40, 9_000)
        event = Event(
            type=kind,
            seq=len(self.events),
            time=self.now,
            data=data,
            surface_op="append" if surface else UNSET,
        )
        self.events.append(event)
        return event.seq

    def turn(self, turn: Turn, number: int) -> int:
        """Write one turn; returns the seq of its end."""
        self.now += self.rng.randrange(5_000, 400_000)
        self.add("turn/start", {"turn": number})
        reason: JSON = {"kind": "completed"}
        step, waiting = 0, list[str]()
        for is_answer, parts in _runs(turn):
            if is_answer:
                step += 1
                self.add("step/start", {"turn": number, "step": step})
                waiting = self._answer(parts, number, step)
                continue
            for part in parts:
                if part.mark == ">":
                    self._prompt(part.text)
                elif part.mark == "*":
                    self.add("todo/write", {"todos": _todos(part.text)})
                elif part.mark == "$":
                    reason = _reason(part.text)
                else:
                    self._result(part, waiting.pop(0), number, step)
        if step:
            self.add("step/end", {"turn": number, "step": step})
        return self.add("turn/end", {"turn": number, "reason": reason})

    def _prompt(self, text: str) -> None:
        message: JSON = {
            "id": f"m{len(self.events)}",
            "role": "user",
            "content": [{"type": "text", "text": text}],
            "source": {"kind": "user"},
        }
        self.add("user/message", message, surface=True)

    def _answer(self, parts: Sequence[Part], turn: int, step: int) -> list[str]:
        """One model call: what it says and which tools it calls; returns the ids of the calls."""
        content: list[JSON] = []
        calls: list[tuple[str, str, str]] = []
        for part in parts:
            if part.mark == "<":
                content.append({"type": "text", "text": part.text})
                continue
            self.calls += 1
            name, _, arguments = part.text.partition(" ")
            call_id = f"call_{hashlib.sha256(f'{self.slug}{self.calls}'.encode()).hexdigest()[:10]}"
            calls.append((call_id, name, arguments or "{}"))
            content.append({"type": "tool-call", "id": call_id, "name": name, "arguments": arguments or "{}"})
        source: JSON = {"kind": "model", "provider": "local", "model": "m-1"}
        message: JSON = {
            "id": f"m{len(self.events)}",
            "role": "assistant",
            "content": content,
            "source": source,
        }
        self.add("assistant/message", {"turn": turn, "step": step, "message": message}, surface=True)
        for call_id, name, arguments in calls:
            call: JSON = {
                "turn": turn,
                "step": step,
                "callId": call_id,
                "name": name,
                "arguments": arguments,
            }
            self.add("tool/call", call)
        return [call_id for call_id, _, _ in calls]

    def _result(self, part: Part, call_id: str, turn: int, step: int) -> None:
        text = part.text
        error: dict[str, JSON] | None = None
        if part.mark == "x":
            head, _, text = part.text.partition(" | ")
            name, _, code = head.partition(" ")
            error = {"name": name, "code": code or name}
        block: dict[str, JSON] = {
            "type": "tool-result",
            "toolCallId": call_id,
            "content": [{"type": "text", "text": text}],
        }
        if error:
            block["isError"] = True
        data: dict[str, JSON] = {
            "turn": turn,
            "step": step,
            "message": {
                "id": f"r-{call_id}",
                "role": "user",
                "source": {"kind": "tool", "callId": call_id},
                "content": [block],
            },
        }
        if error:
            data["error"] = error
        self.add("tool/result", data, surface=True)


def _runs(turn: Turn) -> list[tuple[bool, list[Part]]]:
    """Cut a turn into model calls (sayings, then their tool calls) and everything else, in order."""
    found: list[tuple[bool, list[Part]]] = []
    for part in turn:
        is_answer = part.mark in "<!"
        goes_on = bool(found) and found[-1][0] == is_answer
        if goes_on and not (part.mark == "<" and any(before.mark == "!" for before in found[-1][1])):
            found[-1][1].append(part)
        else:
            found.append((is_answer, [part]))
    return found


def _todos(text: str) -> list[JSON]:
    pairs = (item.split(":", 1) for item in text.split(";"))
    return [{"status": status.strip(), "content": content.strip()} for status, content in pairs]


def _reason(text: str) -> JSON:
    kind, _, message = text.partition(" ")
    if kind == "error":
        return {"kind": "error", "error": {"message": message, "code": "PROVIDER"}}
    if kind == "aborted":
        return {"kind": "aborted", "reason": {"kind": "user"}}
    return {"kind": kind}
