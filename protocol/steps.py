"""Where a session stands: its current step, and what of it a search by itself may not see.

A caller that searches its own session must not find the very call it is making (SPEC 10.8.2): from the
latest step on nothing matches. Logs of formats without step events are cut before the latest answer or
tool call instead (SPEC 16.7.6).
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from .event import Event


@attrs.define
class StepCut:
    """The cut of one log, event by event."""

    current_step: int | None = None
    """Seq of the latest ``step/start``, ended or not (SPEC 1.6.4)."""
    latest_action: int | None = None
    """Seq of the latest ``assistant/message`` or ``tool/call``."""

    def feed(self, type_: str, seq: int) -> None:
        """Take the next event."""
        if type_ == "step/start":
            self.current_step = seq
        elif type_ in ("assistant/message", "tool/call"):
            self.latest_action = seq

    @property
    def cut(self) -> int | None:
        """The first seq that may not match; None if the log has neither steps nor actions."""
        return self.latest_action if self.current_step is None else self.current_step


def search_cut(events: Iterable[Event]) -> int | None:
    """The first seq of a caller's own log that its search may not see; None: no step to cut at."""
    cut = StepCut()
    for event in events:
        cut.feed(event.type, event.seq)
    return cut.cut
