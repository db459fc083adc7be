"""From what the index found to what a caller is shown: hits under outward ids, parents that may be named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs

from ..protocol.collected import Caller, FoundSession, FoundTitle
from ..protocol.filters import IdClause, ParentClause, SessionClause
from ..protocol.outward import possible_ids
from ..protocol.records import BestMatch, EventHit, SessionHit
from ..storage.index.door import FoundEvent, FoundInSession, IndexReader, Only, StoredSession
from .circle import Circle, Entry
from .corpus import Corpus


@attrs.frozen
class Narrowed:
    """Session clauses as the index takes them: those about ids and parents resolved inside the reach."""

    clauses: tuple[SessionClause, ...]
    only: tuple[Only, ...]


def narrow(index: IndexReader, corpus: Corpus, caller: Caller, clauses: Sequence[SessionClause]) -> Narrowed:
    """Resolve the ids that clauses name; hidden and missing ones alike name nothing (SPEC 10.7.7, 16.6.1)."""
    only: list[Only] = []
    for clause in clauses:
        match clause:
            case IdClause(values):
                circle = _circle(index, corpus, caller, values)
                only.append(Only(_sids(circle.find(value) for value in values)))
            case ParentClause(values):
                only.append(_children(index, corpus, caller, values))
            case _:
                pass
    rest = tuple(clause for clause in clauses if not isinstance(clause, IdClause | ParentClause))
    return Narrowed(rest, tuple(only))


def _children(index: IndexReader, corpus: Corpus, caller: Caller, values: Sequence[str | None]) -> Only:
    """The sessions shown with one of these parents, as ``Circle.select`` judges it."""
    wanted = frozenset(value for value in values if value is not None)
    bare = {one for value in wanted for one in possible_ids(value)}
    children = {row.key.id for row in index.with_parents(bare)}
    circle = corpus.gathering.circle(index, caller, children, None)
    members = circle.select([ParentClause(tuple(wanted))]) if children else []
    return Only(_sids(shown.entry for shown in members), or_roots=None in values)


def _circle(index: IndexReader, corpus: Corpus, caller: Caller, ids: Iterable[str]) -> Circle:
    return corpus.gathering.circle(index, caller, {bare for one in ids for bare in possible_ids(one)}, None)


def _sids(entries: Iterable[Entry | None]) -> frozenset[int]:
    return frozenset(e.stored.sid for e in entries if e is not None and e.stored is not None)


def circle_of_hits(
    index: IndexReader, corpus: Corpus, caller: Caller, hits: Iterable[FoundInSession]
) -> Circle:
    """The circle that names some hits and their parents."""
    ids = {row.session.key.id for hit in hits for row in (hit, *hit.sub_agents)}
    return corpus.gathering.circle(index, caller, ids, None)


def session_hit(circle: Circle, hit: FoundInSession) -> SessionHit:
    """One hit of a program's page."""
    shown = circle.show(circle.member(hit.session.key))
    return SessionHit(
        header=shown.header,
        live=hit.live,
        persisted=shown.entry.persisted,
        best_match=_best(hit.best),
        tier=hit.tier,
        source=hit.session.key.source,
        hides_parent=shown.hides_parent,
    )


def found_session(circle: Circle, hit: FoundInSession, path_of: Callable[[int], str | None]) -> FoundSession:
    """One hit of a tool's search, with its sub-agents. ``path_of``: where a session's log lies."""
    entry = circle.member(hit.session.key)
    shown, parent = circle.show(entry), circle.parent(entry)
    above = None if parent is None else circle.show(parent).header
    return FoundSession(
        header=shown.header,
        outward_id=shown.header.id,
        source=entry.key.source,
        live=hit.live,
        persisted=entry.persisted,
        source_gone=hit.session.state.source_gone,
        tier=hit.tier,
        best_match=_best(hit.best),
        title=title_of(hit.session),
        parent=above,
        parent_outward_id=None if above is None else above.id,
        hides_parent=shown.hides_parent,
        sub_agents=tuple(found_session(circle, child, path_of) for child in hit.sub_agents),
        path=path_of(hit.session.sid),
    )


def event_hit(hit: FoundEvent, session_id: str) -> EventHit:
    return EventHit(
        session_id=session_id,
        seq=hit.seq,
        type=hit.type,
        time=hit.time,
        surface=hit.surface,
        snippet=hit.snippet,
        tier=hit.tier,
    )


def title_of(row: StoredSession) -> FoundTitle:
    """The title that the index keeps of a session."""
    title = row.state.title
    return FoundTitle(text=None if title is None else title.title, error=row.state.title_error)


def _best(event: FoundEvent) -> BestMatch:
    return BestMatch(
        seq=event.seq, type=event.type, time=event.time, surface=event.surface, snippet=event.snippet
    )
