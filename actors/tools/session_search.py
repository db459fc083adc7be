"""``session_search`` (SPEC 10.4, 10.7.6-10.7.9, 10.8.1, 16.9)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from msgspec import UNSET

from ...protocol.collected import Caller, CollectedSessions, FoundSession, SessionSearch
from ...protocol.filters import IdClause, ParentClause, SessionClause
from ...protocol.tools import checks
from ...protocol.tools.arguments import SessionSearchArguments, decode_arguments
from ...protocol.tools.authority import (
    is_authorized,
    own_id,
    reach_clauses,
    reach_of,
    require_caller,
    unauthorized,
)
from ...protocol.tools.render_search import ROOT, ShownSession, parent_text, render_sessions
from .context import Answer, ToolContext, checked_title


async def session_search(context: ToolContext, raw: object) -> Answer:
    """Search the caller's reach, its own session excepted; one hit per session.

    Raises: ToolError, in the order of SPEC 10.4; the signal's exact reason; Busy.
    """
    arguments = decode_arguments("session_search", SessionSearchArguments, raw)
    caller = require_caller(context.caller)
    if reach_of(caller) == ():
        raise unauthorized(caller)
    search, parents = _local_checks(caller, arguments, context.max_results)
    if parents is not None:
        clause = await _parent_clause(context, caller, parents, arguments.include_root_sessions is True)
        search = _with_parents(search, clause)
    elif arguments.include_root_sessions is True:
        search = _with_parents(search, ParentClause((None,)))
    found = await context.observe(
        "search_sessions", lambda: context.service.collect_sessions(search, signal=context.signal)
    )
    hits, capped = _accepted(caller, search, found)
    receipt = (
        found.receipt if _filters(search) else attrs.evolve(found.receipt, filters_excluded_everything=False)
    )
    return Answer(text=render_sessions(hits, capped, receipt), receipt=receipt)


def _filters(search: SessionSearch) -> bool:
    """Whether the caller asked for filters: its own workspace, which is one to the service, is none."""
    return bool(search.event_clauses) or len(search.session_clauses) > len(reach_clauses(search.caller))


def _local_checks(
    caller: Caller, arguments: SessionSearchArguments, cap: int
) -> tuple[SessionSearch, tuple[str, ...] | None]:
    query = checks.check_query(arguments.query)
    ids = checks.id_clauses(arguments.session_ids)
    created = checks.created_clauses(
        ("created_at_from", "created_at_to"), arguments.created_at_from, arguments.created_at_to
    )
    availability = checks.availability_clauses(arguments.availability)
    low, high = checks.seq_range(
        ("event_seq_from", "event_seq_to"), arguments.event_seq_from, arguments.event_seq_to
    )
    times = checks.time_clauses(
        ("event_time_from", "event_time_to"), arguments.event_time_from, arguments.event_time_to
    )
    types = checks.type_clauses(arguments.event_types)
    surfaces = checks.surface_clauses("event_surfaces", arguments.event_surfaces)
    parents = checks.unique_parents(arguments.parent_session_ids)
    search = SessionSearch(
        caller=caller,
        query=query,
        match="auto" if arguments.match is UNSET else arguments.match,
        session_clauses=(*ids, *created, *availability, *reach_clauses(caller)),
        event_clauses=(*checks.seq_clauses(low, high), *times, *types, *surfaces),
        cap=cap,
    )
    return search, parents


async def _parent_clause(
    context: ToolContext, caller: Caller, requested: tuple[str, ...], include_roots: bool
) -> ParentClause:
    """Return the clause over those requested parents that the caller may see (SPEC 10.7.7)."""
    own = own_id(caller)
    others = tuple(session_id for session_id in requested if session_id != own)
    allowed = {own}
    if others:
        clauses: tuple[SessionClause, ...] = (IdClause(others), *reach_clauses(caller))
        records = await context.observe(
            "filter_sessions",
            lambda: context.service.filter_sessions(caller, clauses, signal=context.signal),
        )
        allowed |= {
            record.header.id
            for record in records
            if record.header.id in others and is_authorized(caller, record.header)
        }
    named = [session_id for session_id in requested if session_id in allowed]
    return ParentClause((*named, None) if include_roots else tuple(named))


def _with_parents(search: SessionSearch, clause: ParentClause) -> SessionSearch:
    """Put the parent clause in its place, before the workspace (SPEC 10.5.2).

    A clause of no values matches nothing. It goes to the service all the same, which answers from the
    filters alone: hidden, missing and childless parents take one path and give one receipt (SPEC 16.3).
    """
    reach = reach_clauses(search.caller)
    before: tuple[SessionClause, ...] = search.session_clauses[: len(search.session_clauses) - len(reach)]
    return attrs.evolve(search, session_clauses=(*before, clause, *reach))


def _accepted(
    caller: Caller, search: SessionSearch, found: CollectedSessions
) -> tuple[list[ShownSession], bool]:
    """Check every hit again and decide what is shown of it (SPEC 10.7.6, 10.7.9)."""
    if ParentClause(()) in search.session_clauses:
        return [], False
    accepted = [hit for hit in found.hits if _is_accepted(caller, hit)]
    capped = found.capped or len(accepted) > search.cap
    return [_shown(caller, hit) for hit in accepted[: search.cap]], capped


def _is_accepted(caller: Caller, hit: FoundSession) -> bool:
    return hit.outward_id != own_id(caller) and is_authorized(caller, hit.header)


def _shown(caller: Caller, hit: FoundSession) -> ShownSession:
    is_operator = caller.kind == "operator"
    return ShownSession(
        found=_with_title(caller, hit),
        parent=_parent(caller, hit),
        sub_agents=tuple(_sub_agents(caller, hit.sub_agents)),
        workspace=hit.header.cwd if is_operator else None,
        path=hit.path if is_operator else None,
    )


def _with_title(caller: Caller, hit: FoundSession) -> FoundSession:
    return attrs.evolve(hit, title=checked_title(caller, hit.title))


def _parent(caller: Caller, hit: FoundSession) -> str:
    if hit.hides_parent:
        return parent_text(None)
    if hit.header.parent_session is None:
        return ROOT
    parent_id = hit.parent_outward_id or hit.header.parent_session
    visible = parent_id == own_id(caller) or (hit.parent is not None and is_authorized(caller, hit.parent))
    return parent_text(parent_id if visible else None)


def _sub_agents(caller: Caller, top: Sequence[FoundSession]) -> list[tuple[int, FoundSession]]:
    """Flatten sub-agents in preorder, each checked; a refused one takes its own sub-agents along."""
    shown: list[tuple[int, FoundSession]] = []
    stack = [(1, hit) for hit in reversed(top)]
    while stack:
        depth, hit = stack.pop()
        if _is_accepted(caller, hit):
            shown.append((depth, _with_title(caller, hit)))
            stack.extend((depth + 1, sub) for sub in reversed(hit.sub_agents))
    return shown
