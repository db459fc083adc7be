"""Who may see what: pure rules over headers (SPEC 10.7, 16.5, 16.11).

The caller is told by the runtime or the host and never by arguments. Everything fails closed: a caller
that is not completely named has no reach at all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import attrs

from ..collected import Caller
from ..errors import Code, ToolCode, ToolError
from ..filters import CwdClause
from ..header import SessionHeader, is_absolute
from ..records import Lineage, SessionRecord

UNAUTHORIZED_TEXT: Final = (
    "Not available: there is no such session in your workspace, or you have no workspace. Session ids come "
    "from session_search."
)
NOT_IN_REACH_TEXT: Final = "No such session in the workspaces that were asked for."
MISSING_AGENT_TEXT: Final = (
    "The host does not say which session is yours: give session_id, as session_search shows it."
)


def require_caller(caller: Caller | None) -> Caller:
    """Return the caller if it is completely named.

    Raises: ToolError: SESSION_QUERY_TOOL_MISSING_AGENT: no caller, an agent without a header, or a
    workspace caller without exactly one workspace (SPEC 10.7.1).
    """
    complete = caller is not None and (
        (caller.kind == "agent" and caller.header is not None)
        or (caller.kind == "workspace" and caller.workspaces is not None and len(caller.workspaces) == 1)
        or caller.kind == "operator"
    )
    if caller is None or not complete:
        raise ToolError(ToolCode.MISSING_AGENT, MISSING_AGENT_TEXT)
    return caller


def own_id(caller: Caller) -> str | None:
    """Return the id of the caller's own session; only agents have one."""
    return caller.header.id if caller.kind == "agent" and caller.header is not None else None


@lru_cache(maxsize=1024)  # one tool call asks nine times
def reach_of(caller: Caller) -> tuple[str | None, ...] | None:
    """Return the workspaces the caller may see, beside its own session; None for every session.

    None among an operator's stands for the sessions without a workspace.

    An empty tuple means none: an agent without a workspace, or with one that is not absolute, which
    grants no authority (SPEC 10.7.2, 16.6.5).
    """
    if caller.kind == "operator":
        return None if caller.workspaces is None else (*caller.workspaces, *caller.aliases)
    if caller.kind == "workspace":
        named: tuple[str | None, ...] = caller.workspaces or ()
    else:
        named = (caller.header.cwd,) if caller.header is not None and caller.header.cwd is not None else ()
    own = tuple(cwd for cwd in named if cwd is not None and is_absolute(cwd))
    return (*own, *caller.aliases) if own else ()


def reach_clauses(caller: Caller) -> tuple[CwdClause, ...]:
    """Return the workspace clause to add to every filter; none for an operator who sees all."""
    reach = reach_of(caller)
    return () if reach is None else (CwdClause(reach),)


def is_authorized(caller: Caller, header: SessionHeader) -> bool:
    """Return whether the caller may see the session with this header (SPEC 10.7.2)."""
    if caller.kind == "agent" and caller.header is not None and header.id == caller.header.id:
        return header.cwd == caller.header.cwd
    reach = reach_of(caller)
    return reach is None or header.cwd in reach


def unauthorized(caller: Caller) -> ToolError:
    """Return the one failure for every session the caller may not see, missing or not (SPEC 10.7.5).

    An operator chose its own reach, so nothing is hidden from it; it is told "not found" instead.
    """
    if caller.kind == "operator":
        return ToolError(Code.SESSION_NOT_FOUND, NOT_IN_REACH_TEXT)
    return ToolError(ToolCode.UNAUTHORIZED, UNAUTHORIZED_TEXT)


def require_target(caller: Caller, session_id: str, header: SessionHeader) -> None:
    """Post-check: the observation that made a payload must be of the asked, authorized session.

    Raises: ToolError: ``unauthorized`` (SPEC 10.7.4).
    """
    if header.id != session_id or not is_authorized(caller, header):
        raise unauthorized(caller)


@attrs.frozen(kw_only=True)
class VisibleLineage:
    """A lineage as the caller may see it (SPEC 10.7.10).

    ``boundary``: something lies beyond the last ancestor shown. A descendant of None stands for one
    hidden subtree at its depth.
    """

    target: SessionRecord
    ancestors: tuple[SessionRecord, ...]
    boundary: bool
    descendants: tuple[tuple[int, SessionRecord | None], ...]


def prune_lineage(caller: Caller, lineage: Lineage) -> VisibleLineage:
    """Cut a lineage at the borders of the caller's reach. Iterative; trees may be of any depth."""
    ancestors: list[SessionRecord] = []
    for record in lineage.ancestors:
        if not is_authorized(caller, record.header):
            break
        ancestors.append(record)
    boundary = len(ancestors) < len(lineage.ancestors) or not lineage.complete
    return VisibleLineage(
        target=lineage.target,
        ancestors=tuple(ancestors),
        boundary=boundary,
        descendants=tuple(_visible_descendants(caller, lineage)),
    )


def _visible_descendants(caller: Caller, lineage: Lineage) -> list[tuple[int, SessionRecord | None]]:
    shown: list[tuple[int, SessionRecord | None]] = []
    hidden_depth: int | None = None
    for depth, record in lineage.descendants:
        if hidden_depth is not None and depth > hidden_depth:
            continue
        hidden_depth = None if is_authorized(caller, record.header) else depth
        shown.append((depth, record if hidden_depth is None else None))
    return shown
