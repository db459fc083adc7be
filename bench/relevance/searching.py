"""What the scorer needs of a search engine, so that any can be scored: ablations, older builds, rivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

import attrs

from ...protocol.records import Match as Match  # handed on: every searcher speaks of it
from ...protocol.records import Tier
from .composing import LabelledSession


@attrs.frozen
class Found:
    """One session hit. ``under``: ids of sub-agents that are listed under it with their own matches."""

    id: str
    tier: Tier | None = None
    under: tuple[str, ...] = ()


class Searcher(Protocol):
    """A search over one set of sessions, best hit first."""

    def search(self, query: str, *, match: Match, limit: int, workspace: str | None) -> list[Found]:
        """At most ``limit`` sessions; ``workspace`` None reaches all of them."""
        ...


SearcherFactory: TypeAlias = Callable[[Sequence[LabelledSession]], AbstractContextManager[Searcher]]
"""Makes a searcher over these sessions and cleans up after it."""
