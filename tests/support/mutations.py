"""Seeded damage to bytes: what disks, crashes, second writers and editors do to a log."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Final

import attrs

Mutation = Callable[[random.Random, bytes], tuple[bytes, int]]
"""Returns the damaged bytes and the offset before which nothing was touched."""


@attrs.frozen
class Mutated:
    content: bytes
    sound_bytes: int
    how: str


def _at(rng: random.Random, raw: bytes) -> int:
    return rng.randrange(len(raw)) if raw else 0


def flip(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    at = _at(rng, raw)
    return raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :], at


def drop(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    at = _at(rng, raw)
    return raw[:at] + raw[at + rng.choice((1, 7, 64, 400)) :], at


def noise(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    at = _at(rng, raw)
    return raw[:at] + rng.randbytes(rng.choice((1, 3, 50))) + raw[at:], at


def nuls(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    at, size = _at(rng, raw), rng.choice((1, 30, 4096))
    return raw[:at] + b"\0" * size + raw[at + rng.choice((0, size)) :], at


def repeat(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    start = _at(rng, raw)
    end = min(len(raw), start + rng.choice((2, 40, 500)))
    return raw[:end] + raw[start:end] + raw[end:], end


def truncate(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    at = _at(rng, raw)
    return raw[:at], at


def token(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    at = _at(rng, raw)
    tokens = (b"\n", b"\r\n", b"{", b"}", b'"', b"[", b"]", b",", b":", b"\\", b'{"', b"null", b"\xff", b"}{")
    return raw[:at] + rng.choice(tokens) + raw[at:], at


def swap_word(rng: random.Random, raw: bytes) -> tuple[bytes, int]:
    """One JSON word becomes another: types change where the syntax does not."""
    words = (b"true", b"null", b'""', b"[]", b"{}", b"-1", b"1e308", b"9007199254740993", b'"\\ud800"')
    found = [at for at in range(len(raw)) if raw[at : at + 1] in b'"0123456789' and rng.random() < 0.05]
    at = rng.choice(found) if found else 0
    end = raw.find(b'"', at + 1) + 1 if raw[at : at + 1] == b'"' else at + 1
    return raw[:at] + rng.choice(words) + raw[max(end, at) :], at


MUTATIONS: Final[tuple[Mutation, ...]] = (flip, drop, noise, nuls, repeat, truncate, token, swap_word)


def mutate(seed: int, raw: bytes) -> Mutated:
    """Damage ``raw`` in one to three places, the same for the same seed."""
    rng = random.Random(seed)
    sound, names = len(raw), []
    for _ in range(rng.choice((1, 1, 2, 3))):
        mutation = rng.choice(MUTATIONS)
        raw, at = mutation(rng, raw)
        sound = min(sound, at)
        names.append(mutation.__name__)
    return Mutated(raw, sound, "+".join(names))


STRANGE: Final[tuple[object, ...]] = (
    *(None, True, False, 0, -1, 1.5, 2**53 + 1, -(10**30), 1e308),
    *("", "x", " \u2028", "\ud800", "2026-13-45", "null", "\0"),
    *([], {}, [[]], [None], [{}], {"type": []}, {"type": {}}, ["text"], {"": ""}, {"id": [], "text": {}}),
)
"""What writers never write where a reader looks."""


def mutate_values(seed: int, raw: bytes, *, lines: bool) -> bytes:
    """Change one to four values of a log whose syntax stays whole: another type, a missing key, a copy."""
    rng = random.Random(seed)
    parts = [part for part in raw.split(b"\n") if part.strip()] if lines else [raw]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(parts))
        value = json.loads(parts[at])
        _change(rng, value)
        parts[at] = json.dumps(value).encode()
    if lines and rng.random() < 0.2:
        at = rng.randrange(len(parts))
        parts.insert(rng.randrange(len(parts)), parts[at])
    return b"\n".join(parts) + b"\n"


def _change(rng: random.Random, value: object) -> None:
    """Replace, remove or move one member somewhere inside ``value``."""
    places = [
        (node, key)
        for node in _nodes(value)
        for key in (node if isinstance(node, dict) else range(len(node)))
    ]
    if not places:
        return
    node, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.15 and isinstance(node, dict):
        del node[key]
    elif kind < 0.3:
        other, name = rng.choice(places)
        node[key] = json.loads(json.dumps(other[name]))
    else:
        node[key] = rng.choice(STRANGE)


def _keys(node: dict | list) -> list:
    return list(node) if isinstance(node, dict) else list(range(len(node)))


def _nodes(value: object) -> list[dict | list]:
    found, stack = [], [value]
    while stack:
        node = stack.pop()
        if isinstance(node, (dict, list)):
            found.append(node)
            stack.extend(node.values() if isinstance(node, dict) else node)
    return found
