"""How many leading events of a fork are copies of its parent's log (SPEC 16.9).

A fork's log goes on, behind its own ``session_meta``, with its parent's ``session_meta`` and items. They
carry either the parent's times, all before the fork, or the times of one burst of writing. In a burst the
turn left open at its end is the fork's own: its first prompt follows the copies within milliseconds.
Counted low rather than high: an own event called a copy could not be found any more.
"""

from __future__ import annotations

from typing import Final

import msgspec

_GAP_MS: Final = 250
"""Between two lines of one burst; a model answers no faster."""
_BURST_MS: Final = 60_000


class Copied(msgspec.Struct):
    """Where the copying stands. Part of the mapper's state."""

    forked_ms: int | None = None
    written_ms: int | None = None
    copying: bool = False
    burst_from: int | None = None
    last_ms: int = 0
    open_turn: int | None = None

    def begin(self, created_ms: int | None, written_ms: int | None) -> None:
        """The parent's ``session_meta`` was met before any message.

        ``created_ms``: when the fork was made. ``written_ms``: the time of its first line.
        """
        self.forked_ms, self.written_ms, self.copying = created_ms, written_ms, True

    def inherited(self, time_ms: int | None, next_seq: int) -> int | None:
        """Ask before an event is made: the final count if the copies ended before it, else None."""
        if time_ms is None or self.forked_ms is None or time_ms < self.forked_ms:
            return None
        if self.burst_from is None:
            self.burst_from = self.last_ms = time_ms
            if time_ms - (self.forked_ms if self.written_ms is None else self.written_ms) > _GAP_MS:
                return self._end(next_seq)
        if time_ms - self.last_ms > _GAP_MS or time_ms - self.burst_from > _BURST_MS:
            return self._end(next_seq)
        self.last_ms = max(self.last_ms, time_ms)
        return None

    def turn(self, seq: int | None) -> None:
        """A turn began at ``seq``, or the open one ended (None)."""
        if self.burst_from is not None:
            self.open_turn = seq

    def _end(self, next_seq: int) -> int:
        self.copying = False
        return next_seq if self.open_turn is None else self.open_turn
