"""The persistence seam: stores of sessions that a host may mount, replace and unmount (SPEC 1.9).

The journal and the log readers are built in; this seam is for the host's own stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from ..protocol.event import Event
from ..protocol.header import SessionHeader
from ..protocol.signal import Signal


@attrs.frozen(kw_only=True)
class SessionSnapshot:
    """A stored session as a listing sees it. Equal revisions mean an unchanged log (SPEC 1.9.1)."""

    header: SessionHeader
    revision: str


@attrs.frozen(kw_only=True)
class Inspected:
    """A stored session's header and its events, balanced after a crash (SPEC 1.7)."""

    header: SessionHeader
    events: Sequence[Event]


class PersistenceProvider(Protocol):
    """A store of sessions. Every operation is read-only; ``load`` with repair is not part of the seam.

    Raise ``CorruptLog`` for readable bytes with invalid content; anything else counts as a failure of
    the store. On an aborted signal, settle what was started, then raise.
    """

    async def list(self, signal: Signal) -> Sequence[SessionHeader]:
        """One header for each stored session, without reading logs."""
        ...

    async def list_snapshots(self, signal: Signal) -> Sequence[SessionSnapshot]:
        """Header and revision of each stored session, without reading logs."""
        ...

    async def inspect(self, session_id: str, signal: Signal) -> Inspected:
        """Header and balanced events of one session. Never changes the store."""
        ...

    async def read_from(self, session_id: str, seq: int, signal: Signal) -> Sequence[Event]:
        """Stored events from ``seq`` on, as they are."""
        ...
