"""Exact operations: lists, filters, traces, reads, titles (SPEC 4-5, 7-9). Never behind a search.

Every method takes the caller, whose reach bounds what exists for it, and a signal whose exact reason
comes back when it aborts. Results are detached and complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from ..protocol.collected import Caller
from ..protocol.envelope import detach
from ..protocol.event import Event
from ..protocol.filters import EventClause, SessionClause
from ..protocol.header import SessionHeader
from ..protocol.predicates import event_predicate
from ..protocol.reads import check_window, list_events, read_log, read_surface, read_window
from ..protocol.records import (
    EventDocument,
    EventRecord,
    EventTrace,
    EventWindow,
    Lineage,
    SessionLog,
    SessionRecord,
    SurfaceView,
    Title,
    TitleItem,
)
from ..protocol.signal import Signal
from ..protocol.surface import fold
from ..protocol.text import event_text
from .circle import Shown
from .corpus import Corpus
from .family import trace_family
from .pool import Pool
from .titles import Titles
from .tracing import Tracing

T = TypeVar("T")


@attrs.define(eq=False)
class Exact:
    """Everything that is no search. ``read_window_max`` bounds a read's neighbours on each side."""

    corpus: Corpus
    pool: Pool
    titles: Titles
    tracing: Tracing
    read_window_max: int

    async def filter_sessions(
        self, caller: Caller, clauses: Sequence[SessionClause], *, signal: Signal
    ) -> list[SessionRecord]:
        """Records in reach that match every clause, newest first (SPEC 4.3, 5.5).

        Raises: QueryError, in strict mode: PERSISTENCE_FAILED, SOURCE_CONFLICT.
        """
        asked = tuple(clauses)

        async def work() -> list[SessionRecord]:
            return [shown.record for shown in await self.corpus.entries(caller, asked, signal)]

        return await self.pool.run(work, signal)

    async def trace_session(self, caller: Caller, session_id: str, *, signal: Signal) -> Lineage:
        """Ancestors and descendants (SPEC 7.1). No log is read.

        Raises: QueryError SESSION_NOT_FOUND, INVALID_LINEAGE.
        """
        return await self.pool.run(lambda: trace_family(self.corpus, caller, session_id, signal), signal)

    async def trace_event(
        self, caller: Caller, session_id: str, seq: object, *, signal: Signal
    ) -> EventTrace:
        """The relations of one event (SPEC 7.2).

        Raises: QueryError SESSION_NOT_FOUND, EVENT_NOT_FOUND, INVALID_SURFACE.
        """

        async def work() -> EventTrace:
            shown = await self.corpus.require(caller, session_id, signal)
            return await self.tracing.trace(shown, seq, signal)

        return await self.pool.run(work, signal)

    async def list_events(self, caller: Caller, session_id: str, *, signal: Signal) -> list[EventRecord]:
        """One record for each event, ascending (SPEC 8.1). Raises: SESSION_NOT_FOUND, INVALID_SURFACE."""
        return await self._over_log(
            caller, session_id, signal, lambda header, events: list(list_events(header, events))
        )

    async def filter_events(
        self, caller: Caller, session_id: str, clauses: Sequence[EventClause], *, signal: Signal
    ) -> list[EventDocument]:
        """The documents of a session that match every clause, ascending (SPEC 5.5).

        Raises: QueryError SESSION_NOT_FOUND, INVALID_SURFACE.
        """
        matches = event_predicate(tuple(clauses))

        def documents(header: SessionHeader, events: Sequence[Event]) -> list[EventDocument]:
            found = (
                EventDocument(
                    session_id=header.id,
                    seq=event.seq,
                    type=event.type,
                    time=event.time,
                    surface=surface,
                    text=event_text(event),
                )
                for event, surface in zip(events, fold(events).surfaces, strict=True)
            )
            return [document for document in found if document.text and matches(document)]

        return await self._over_log(caller, session_id, signal, documents)

    async def read_surface(self, caller: Caller, session_id: str, *, signal: Signal) -> SurfaceView:
        """The current surface, complete and in order (SPEC 8.2). Raises: as ``list_events``."""
        return await self._over_log(caller, session_id, signal, read_surface)

    async def read_session(self, caller: Caller, session_id: str, *, signal: Signal) -> SessionLog:
        """The complete raw log, validated as a resume would (SPEC 8.3).

        Raises: QueryError SESSION_NOT_FOUND, CORRUPT_SESSION.
        """
        return await self._over_log(caller, session_id, signal, read_log)

    async def read_event(
        self,
        caller: Caller,
        session_id: str,
        seq: object,
        *,
        before: object = 0,
        after: object = 0,
        signal: Signal,
    ) -> EventWindow:
        """One event and its raw neighbours of every type (SPEC 8.4).

        Raises: QueryError INVALID_WINDOW before any source is touched, SESSION_NOT_FOUND, EVENT_NOT_FOUND.
        """
        window = check_window(before, after, maximum=self.read_window_max)

        async def work() -> EventWindow:
            shown = await self.corpus.require(caller, session_id, signal)
            point = self.corpus.logs.point_window(shown.entry, seq, window)
            if point is None:
                return read_window(shown.header, await self.corpus.events(shown.entry, signal), seq, window)
            place, found = point
            events = tuple(detach(event) for event in found) if _is_shared(shown) else found
            return EventWindow(
                header=shown.header,
                target=events[place],
                events=events,
                first_seq=events[0].seq,
                last_seq=events[-1].seq,
            )

        return await self.pool.run(work, signal)

    async def read_titles(
        self, caller: Caller, session_ids: Sequence[str], *, signal: Signal
    ) -> list[TitleItem]:
        """One item for each unique id, in first-seen order (SPEC 4.6, 9.4). A failure is its item's own."""
        asked = tuple(dict.fromkeys(session_ids))
        return await self.pool.run(lambda: self.titles.read(caller, asked, signal), signal)

    async def read_title(self, caller: Caller, session_id: str, *, signal: Signal) -> Title | None:
        """The title of one session. Raises: the item's failure (SPEC 9.4)."""
        (item,) = await self.read_titles(caller, [session_id], signal=signal)
        if item.error is not None:
            raise item.error
        return item.title

    async def _over_log(
        self,
        caller: Caller,
        session_id: str,
        signal: Signal,
        ask: Callable[[SessionHeader, Sequence[Event]], T],
    ) -> T:
        """Load one log whole and ask something of it."""

        async def work() -> T:
            shown = await self.corpus.require(caller, session_id, signal)
            events = await self.corpus.events(shown.entry, signal)
            return await self.pool.over_log(len(events), lambda: ask(shown.header, events))

        return await self.pool.run(work, signal)


def _is_shared(shown: Shown) -> bool:
    """Whether a window's events are the very ones that a live session keeps in memory."""
    return shown.entry.live is not None and shown.entry.live.memory is not None
