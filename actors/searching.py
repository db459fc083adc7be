"""Searches: pages for programs and one-hop collections for the tools (SPEC 6, 16.1-16.5).

Each search brings the index up to date, then runs in one read transaction inside one thread hop, so that
hits, names, titles, parents and receipt come from one state and no snapshot is held across an await.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import attrs

from ..protocol.collected import Caller, CollectedEvents, CollectedSessions, EventSearch, SessionSearch
from ..protocol.cursor import Binding, Cursor, Position, decode_cursor, encode_cursor
from ..protocol.errors import Code, QueryError
from ..protocol.filters import CwdClause, SessionClause
from ..protocol.fingerprint import fingerprint
from ..protocol.header import SessionHeader
from ..protocol.limits import (
    SearchLimits,
    check_budget,
    validate_search_events,
    validate_search_sessions,
)
from ..protocol.outward import possible_ids
from ..protocol.records import EventPage, EventSearchRequest, Receipt, SessionPage, SessionSearchRequest
from ..protocol.signal import Signal
from ..protocol.tools.authority import reach_of
from ..storage import sqlite
from ..storage.index.door import (
    EventsFound,
    Facts,
    IndexReader,
    SearchSpec,
    SessionsFound,
    StoredSession,
)
from .corpus import Corpus
from .found import circle_of_hits, event_hit, found_session, narrow, session_hit, title_of
from .freshness import Freshness
from .receipts import Receipts
from .search import SearchActor

T = TypeVar("T")


@attrs.define(eq=False)
class Searching:
    """The search side of the service.

    ``instance`` ties cursors to this very engine (SPEC 6.9.1). A generation stands in a cursor as a keyed
    digest, so that nobody reads from it how much happened, or where.
    """

    corpus: Corpus
    actor: SearchActor
    freshness: Freshness
    limits: SearchLimits
    snippet_chars: int
    instance: str = attrs.field(factory=lambda: secrets.token_hex(8), init=False)
    _secret: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), init=False, repr=False)
    _receipts: Receipts = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._receipts = Receipts(self.corpus, self.freshness)

    # -- pages for programs ------------------------------------------------------------------------

    async def sessions_page(
        self, caller: Caller, request: SessionSearchRequest, *, lane: Hashable, signal: Signal
    ) -> SessionPage:
        """One page over the whole reach (SPEC 6). For the errors and their order see SPEC 6.1.1, 16.8."""
        valid = validate_search_sessions(request, self.limits)
        binding = Binding(
            self.instance,
            "sessions",
            fingerprint(
                scope="sessions",
                query=valid.query,
                limit=valid.limit,
                match=valid.match,
                session_clauses=valid.session_clauses,
                event_clauses=valid.event_clauses,
                reach=reach_of(caller),
            ),
        )
        bound = _bound_workspaces(reach_of(caller), valid.session_clauses)

        def query(index: IndexReader) -> SessionPage:
            reach = self.corpus.gathering.reach(caller)
            generation = self._generation(index, bound)
            narrowed = narrow(index, self.corpus, caller, valid.session_clauses)
            spec = SearchSpec(
                query=valid.query,
                match=valid.match,
                session_clauses=narrowed.clauses,
                event_clauses=valid.event_clauses,
                limit=valid.limit,
                after=self._position(valid.cursor, binding, generation),
                snippet_chars=self.snippet_chars,
                only=narrowed.only,
            )
            found = index.search_sessions(spec, reach)
            circle = circle_of_hits(index, self.corpus, caller, found.hits)
            return SessionPage(
                hits=tuple(session_hit(circle, hit) for hit in found.hits),
                next_cursor=self._cursor(binding, generation, found),
                receipt=self._receipts.make(index, caller, reach, found.facts),
            )

        if valid.cursor is not None:
            self._decoded(valid.cursor, binding)  # malformed: refused before it waits (SPEC 6.9.4)
        return await self._search(caller, lane, signal, query)

    async def events_page(
        self, caller: Caller, request: EventSearchRequest, *, lane: Hashable, signal: Signal
    ) -> EventPage:
        """One page of one session (SPEC 6). SESSION_NOT_FOUND comes before the cursor is looked at."""
        valid = validate_search_events(request, self.limits)
        binding = Binding(
            self.instance,
            "events",
            fingerprint(
                scope="events",
                target=valid.session_id,
                query=valid.query,
                limit=valid.limit,
                match=valid.match,
                event_clauses=valid.event_clauses,
                reach=reach_of(caller),
            ),
        )

        def query(index: IndexReader) -> EventPage:
            reach = self.corpus.gathering.reach(caller)
            row, header = self._target(index, caller, valid.session_id)
            generation = self._target_generation(index, row)
            spec = SearchSpec(
                query=valid.query,
                match=valid.match,
                event_clauses=valid.event_clauses,
                limit=valid.limit,
                after=self._position(valid.cursor, binding, generation),
                snippet_chars=self.snippet_chars,
            )
            found = index.search_events(spec, reach, row.sid)
            return EventPage(
                header=header,
                hits=tuple(event_hit(hit, header.id) for hit in found.hits),
                next_cursor=self._cursor(binding, generation, found),
                receipt=self._receipts.make(index, caller, reach, found.facts, within=row),
            )

        return await self._search(caller, lane, signal, query)

    # -- collections for the tools -----------------------------------------------------------------

    async def collect_sessions(
        self, search: SessionSearch, *, lane: Hashable, signal: Signal
    ) -> CollectedSessions:
        """All hits of a tool's search up to its cap, with everything their rendering needs (SPEC 16.4)."""
        caller = search.caller
        check_budget((*search.session_clauses, *search.event_clauses), self.limits, query=search.query)

        def query(index: IndexReader) -> CollectedSessions:
            reach = self.corpus.gathering.reach(caller, own=self._own(index, caller))
            narrowed = narrow(index, self.corpus, caller, search.session_clauses)
            spec = SearchSpec(
                query=search.query,
                match=search.match,
                session_clauses=narrowed.clauses,
                event_clauses=search.event_clauses,
                limit=search.cap,
                tools=True,
                snippet_chars=self.snippet_chars,
                only=narrowed.only,
            )
            found = index.search_sessions(spec, reach)
            circle = circle_of_hits(index, self.corpus, caller, found.hits)
            path_of = index.log_path if caller.kind == "operator" else _no_path
            return CollectedSessions(
                hits=tuple(found_session(circle, hit, path_of) for hit in found.hits),
                capped=found.more,
                receipt=self._receipts.make(index, caller, reach, found.facts),
            )

        return await self._search(caller, lane, signal, query)

    async def collect_events(self, search: EventSearch, *, lane: Hashable, signal: Signal) -> CollectedEvents:
        """All hits in one session up to the cap, with header and title from the same snapshot."""
        caller = search.caller
        check_budget(search.event_clauses, self.limits, query=search.query)

        def query(index: IndexReader) -> CollectedEvents:
            reach = self.corpus.gathering.reach(caller)
            row, header = self._target(index, caller, search.session_id)
            spec = SearchSpec(
                query=search.query,
                match=search.match,
                event_clauses=search.event_clauses,
                limit=search.cap,
                tools=True,
                snippet_chars=self.snippet_chars,
            )
            found = index.search_events(spec, reach, row.sid)
            return CollectedEvents(
                header=header,
                outward_id=header.id,
                title=title_of(row),
                hits=tuple(event_hit(hit, header.id) for hit in found.hits),
                capped=found.more,
                receipt=self._receipts.make(index, caller, reach, found.facts, within=row),
            )

        return await self._search(caller, lane, signal, query)

    async def reach_receipt(self, caller: Caller, *, signal: Signal) -> Receipt:
        """A receipt about the reach alone, without a search. Raises: the signal's exact reason."""
        signal.raise_if_aborted()

        def query(index: IndexReader) -> Receipt:
            reach = self.corpus.gathering.reach(caller, own=self._own(index, caller))
            return self._receipts.make(index, caller, reach, Facts(), within=True)

        return await self.corpus.storage.search(query)

    # -- what they share ---------------------------------------------------------------------------

    async def _search(
        self, caller: Caller, lane: Hashable, signal: Signal, query: Callable[[IndexReader], T]
    ) -> T:
        """Wait for the lane, bring the index up to date, ask it.

        Raises: QueryError INDEX_FAILED when the index cannot be read or written.
        """

        async def work() -> T:
            await self.freshness.ensure(signal)
            signal.raise_if_aborted()
            if self.corpus.mounted.strict:
                await self.corpus.entries(caller, (), signal)  # a conflict fails every search (SPEC 14 L2)
            try:
                return await self.corpus.storage.search(query)
            except sqlite.Error as exc:
                raise QueryError(Code.INDEX_FAILED, "the index cannot be read") from exc

        return await self.actor.ask(lane, reach_of(caller), work, signal)

    def _own(self, index: IndexReader, caller: Caller) -> StoredSession | None:
        """The row of the calling agent's own session."""
        if caller.kind != "agent" or caller.header is None:
            return None
        circle = self.corpus.gathering.circle(index, caller, _ids(caller.header.id), None)
        return None if circle.own is None else circle.member(circle.own).stored

    def _target(
        self, index: IndexReader, caller: Caller, session_id: str
    ) -> tuple[StoredSession, SessionHeader]:
        """The row to search in, and the header to show.

        Raises: QueryError SESSION_NOT_FOUND, or PERSISTENCE_FAILED when a provider that may hold it is
            not in step; the code of a session that cannot be read.
        """
        circle = self.corpus.gathering.circle(index, caller, _ids(session_id), None)
        entry = circle.resolve(session_id)
        if entry is None or entry.stored is None:
            raise self.freshness.reconciler.failure() or QueryError(Code.SESSION_NOT_FOUND)
        if entry.stored.state.error is not None:
            raise QueryError(Code(entry.stored.state.error))
        return entry.stored, circle.show(entry).header

    def _generation(self, index: IndexReader, bound: Sequence[str | None] | None) -> str:
        """What a session search's cursor is tied to: the whole corpus, or the workspaces it sees (16.4)."""
        live, mounted = self.corpus.live, self.corpus.mounted
        if bound is None:
            return self._digest("all", index.generation(), live.epoch, mounted.epoch)
        pairs = [(index.workspace_generation(cwd), live.epoch_of(cwd)) for cwd in bound]
        return self._digest("workspaces", *pairs)

    def _target_generation(self, index: IndexReader, row: StoredSession) -> str:
        live = self.corpus.live.with_sid(row.sid)
        mount = self.corpus.mounted.binding(row.key.source)
        epochs = 0 if live is None else live.epoch, 0 if mount is None else mount.epoch
        return self._digest("target", index.session_generation(row.sid), *epochs)

    def _cursor(self, binding: Binding, generation: str, found: SessionsFound | EventsFound) -> str | None:
        """The continuation; None when nothing is left (SPEC 6.9.3)."""
        if not found.more:
            return None
        text = encode_cursor(binding, generation, found.hits[-1].position)
        return f"{text}.{self._digest('cursor', text)}"

    def _decoded(self, cursor: str, binding: Binding) -> Cursor:
        """A cursor of our own making: the position in it reaches the engine as it is.

        Raises: QueryError INVALID_CURSOR (SPEC 6.9.4).
        """
        text, _, seal = cursor.partition(".")
        decoded = decode_cursor(text, binding)
        if not secrets.compare_digest(seal.encode(), self._digest("cursor", text).encode()):
            raise QueryError(Code.INVALID_CURSOR, "the cursor was not made here")
        return decoded

    def _position(self, cursor: str | None, binding: Binding, generation: str) -> Position | None:
        """Where to go on. Raises: QueryError INVALID_CURSOR, then STALE_CURSOR (SPEC 6.9.4-6.9.5)."""
        return None if cursor is None else self._decoded(cursor, binding).at(generation)

    def _digest(self, *parts: object) -> str:
        return hashlib.blake2b(repr(parts).encode(), key=self._secret, digest_size=12).hexdigest()


def _ids(outward: str) -> frozenset[str]:
    return frozenset(possible_ids(outward))


def _no_path(_sid: int) -> None:
    """Where logs lie is told to the operator alone."""


def _bound_workspaces(
    workspaces: tuple[str | None, ...] | None, clauses: Sequence[SessionClause]
) -> tuple[str | None, ...] | None:
    """The workspaces a search is confined to, by reach or filter: its cursors depend on them alone (16.4)."""
    named: set[str | None] | None = None if workspaces is None else set(workspaces)
    for clause in clauses:
        if isinstance(clause, CwdClause):
            named = set(clause.values) if named is None else named & set(clause.values)
    return None if named is None else tuple(sorted(named, key=lambda cwd: (cwd is None, cwd or "")))
