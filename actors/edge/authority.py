"""Who may do what: roles, workspaces, and the caller a ``call`` names (SPEC 16.11).

Nothing in a tool's arguments is looked at here, and nothing here depends on a session outside the
token's reach: a refusal has one wording, whether the thing named exists or not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ...protocol.collected import Caller
from ...protocol.errors import ToolCode, ToolError
from ...protocol.header import is_absolute
from ...protocol.json_value import JSON
from ...protocol.wire import messages as m
from ...protocol.wire.codes import WireCode, WireError
from ...protocol.wire.identity import EVERYTHING, Owner, Reach, Role
from ...protocol.wire.methods import Method
from ..wire_service import AgentFacts, WireService

_ALL: Final = frozenset[Role](("runtime", "reader", "operator"))
_PUBLISHERS: Final = frozenset[Role](("runtime", "operator"))
_READERS: Final = frozenset[Role](("reader", "operator"))

ROLES_OF: Final[dict[type[m.Message], frozenset[Role]]] = {
    m.Attach: _PUBLISHERS,
    m.Append: _PUBLISHERS,
    m.Detach: _PUBLISHERS,
    m.ToolsRequest: _ALL,
    m.Call: _ALL,
    m.Query: _READERS,
    m.Cancel: _ALL,
    m.Fetch: _ALL,
}


def forbidden() -> WireError:
    return WireError(WireCode.FORBIDDEN, "this token may not do that")


def check_role(role: Role, kind: type[m.Message]) -> None:
    """Raises: WireError: FORBIDDEN."""
    if role not in ROLES_OF[kind]:
        raise forbidden()


def check_attach(reach: Reach, header: JSON) -> None:
    """The header's ``cwd`` must be one the token lists; without one, that is a permission of its own.

    Raises: WireError: INVALID_HEADER (no object, ``cwd`` no text), then FORBIDDEN.
    """
    if not isinstance(header, dict):
        raise WireError(WireCode.INVALID_HEADER, "`session` must be an object")
    cwd = header.get("cwd")
    if "cwd" in header and not isinstance(cwd, str):
        raise WireError(WireCode.INVALID_HEADER, "`session.cwd` must be text")
    if not reach.holds(cwd if isinstance(cwd, str) else None):
        raise forbidden()


def check_method(role: Role, method: Method) -> None:
    """Raises: WireError: FORBIDDEN."""
    if method.operator_only and role != "operator":
        raise forbidden()


def query_reach(owner: Owner, named: list[str] | m.ReachAll | None) -> Reach:
    """The sessions a ``query`` may see: what the token lists, or the part of it that is named.

    ``"all"`` is for operators. Naming workspaces leaves sessions without one out.
    Raises: WireError: FORBIDDEN.
    """
    if named is None:
        return owner.reach
    if named == "all":
        if owner.role != "operator" or owner.reach.workspaces is not None:
            raise forbidden()
        return EVERYTHING
    if not all(owner.reach.holds(workspace) for workspace in named):
        raise forbidden()
    return Reach(workspaces=frozenset(named))


async def resolve_caller(service: WireService, owner: Owner, call: m.Call) -> Caller:
    """The caller of a tool, from ``agent``, ``workspace`` or ``reach``.

    ``agent`` must be a session this token has attached, or a stored one, with a listed ``cwd``.
    Raises: ToolError: MISSING_AGENT (none named); WireError: INVALID_ARGS (several named), FORBIDDEN.
    """
    named = [name for name in ("agent", "workspace", "reach") if getattr(call, name) is not None]
    if not named:
        raise ToolError(ToolCode.MISSING_AGENT, "name the calling agent or its workspace")
    if len(named) > 1:
        raise WireError(WireCode.INVALID_ARGS, "name one of `agent`, `workspace` and `reach`")
    if call.agent is not None:
        return _agent(owner, await service.resolve_agent(call.agent, owner))
    if call.workspace is not None:
        if not is_absolute(call.workspace) or not owner.reach.holds(call.workspace):
            raise forbidden()
        return _in_workspace(call.workspace)
    if owner.role != "operator":
        raise forbidden()
    reach = query_reach(owner, call.reach)
    workspaces = None if reach.workspaces is None else tuple(sorted(reach.workspaces))
    return Caller(kind="operator", workspaces=workspaces)


def caller_nowait(service: WireService, owner: Owner, call: m.Call) -> Caller | None:
    """As ``resolve_caller`` for one agent or workspace, without waiting; None where that says more.

    Raises: WireError: FORBIDDEN.
    """
    if call.reach is not None:
        return None
    if call.agent is not None:
        return None if call.workspace is not None else _agent(owner, service.agent_nowait(call.agent, owner))
    if call.workspace is None or not is_absolute(call.workspace) or not owner.reach.holds(call.workspace):
        return None
    return _in_workspace(call.workspace)


@lru_cache(maxsize=1024)  # one object for each: comparing and hashing callers costs more than making them
def _in_workspace(workspace: str) -> Caller:
    return Caller(kind="workspace", workspaces=(workspace,))


def _agent(owner: Owner, facts: AgentFacts | None) -> Caller:
    if facts is None or not owner.reach.holds(facts.header.cwd):
        raise forbidden()
    if facts.live_owner is not None and facts.live_owner != owner.token_id:
        raise forbidden()
    return Caller(kind="agent", header=facts.header, source=facts.source)
