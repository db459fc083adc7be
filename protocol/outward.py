"""Outward ids: how a session is named to a caller (SPEC 16.6.1).

A session is (source, place, id). Its outward id is the bare id while that is unique inside the caller's
reach, else ``source:id``, else ``source/place:id``. What lies outside the reach has no part in it, so
that nothing hidden can show through a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

import attrs


@attrs.frozen
class SessionKey:
    """Who a session is: its source (``live``, ``journal``, a reader's or provider's name), place and id."""

    source: str
    place: str
    id: str


class Identified(Protocol):
    """Who a session is: its source, its place and its id."""

    @property
    def source(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def id(self) -> str: ...


K = TypeVar("K", bound=Identified)


def outward_ids(keys: Iterable[K]) -> dict[K, str]:
    """The outward id of every session of one reach. Costs one pass."""
    listed = list(keys)
    by_id = Counter(key.id for key in listed)
    by_source = Counter((key.source, key.id) for key in listed)
    return {key: _name(key, by_id[key.id], by_source[key.source, key.id]) for key in listed}


def _name(key: Identified, same_id: int, same_source: int) -> str:
    if same_id == 1:
        return key.id
    return f"{key.source}:{key.id}" if same_source == 1 else f"{key.source}/{key.place}:{key.id}"


PREFIX_COLONS: Final = 16
"""Colons looked behind: a source has none, a place (a path) hardly one. A text of colons costs no more."""


PREFIX_CHARS: Final = 65_536
"""A longer text is read as a bare id alone: its readings would be copies of it, sixteen times its size."""


def possible_ids(outward: str) -> Iterator[str]:
    """The bare ids that an outward id may stand for: itself, and what follows each of its first colons."""
    yield outward
    if len(outward) > PREFIX_CHARS:
        return
    start = outward.find(":")
    for _ in range(PREFIX_COLONS):
        if start < 0:
            return
        yield outward[start + 1 :]
        start = outward.find(":", start + 1)


def named(outward: str, candidates: Iterable[K]) -> K | None:
    """The one session in reach that ``outward`` names, or None.

    ``candidates`` are all sessions of the reach whose bare id is one of ``possible_ids(outward)``.
    A bare id shared by several sessions names none of them; the longest reading (the bare id) comes first.
    """
    listed = list(candidates)
    for bare in possible_ids(outward):
        same = [key for key in listed if key.id == bare]
        names = outward_ids(same)
        found = [key for key in same if names[key] == outward]
        if len(found) == 1:
            return found[0]
    return None
