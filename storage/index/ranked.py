"""Rank keys: what a hit is ordered by, in every tier, and how a page goes on after one (SPEC 6.5, 16.1.6)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import attrs

from ...protocol.cursor import Position, RankKey
from ...protocol.records import TIERS, Tier
from .door import StoredSession

Keys: TypeAlias = tuple[RankKey, ...]
"""Smaller is better, first difference decides."""


class Hit(NamedTuple):
    """A matching document. ``kind``: see ``schema.document_kind``.

    ``keys``: its rank without the tie keys: session id and seq.

    A tuple, because a search makes 84 and more: a frozen class takes three times as long to make.
    """

    row: int
    sid: int
    seq: int
    time: int
    kind: int
    keys: Keys


@attrs.define(eq=False)
class Group:
    """A session with its hits: its own best, and that of each sub-agent listed under it."""

    root: int
    keys: Keys
    best: Hit
    members: dict[int, Hit] = attrs.field(factory=dict)


def session_tie(session: StoredSession) -> Keys:
    """What decides between sessions that are equal otherwise: the id, then where it comes from."""
    return session.key.id, session.key.source, session.key.place


def passes(position: Position | None, tier: Tier, keys: Keys) -> bool:
    """Whether a hit comes after ``position``."""
    if position is None:
        return True
    at, wanted = TIERS.index(tier), TIERS.index(position.tier)
    return at > wanted or (at == wanted and keys > position.keys)
