"""Exact operations: lists, filters, traces, reads, titles (SPEC 4-5, 7-9). Never behind a search.

Every method takes the caller, whose reach bounds what exists for it, and a signal whose exact reason
comes back when it aborts. Results are detached and complete.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError
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
from ..protocol.titles import fold_title
from ..protocol.traces import trace_event, trace_skeleton
from .corpus import Corpus, Entry
from .family import trace_family
from .pool import Pool


@attrs.define(eq=False)
class Exact:
    """Everything that is no search. ``read_window_max`` bounds a read's neighbours on each side."""

    corpus: Corpus
    pool: Pool
    read_window_max: int

    async def filter_sessions(
        self, caller: Caller, clauses: Sequence[SessionClause], *, signal: Signal
    ) -> list[SessionRecord]:
        """Records in reach that match every clause, newest first (SPEC 4.3, 5.5)."""

        async def work() -> list[SessionRecord]:
            found = await self.corpus.entries(caller, clauses, signal)
            return [entry.record(name) for entry, name in found]

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
            entry = await self.corpus.require(caller, session_id, signal)
            header = _outward(entry, session_id)
            row = entry.stored
            if entry.live is None and entry.provider is None and row is not None and row.state.error is None:
                skeleton = await self.corpus.storage.read(lambda reader: reader.index.skeleton(row.sid))
                if len(skeleton) == row.state.length and not self.corpus.logs.shows_closers(row):
                    return trace_skeleton(header, skeleton, seq)
            return trace_event(header, await self.corpus.events(entry, signal), seq)

        return await self.pool.run(work, signal)

    async def list_events(self, caller: Caller, session_id: str, *, signal: Signal) -> list[EventRecord]:
        """One record for each event, ascending (SPEC 8.1). Raises: SESSION_NOT_FOUND, INVALID_SURFACE."""

        async def work() -> list[EventRecord]:
            entry = await self.corpus.require(caller, session_id, signal)
            return list(list_events(_outward(entry, session_id), await self.corpus.events(entry, signal)))

        return await self.pool.run(work, signal)

    async def filter_events(
        self, caller: Caller, session_id: str, clauses: Sequence[EventClause], *, signal: Signal
    ) -> list[EventDocument]:
        """The documents of a session that match every clause, ascending (SPEC 5.5).

        Raises: QueryError SESSION_NOT_FOUND, INVALID_SURFACE.
        """

        async def work() -> list[EventDocument]:
            entry = await self.corpus.require(caller, session_id, signal)
            events = await self.corpus.events(entry, signal)
            surfaces = fold(events).surfaces
            matches = event_predicate(tuple(clauses))
            documents = (
                EventDocument(
                    session_id=session_id,
                    seq=event.seq,
                    type=event.type,
                    time=event.time,
                    surface=surface,
                    text=event_text(event),
                )
                for event, surface in zip(events, surfaces, strict=True)
            )
            return [document for document in documents if document.text and matches(document)]

        return await self.pool.run(work, signal)

    async def read_surface(self, caller: Caller, session_id: str, *, signal: Signal) -> SurfaceView:
        """The current surface, complete and in order (SPEC 8.2). Raises: as ``list_events``."""

        async def work() -> SurfaceView:
            entry = await self.corpus.require(caller, session_id, signal)
            return read_surface(_outward(entry, session_id), await self.corpus.events(entry, signal))

        return await self.pool.run(work, signal)

    async def read_session(self, caller: Caller, session_id: str, *, signal: Signal) -> SessionLog:
        """The complete raw log, validated as a resume would (SPEC 8.3).

        Raises: QueryError SESSION_NOT_FOUND, CORRUPT_SESSION.
        """

        async def work() -> SessionLog:
            entry = await self.corpus.require(caller, session_id, signal)
            return read_log(_outward(entry, session_id), await self.corpus.events(entry, signal))

        return await self.pool.run(work, signal)

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
            entry = await self.corpus.require(caller, session_id, signal)
            header = _outward(entry, session_id)
            point = self.corpus.logs.point_window(entry, seq, window)
            if point is not None:
                place, events = point
                return EventWindow(
                    header=header,
                    target=events[place],
                    events=events,
                    first_seq=events[0].seq,
                    last_seq=events[-1].seq,
                )
            return read_window(header, await self.corpus.events(entry, signal), seq, window)

        return await self.pool.run(work, signal)

    async def read_titles(
        self, caller: Caller, session_ids: Sequence[str], *, signal: Signal
    ) -> list[TitleItem]:
        """One item for each unique id, in first-seen order (SPEC 9.4). A failure is its item's own."""

        async def work() -> list[TitleItem]:
            return [
                await self._title_item(caller, session_id, signal)
                for session_id in dict.fromkeys(session_ids)
            ]

        return await self.pool.run(work, signal)

    async def read_title(self, caller: Caller, session_id: str, *, signal: Signal) -> Title | None:
        """The title of one session. Raises: the item's failure (SPEC 9.4)."""
        (item,) = await self.read_titles(caller, [session_id], signal=signal)
        if item.error is not None:
            raise item.error
        return item.title

    async def _title_item(self, caller: Caller, session_id: str, signal: Signal) -> TitleItem:
        try:
            entry = await self.corpus.require(caller, session_id, signal)
            title = await self._title(entry, signal)
        except QueryError as exc:
            return TitleItem(session_id=session_id, error=exc)
        return TitleItem(session_id=session_id, header=_outward(entry, session_id), title=title)

    async def _title(self, entry: Entry, signal: Signal) -> Title | None:
        """From the index where it is current (SPEC 14 L31), else from the log."""
        if entry.live is not None:
            if entry.live.title_error is not None:
                raise QueryError(Code(entry.live.title_error))
            return entry.live.title
        if entry.stored is not None and entry.provider is None:
            state = entry.stored.state
            if state.error is not None:
                raise QueryError(Code(state.error))
            if state.title_error is not None:
                raise QueryError(Code(state.title_error))
            return state.title
        return fold_title(await self.corpus.events(entry, signal))


def _outward(entry: Entry, session_id: str) -> SessionHeader:
    return attrs.evolve(entry.header, id=session_id)
