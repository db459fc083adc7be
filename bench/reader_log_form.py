"""How synthetic logs are made: turns with contents, a format that writes them down, a file of a size."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

import attrs

Obj: TypeAlias = "dict[str, object]"

_WORDS: Final = (
    *("index", "cursor", "harbour", "ferry", "token", "window", "ledger", "parser", "session", "replay"),
    *("branch", "commit", "socket", "thread", "deadline", "receipt", "surface", "journal", "anchor"),
    *("lantern", "meadow", "quartz", "violet", "tundra", "saffron", "cobalt", "ember", "timetable"),
)
START_MS: Final = 1_790_000_000_000


@attrs.frozen
class Turn:
    """The contents of one turn; formats write them down each in their way."""

    number: int
    prompt: str
    thought: str
    calls: list[tuple[str, str, str]]
    answer: str

    def time(self, step: int) -> int:
        return START_MS + self.number * 60_000 + step * 700

    def stamp(self, step: int) -> str:
        at = datetime.fromtimestamp(self.time(step) / 1000, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def turns() -> Iterator[Turn]:
    rng = random.Random(7)
    number = 0
    while True:
        calls = [
            (
                f"call-{number}-{k}",
                json.dumps({"path": f"src/{_text(rng, 2)}.py"}),
                _text(rng, rng.randint(40, 700)),
            )
            for k in range(2 if number % 6 == 0 else 1)
        ]
        yield Turn(number, _text(rng, 24), _text(rng, 60), calls, _text(rng, 90))
        number += 1


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words))


@attrs.frozen
class Format:
    """How a format begins a log and writes one turn; ``name`` is where such a log lies below a root."""

    name: str
    head: Callable[[], list[Obj]]
    turn: Callable[[Turn], list[Obj]]


def write_log(form: Format, root: Path, size_bytes: int) -> Path:
    """Write a log of at least ``size_bytes`` below ``root``."""
    path = root / form.name
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("wb") as file:
        for obj in form.head():
            written += file.write(_line(obj))
        for turn in turns():
            if written >= size_bytes:
                return path
            for obj in form.turn(turn):
                written += file.write(_line(obj))
    return path


def _line(obj: Obj) -> bytes:
    return json.dumps(obj, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
