"""The surface of a session as its mapper builds it: what is visible, and what gives way (SPEC 2, 16.7.4).

A rewind or compaction names what it leaves behind; the next message takes its place. All that is kept
lies in the session's ``LogState``.
"""

from __future__ import annotations

import attrs

from .log_state import LogState


@attrs.frozen
class Visible:
    """Operations on the surface nodes of one session. Owned by its ``SessionLog``."""

    _state: LogState

    def before(self, seq: int) -> list[int]:
        """The visible nodes in front of event ``seq``, earlier checkpoints included: those stand in the
        place of what they replaced, so that a node followed by an older one is one of them."""
        surface = self._state.surface
        end = max((at + 1 for at, node in enumerate(surface) if node < seq), default=0)
        while end + 1 < len(surface) and surface[end] > surface[end + 1]:
            end += 1
        return surface[:end]

    def abandon_since(self, seq: int) -> None:
        """A rewind: the nodes at the end of the surface that came with event ``seq`` or later."""
        surface = self._state.surface
        start = len(surface)
        while start > 0 and surface[start - 1] >= seq:
            start -= 1
        if start < len(surface):
            self.abandon_from(surface[start])

    def abandon_from(self, node: int) -> None:
        """A rewind: ``node`` and all behind it give way to the next message (SPEC 16.7.4)."""
        surface = self._state.surface
        if node not in surface:
            return
        start = surface.index(node)
        old = self._state.abandoned
        if old is not None and old[0] in surface:
            start = min(start, surface.index(old[0]))
        self._state.abandoned = (surface[start], surface[-1])
        kept = set(surface[:start])
        self._state.prompts = [seq for seq in self._state.prompts if seq in kept]

    def abandon_before(self, seq: int | None) -> None:
        """What is visible before event ``seq`` (all if None) gives way to the next message: a compaction."""
        gone = self._state.surface if seq is None else self.before(seq)
        if gone:
            self._state.abandoned = (gone[0], gone[-1])

    def abandon_prompts(self, count: int) -> None:
        """A rewind by whole turns: the last ``count`` human prompts and what followed them."""
        if count > 0 and self._state.prompts:
            self.abandon_from(self._state.prompts[max(len(self._state.prompts) - count, 0)])

    def replace(self, bounds: tuple[int, int]) -> list[int]:
        """Put the event to come in the place of the run; empty (append) if it is no longer visible."""
        state = self._state
        try:
            start, end = state.surface.index(bounds[0]), state.surface.index(bounds[1])
        except ValueError:
            return []
        removed = state.surface[start : end + 1]
        if not removed:
            return []
        state.surface[start : end + 1] = [state.next_seq]
        gone = set(removed)
        state.prompts = [seq for seq in state.prompts if seq not in gone]
        if state.abandoned is not None and gone.intersection(state.abandoned):
            state.abandoned = None
        return removed
