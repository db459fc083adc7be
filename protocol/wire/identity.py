"""Who is on the other end: roles, the workspaces a token lists, and who owns what (SPEC 16.11)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

Role: TypeAlias = Literal["runtime", "reader", "operator"]
ROLES: Final[tuple[Role, ...]] = ("runtime", "reader", "operator")


@attrs.frozen(kw_only=True)
class Reach:
    """The sessions a token may see, by their ``cwd``, compared by exact code points (SPEC 0).

    ``workspaces`` None: every session, with or without a workspace (the operator alone).
    ``no_workspace``: sessions without a ``cwd`` belong to the reach as well; a permission of its own.
    """

    workspaces: frozenset[str] | None
    no_workspace: bool = False

    @property
    def listed(self) -> tuple[str | None, ...] | None:
        """The workspaces in order, None at the end for "without one"; None for all of them."""
        if self.workspaces is None:
            return None
        return (*sorted(self.workspaces), *((None,) if self.no_workspace else ()))

    def holds(self, cwd: str | None) -> bool:
        """True if a session with this ``cwd`` (None: without one) lies inside the reach."""
        if self.workspaces is None:
            return True
        return self.no_workspace if cwd is None else cwd in self.workspaces


EVERYTHING: Final = Reach(workspaces=None, no_workspace=True)


@attrs.frozen(kw_only=True)
class Owner:
    """One authenticated connection, as the service sees it.

    ``token_id`` is the token's stable public id, never the token. A newer connection of the same token
    takes a session over; another token's is refused. ``connection_id`` is unique in the process.
    """

    token_id: str
    connection_id: str
    role: Role
    reach: Reach
