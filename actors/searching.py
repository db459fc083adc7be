"""Searches: pages for programs and one-hop collections for the tools (SPEC 6, 16.1-16.5).

Each search brings the index up to date, then runs in one read transaction inside one thread hop, so that
hits, titles, parents and receipt come from one state and no snapshot is held across an await.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TypeVar

import attrs

from ..protocol.collected import (
    Caller,
    CollectedEvents,
    CollectedSessions,
    EventSearch,
    FoundSession,
    FoundTitle,
    SessionSearch,
)
from ..protocol.cursor import Binding, Position, decode_cursor, encode_cursor
from ..protocol.errors import Code, QueryError
from ..protocol.filters import CwdClause
from ..protocol.fingerprint import fingerprint
from ..protocol.limits import SearchLimits, validate_search_events, validate_search_sessions
from ..protocol.outward import outward_ids
from ..protocol.records import (
    BestMatch,
    EventHit,
    EventPage,
    EventSearchRequest,
    Receipt,
    SessionHit,
    SessionPage,
    SessionSearchRequest,
    UnreadSession,
)
from ..protocol.signal import Signal
from ..protocol.tools.authority import reach_of
from ..storage.index.door import (
    Facts,
    FoundEvent,
    FoundInSession,
    IndexReader,
    Reach,
    SearchSpec,
    StoredSession,
)
from .corpus import Corpus, Entry
from .freshness import Freshness
from .search import SearchActor

T = TypeVar("T")


@attrs.define(eq=False)
class Searching:
    """The search side of the service. ``instance`` ties cursors to this very engine (SPEC 6.9.1)."""

    corpus: Corpus
    actor: SearchActor
    freshness: Freshness
    limits: SearchLimits
    snippet_chars: int
    enabled: bool = True
    instance: str = attrs.field(factory=lambda: secrets.token_hex(8), init=False)

    async def sessions_page(
        self, caller: Caller, request: SessionSearchRequest, *, lane: Hashable, signal: Signal
    ) -> SessionPage:
        """One page over the whole reach (SPEC 6). For the errors and their order see SPEC 6.1.1, 16.8."""
        self._require_enabled()
        valid = validate_search_sessions(request, self.limits)
        workspaces = reach_of(caller)
        bound = _bound_workspaces(workspaces, valid.session_clauses)
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
                reach=workspaces,
            ),
        )

        def query(index: IndexReader) -> SessionPage:
            reach = self.corpus.reach(caller)
            generation = _generation(index, bound)
            spec = SearchSpec(
                query=valid.query,
                match=valid.match,
                session_clauses=valid.session_clauses,
                event_clauses=valid.event_clauses,
                limit=valid.limit,
                after=self._position(valid.cursor, binding, generation),
                snippet_chars=self.snippet_chars,
            )
            found = index.search_sessions(spec, reach)
            names = _names(index, (hit.session for hit in found.hits), reach)
            hits = tuple(_session_hit(hit, names[hit.session.sid]) for hit in found.hits)
            cursor = encode_cursor(binding, generation, found.hits[-1].position) if found.more else None
            return SessionPage(
                hits=hits, next_cursor=cursor, receipt=self._receipt(index, reach, found.facts)
            )

        if valid.cursor is not None:
            decode_cursor(valid.cursor, binding)  # malformed: refused before waiting (SPEC 6.9.4)
        return await self._run(caller, lane, signal, lambda: self.corpus.storage.search(query))

    async def events_page(
        self, caller: Caller, request: EventSearchRequest, *, lane: Hashable, signal: Signal
    ) -> EventPage:
        """One page of one session (SPEC 6). SESSION_NOT_FOUND comes before the cursor is looked at."""
        self._require_enabled()
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

        async def work() -> EventPage:
            entry = await self.corpus.require(caller, valid.session_id, signal)
            row = _searchable(entry)

            def query(index: IndexReader) -> EventPage:
                reach = self.corpus.reach(caller)
                current = index.session(row.sid)
                if current is None:
                    raise QueryError(Code.SESSION_NOT_FOUND)
                generation = str(index.session_generation(row.sid))
                spec = SearchSpec(
                    query=valid.query,
                    match=valid.match,
                    event_clauses=valid.event_clauses,
                    limit=valid.limit,
                    after=self._position(valid.cursor, binding, generation),
                    snippet_chars=self.snippet_chars,
                )
                found = index.search_events(spec, reach, row.sid)
                cursor = encode_cursor(binding, generation, found.hits[-1].position) if found.more else None
                return EventPage(
                    header=attrs.evolve(current.state.header, id=valid.session_id),
                    hits=tuple(_event_hit(hit, valid.session_id) for hit in found.hits),
                    next_cursor=cursor,
                    receipt=self._receipt(index, reach, found.facts),
                )

            return await self.corpus.storage.search(query)

        return await self._run(caller, lane, signal, work)

    async def collect_sessions(
        self, search: SessionSearch, *, lane: Hashable, signal: Signal
    ) -> CollectedSessions:
        """All hits of a tool's search up to its cap, with everything their rendering needs (SPEC 16.4)."""
        self._require_enabled()

        async def work() -> CollectedSessions:
            own = await self._own_row(search.caller, signal)

            def query(index: IndexReader) -> CollectedSessions:
                reach = self.corpus.reach(search.caller, own=own)
                spec = SearchSpec(
                    query=search.query,
                    match=search.match,
                    session_clauses=search.session_clauses,
                    event_clauses=search.event_clauses,
                    limit=search.cap,
                    tools=True,
                    snippet_chars=self.snippet_chars,
                )
                found = index.search_sessions(spec, reach)
                rows = [hit.session for hit in found.hits]
                rows += [child.session for hit in found.hits for child in hit.sub_agents]
                names = _names(index, rows, reach)
                return CollectedSessions(
                    hits=tuple(_found_session(index, hit, names, reach) for hit in found.hits),
                    capped=found.more,
                    receipt=self._receipt(index, reach, found.facts),
                )

            return await self.corpus.storage.search(query)

        return await self._run(search.caller, lane, signal, work)

    async def collect_events(self, search: EventSearch, *, lane: Hashable, signal: Signal) -> CollectedEvents:
        """All hits in one session up to the cap, with header and title from the same snapshot."""
        self._require_enabled()

        async def work() -> CollectedEvents:
            entry = await self.corpus.require(search.caller, search.session_id, signal)
            row = _searchable(entry)

            def query(index: IndexReader) -> CollectedEvents:
                reach = self.corpus.reach(search.caller)
                current = index.session(row.sid)
                if current is None:
                    raise QueryError(Code.SESSION_NOT_FOUND)
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
                    header=attrs.evolve(current.state.header, id=search.session_id),
                    outward_id=search.session_id,
                    title=_title(current),
                    hits=tuple(_event_hit(hit, search.session_id) for hit in found.hits),
                    capped=found.more,
                    receipt=self._receipt(index, reach, found.facts),
                )

            return await self.corpus.storage.search(query)

        return await self._run(search.caller, lane, signal, work)

    async def reach_receipt(self, caller: Caller, *, signal: Signal) -> Receipt:
        """A receipt about the reach alone, without a search."""
        own = await self._own_row(caller, signal)

        def query(index: IndexReader) -> Receipt:
            return self._receipt(index, self.corpus.reach(caller, own=own), Facts())

        return await self.corpus.storage.search(query)

    async def _own_row(self, caller: Caller, signal: Signal) -> StoredSession | None:
        if caller.kind != "agent" or caller.header is None:
            return None
        entry = await self.corpus.resolve(caller, caller.header.id, signal)
        return None if entry is None else entry.stored

    async def _run(
        self, caller: Caller, lane: Hashable, signal: Signal, work: Callable[[], Awaitable[T]]
    ) -> T:
        async def fresh() -> T:
            await self.freshness.ensure(signal)
            return await work()

        return await self.actor.ask(lane, reach_of(caller), fresh, signal)

    def _require_enabled(self) -> None:
        if not self.enabled:
            raise QueryError(Code.SEARCH_DISABLED)

    def _position(self, cursor: str | None, binding: Binding, generation: str) -> Position | None:
        return None if cursor is None else decode_cursor(cursor, binding).at(generation)

    def _receipt(self, index: IndexReader, reach: Reach, facts: Facts) -> Receipt:
        unread = tuple(
            UnreadSession(session_id=row.key.id, code=row.state.error or "") for row in index.unread(reach)
        )
        return Receipt(
            sessions_in_reach=index.count(reach),
            checked_ago_s=self.freshness.checked_ago_s(),
            tiers=facts.tiers,
            filters_excluded_everything=facts.filters_excluded_everything,
            only_common_words=facts.only_common_words,
            too_broad=facts.too_broad,
            unread=unread,
            lost_records=index.losses(reach),
            indexing=self.freshness.first_index(),
        )


