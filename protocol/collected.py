"""What the tools ask of the service in one hop and get back from one snapshot (SPEC 16.4, 16.11)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .filters import EventClause, SessionClause
from .header import SessionHeader
from .records import BestMatch, EventHit, Match, Receipt, Tier

CallerKind: TypeAlias = Literal["agent", "workspace", "operator"]


@attrs.frozen(kw_only=True, cache_hash=True)
class Caller:
    """Who asks, as the runtime or the host says it; never from tool arguments (SPEC 10.7.1, 16.11).

    agent: ``header`` is the calling session's own; ``source`` its source.
    workspace: ``workspaces`` holds exactly one cwd.
    operator: ``workspaces`` names the reach, ``None`` meaning every session; a ``None`` among them stands
    for the sessions without a workspace, which are a permission of their own (SPEC 18.1).
    """

    kind: CallerKind
    header: SessionHeader | None = None
    source: str | None = None
    workspaces: tuple[str | None, ...] | None = None
    aliases: tuple[str, ...] = ()
    """Other spellings of the same workspaces, found by the service when it is configured to (SPEC 14 L8)."""


@attrs.frozen(kw_only=True)
class SessionSearch:
    """A validated ``session_search``. ``query`` is normalised (SPEC 6.2). The service adds the reach."""

    caller: Caller
    query: str
    match: Match = "auto"
    session_clauses: tuple[SessionClause, ...] = ()
    event_clauses: tuple[EventClause, ...] = ()
    cap: int = 100


@attrs.frozen(kw_only=True)
class EventSearch:
    """A validated ``session_event_search`` on one authorised session."""

    caller: Caller
    session_id: str
    query: str
    match: Match = "auto"
    event_clauses: tuple[EventClause, ...] = ()
    cap: int = 100


@attrs.frozen(kw_only=True)
class FoundTitle:
    """``text`` None and ``error`` None: the session has no title. ``error``: a code (SPEC 10.10)."""

    text: str | None = None
    error: str | None = None


@attrs.frozen(kw_only=True)
class FoundSession:
    """One accepted hit with everything its rendering needs, from the same snapshot.

    ``outward_id`` is the id to show and to call back with (SPEC 16.6.1). ``parent`` is the header of
    the parent if it exists in the caller's reach; whether it may be shown is the tool's decision.
    ``hides_parent``: it has a parent that is not in the reach, hidden or missing; the header names none.
    ``best_seq_session`` differs from the header's id when a sub-agent's event is the best match.
    """

    header: SessionHeader
    outward_id: str
    source: str
    live: bool
    persisted: bool
    source_gone: bool = False
    tier: Tier
    best_match: BestMatch
    title: FoundTitle
    parent: SessionHeader | None = None
    parent_outward_id: str | None = None
    hides_parent: bool = False
    sub_agents: tuple[FoundSession, ...] = ()
    path: str | None = None


@attrs.frozen(kw_only=True)
class CollectedSessions:
    """Hits in order up to the cap; ``capped`` when at least one more accepted hit exists."""

    hits: tuple[FoundSession, ...]
    capped: bool
    receipt: Receipt


@attrs.frozen(kw_only=True)
class CollectedEvents:
    header: SessionHeader
    outward_id: str
    title: FoundTitle
    hits: tuple[EventHit, ...]
    capped: bool
    receipt: Receipt
