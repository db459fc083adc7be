"""What the tools ask of the query service. The service fills this; tests fill it with fakes.

Ids. Every id that goes in or comes out is an *outward id* of the caller's reach (SPEC 16.6.1):
``header.id`` and ``header.parent_session`` of every header in a result, the ids of filter clauses, and
``caller.header.id``. A service that keeps other keys inside translates at this border.

Reach. ``caller`` bounds what a service may look at, but the tools do not rely on that alone: they add
workspace clauses to filters and check every observed header again (SPEC 10.7).

Failures. A ``QueryError`` with its code, ``Busy`` when overloaded, the signal's exact reason when it
is aborted; the tools' boundary turns anything else into one generic failure (SPEC 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...protocol.collected import Caller, CollectedEvents, CollectedSessions, EventSearch, SessionSearch
from ...protocol.filters import SessionClause
from ...protocol.records import EventTrace, EventWindow, Lineage, Receipt, SessionRecord, TitleItem
from ...protocol.signal import Signal


class ToolService(Protocol):
    """The asynchronous calls of the five tools. Results are detached."""

    async def filter_sessions(
        self, caller: Caller, clauses: tuple[SessionClause, ...], *, signal: Signal
    ) -> Sequence[SessionRecord]:
        """Return the records in the caller's reach that match every clause (SPEC 5.5)."""
        ...

    async def collect_sessions(self, search: SessionSearch, *, signal: Signal) -> CollectedSessions:
        """Return all hits up to ``search.cap``, with titles, parents and receipt, from one snapshot.

        The caller's own session is no hit (SPEC 10.8.1); ``parent`` of a hit is the header of its
        parent if that exists in the corpus at all, readable by the caller or not (SPEC 10.7.9, 16.4).
        """
        ...

    async def collect_events(self, search: EventSearch, *, signal: Signal) -> CollectedEvents:
        """Return a session's hits up to ``search.cap``, its header and title, from one snapshot."""
        ...

    async def reach_receipt(self, caller: Caller, *, signal: Signal) -> Receipt:
        """Return a receipt's facts about the reach without searching it: sessions, freshness, unread."""
        ...

    async def own_cut(self, caller: Caller, *, signal: Signal) -> int | None:
        """Return S of SPEC 10.8.2: the seq of the latest ``step/start`` in the agent's own log.

        Without any step event: the latest answer or tool call, whichever is later (SPEC 16.7.6).
        None when the log has neither.
        """
        ...

    async def trace_session(self, caller: Caller, session_id: str, *, signal: Signal) -> Lineage:
        """Return the whole lineage, hidden sessions included; the tool prunes it (SPEC 7.1, 10.7.10)."""
        ...

    async def trace_event(self, caller: Caller, session_id: str, seq: int, *, signal: Signal) -> EventTrace:
        """Return the relations of one event (SPEC 7.2)."""
        ...

    async def read_event(
        self, caller: Caller, session_id: str, seq: int, *, before: int, after: int, signal: Signal
    ) -> EventWindow:
        """Return one event and its raw neighbours (SPEC 8.4). The service judges the window's size."""
        ...

    async def read_titles(
        self, caller: Caller, session_ids: Sequence[str], *, signal: Signal
    ) -> Sequence[TitleItem]:
        """Return one item for each unique id, each with the header observed beside the title (SPEC 9.4)."""
        ...