def _bound_workspaces(workspaces: tuple[str, ...] | None, clauses: object) -> tuple[str | None, ...] | None:
    """The workspaces a search is confined to, by reach or filter: its cursors depend on them alone (16.4)."""
    named: set[str | None] | None = None if workspaces is None else set(workspaces)
    for clause in clauses if isinstance(clauses, tuple) else ():
        if isinstance(clause, CwdClause):
            named = set(clause.values) if named is None else named & set(clause.values)
    return None if named is None else tuple(sorted(named, key=lambda cwd: (cwd is None, cwd or "")))


def _generation(index: IndexReader, bound: tuple[str | None, ...] | None) -> str:
    if bound is None:
        return str(index.generation())
    return ",".join(str(index.workspace_generation(cwd)) for cwd in bound)


def _searchable(entry: Entry) -> StoredSession:
    """The index row to search in. Raises: the code of a quarantined session; PERSISTENCE_FAILED if a
    provider's session could not be indexed."""
    if entry.stored is None:
        raise QueryError(Code.PERSISTENCE_FAILED, "the session is not indexed")
    if entry.stored.state.error is not None:
        raise QueryError(Code(entry.stored.state.error))
    return entry.stored


def _names(index: IndexReader, rows: Iterable[StoredSession], reach: Reach) -> dict[int, str]:
    """Outward ids of some sessions, unique inside the reach (SPEC 16.6.1)."""
    names: dict[int, str] = {}
    for row in rows:
        if row.sid in names:
            continue
        same = [
            other
            for other in index.with_id(row.key.id)
            if reach.workspaces is None or other.state.header.cwd in reach.workspaces
        ]
        named = outward_ids(other.key for other in same)
        names[row.sid] = named.get(row.key, row.key.id)
    return names


