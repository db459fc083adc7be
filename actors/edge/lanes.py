"""Order where order matters: requests of one lane start in the order they arrived, one at a time.

Appends of one session, and searches of one caller (SPEC 16.5), stand in lanes; everything else does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

import attrs
import trio


@attrs.define(eq=False)
class Ticket:
    """A place in a lane. ``ready`` is set when it is this request's turn (or when it is told to give up)."""

    _lanes: Lanes
    _key: Hashable
    ready: trio.Event = attrs.field(factory=trio.Event, init=False)

    def leave(self) -> None:
        """Give the place up, served or not; the next one becomes ready. Idempotent."""
        self._lanes.leave(self._key, self)


@attrs.define(eq=False)
class Lanes:
    """All lanes of one connection. Lanes exist while somebody stands in them."""

    _waiting: dict[Hashable, deque[Ticket]] = attrs.field(factory=dict, init=False)

    def enter(self, key: Hashable) -> Ticket:
        """Take the next place. Sync, so that the reader's order is the lane's order."""
        ticket = Ticket(self, key)
        line = self._waiting.setdefault(key, deque())
        line.append(ticket)
        if line[0] is ticket:
            ticket.ready.set()
        return ticket

    def leave(self, key: Hashable, ticket: Ticket) -> None:
        line = self._waiting.get(key)
        if line is None or ticket not in line:
            return
        line.remove(ticket)
        if line:
            line[0].ready.set()
        else:
            del self._waiting[key]

    def __len__(self) -> int:
        return len(self._waiting)
