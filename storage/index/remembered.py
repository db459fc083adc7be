"""What one reader looked up and what holds until somebody commits (see ``Reader.snapshot``)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import attrs

from .door import StoredSession

_SESSIONS_MAX: Final = 2_000
_BLOCKS_MAX: Final = 200_000
_COUNTS_MAX: Final = 5_000
_TYPES_MAX: Final = 1_000


@attrs.define(eq=False)
class Remembered:
    """``sessions``: by sid, 8 us each to read. ``sids``: the sessions of blocks. ``forks``: the sids of all
    sessions that inherited events, None if not asked yet. ``types``: their names. ``counts``: how many
    units in a reach hold a word, about 1 ms each at a million events, and what a reach holds in all, 3 ms.
    """

    sessions: dict[int, StoredSession] = attrs.field(factory=dict)
    sids: dict[int, int] = attrs.field(factory=dict)
    counts: dict[Hashable, tuple[int, ...]] = attrs.field(factory=dict)
    forks: tuple[int, ...] | None = None
    types: dict[int, str] = attrs.field(factory=dict)

    def clear(self) -> None:
        """Forget everything: another transaction may see other values."""
        self.sessions.clear()
        self.sids.clear()
        self.counts.clear()
        self.forks = None
        self.types.clear()

    def trim(self) -> None:
        """Keep within bounds, between two searches: what matters comes back at once."""
        if len(self.sessions) > _SESSIONS_MAX:
            self.sessions.clear()
        if len(self.sids) > _BLOCKS_MAX:
            self.sids.clear()
        if len(self.counts) > _COUNTS_MAX:
            self.counts.clear()
        if len(self.types) > _TYPES_MAX:
            self.types.clear()