def _title(row: StoredSession) -> FoundTitle:
    title = row.state.title
    return FoundTitle(text=None if title is None else title.title, error=row.state.title_error)


def _best(event: FoundEvent) -> BestMatch:
    return BestMatch(
        seq=event.seq, type=event.type, time=event.time, surface=event.surface, snippet=event.snippet
    )


def _session_hit(hit: FoundInSession, outward: str) -> SessionHit:
    return SessionHit(
        header=attrs.evolve(hit.session.state.header, id=outward),
        live=hit.live,
        persisted=hit.session.state.persisted,
        best_match=_best(hit.best),
        tier=hit.tier,
        source=hit.session.key.source,
    )


def _event_hit(hit: FoundEvent, session_id: str) -> EventHit:
    return EventHit(
        session_id=session_id,
        seq=hit.seq,
        type=hit.type,
        time=hit.time,
        surface=hit.surface,
        snippet=hit.snippet,
        tier=hit.tier,
    )


def _found_session(
    index: IndexReader, hit: FoundInSession, names: dict[int, str], reach: Reach
) -> FoundSession:
    row = hit.session
    parent = index.parent(row.sid) if row.state.header.parent_session is not None else None
    outward = names[row.sid]
    parent_header, parent_name = None, None
    if parent is not None:
        parent_name = _names(index, [parent], reach)[parent.sid]
        parent_header = attrs.evolve(parent.state.header, id=parent_name)
    header = attrs.evolve(row.state.header, id=outward)
    if parent_name is not None:
        header = attrs.evolve(header, parent_session=parent_name)
    return FoundSession(
        header=header,
        outward_id=outward,
        source=row.key.source,
        live=hit.live,
        persisted=row.state.persisted,
        source_gone=row.state.source_gone,
        tier=hit.tier,
        best_match=_best(hit.best),
        title=_title(row),
        parent=parent_header,
        parent_outward_id=parent_name,
        sub_agents=tuple(_found_session(index, child, names, reach) for child in hit.sub_agents),
        path=row.state.path,
    )
