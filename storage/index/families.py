"""Forks and sub-agents: which session a hit belongs to, and which copies are left out (SPEC 16.9).

Looked up only for sessions that actually have hits; a corpus of many forks costs a search nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..sqlite import Connection
from . import rows
from .door import Reach, StoredSession
from .rows import SUB_AGENT, to_sql
from .scope import Scope

_GENERATIONS_MAX = 10_000
"""A chain of parents longer than this is taken to end there; a cycle ends where it closes."""


def parent_of(
    connection: Connection, session: StoredSession, reach: Reach | None = None
) -> StoredSession | None:
    """The visible parent: same source and place, else same source, else any; then equal cwd, then rank.

    With a reach, sessions outside it have no part in the choice: they might as well not exist.
    """
    wanted = session.state.header.parent_session
    if wanted is None:
        return None
    found = connection.execute(
        f"SELECT {rows.COLUMNS} FROM session AS s WHERE s.id = ? AND s.visible = 1 AND s.sid <> ?",
        (to_sql(wanted), session.sid),
    ).fetchall()
    return nearest_parent(session, [rows.stored(row) for row in found], reach)


def nearest_parent(
    child: StoredSession, same_id: Iterable[StoredSession], reach: Reach | None = None
) -> StoredSession | None:
    """Which of some visible sessions with the parent's id is meant; None if none is in reach."""
    found = [p for p in same_id if p.sid != child.sid and (reach is None or reach.holds(p))]
    return min(found, key=lambda parent: _distance(child, parent), default=None)


def _distance(child: StoredSession, parent: StoredSession) -> tuple[bool, bool, bool, int, str, str]:
    return (
        parent.key.source != child.key.source,
        parent.key.place != child.key.place,
        parent.state.header.cwd != child.state.header.cwd,
        parent.state.rank,
        parent.key.source,
        parent.key.place,
    )


@attrs.define(eq=False)
class Families:
    """The relations of the sessions met in one search, found when asked for."""

    connection: Connection
    scope: Scope
    _sessions: dict[int, StoredSession]
    _parents: dict[int, StoredSession | None] = attrs.field(factory=dict, init=False)
    _roots: dict[int, int] = attrs.field(factory=dict, init=False)
    _origins: dict[int, list[tuple[int, int]]] = attrs.field(factory=dict, init=False)

    def session(self, sid: int) -> StoredSession:
        found = self._sessions.get(sid)
        if found is None:
            loaded = rows.by_sid(self.connection, sid)
            assert loaded is not None, "a document's session exists in the same snapshot"
            found = self._sessions[sid] = loaded
        return found

    def load(self, sids: Iterable[int]) -> None:
        """Read many sessions at once."""
        missing = [sid for sid in sids if sid not in self._sessions]
        if len(missing) > 1:
            for session in rows.by_sids(self.connection, missing):
                self._sessions[session.sid] = session

    def parent(self, sid: int) -> StoredSession | None:
        if sid not in self._parents:
            parent = parent_of(self.connection, self.session(sid), self.scope.reach)
            if parent is not None:
                self._sessions.setdefault(parent.sid, parent)
            self._parents[sid] = parent
        return self._parents[sid]

    def root(self, sid: int) -> int:
        """The session a hit is listed under: the nearest ancestor that is no sub-agent, inside the scope."""
        if sid not in self._roots:
            at, seen = sid, {sid}
            closed = False
            while self.session(at).state.header.origin == SUB_AGENT:
                parent = self.parent(at)
                if parent is None or not self._in_scope(parent):
                    break
                if parent.sid in seen:
                    closed = True  # a circle: where it ends depends on where it was entered
                    break
                at = parent.sid
                seen.add(at)
            self._roots.update(dict.fromkeys((sid,) if closed else seen, at))
        return self._roots[sid]

    def _in_scope(self, session: StoredSession) -> bool:
        return session.visible and session.state.error is None and self.scope.holds(session)

    def shared(self, sid: int) -> list[tuple[int | None, str, int]]:
        """Ancestors with how many leading events are shared: (sid or None, a name for it, count)."""
        found: list[tuple[int | None, str, int]] = []
        at, count, seen = self.session(sid), -1, {sid}
        while at.state.inherited > 0 and len(seen) < _GENERATIONS_MAX:
            count = at.state.inherited if count < 0 else min(count, at.state.inherited)
            parent = self.parent(at.sid)
            if parent is None or parent.sid in seen:
                name = f"{at.key.source}\0{at.key.place}\0{at.state.header.parent_session}"
                found.append((None, name, count))
                break
            found.append((parent.sid, "", count))
            seen.add(parent.sid)
            at = parent
        return found

    def origin(self, sid: int, seq: int) -> int | None:
        """The other session that shows the event ``seq`` of ``sid``: its origin, or the first copy."""
        return next((other for other, count in self.origins(sid) if seq < count), None)

    def origins(self, sid: int) -> list[tuple[int, int]]:
        """Other sessions in scope that show leading events of ``sid``, each with how many."""
        found = self._origins.get(sid)
        if found is None:
            found = self._origins[sid] = self._shown_elsewhere(sid)
        return found

    def _shown_elsewhere(self, sid: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        if self._heads_circle(sid):
            return found
        for ancestor, name, count in self.shared(sid):
            if ancestor is not None and self._in_scope(self.session(ancestor)):
                found.append((ancestor, count))
                break
            found += [(other, min(count, copied)) for other, copied in self._earlier(sid, ancestor, name)]
        return found

    def _heads_circle(self, sid: int) -> bool:
        """Whether this is the oldest in scope of forks that name each other as origin.

        It stands for the others: else each would be a copy of another, and none be shown.
        """
        at, own, met = self.session(sid), self._age(self.session(sid)), {sid}
        while at.state.inherited > 0 and len(met) < _GENERATIONS_MAX:
            parent = self.parent(at.sid)
            if parent is not None and parent.sid == sid:
                return True
            if parent is None or parent.sid in met or (self._in_scope(parent) and self._age(parent) < own):
                return False
            met.add(parent.sid)
            at = parent
        return False

    def _earlier(self, sid: int, ancestor: int | None, name: str) -> list[tuple[int, int]]:
        """Earlier forks in scope of an ancestor outside it, oldest first, each with how much it shares."""
        own = self._age(self.session(sid))
        forks = [f for f in self._forks_of(sid, ancestor) if self._age(f) < own and self._in_scope(f)]
        return [
            (other.sid, count)
            for other in sorted(forks, key=self._age)
            for place, other_name, count in self.shared(other.sid)
            if place == ancestor and other_name == name
        ]

    def _forks_of(self, sid: int, ancestor: int | None) -> list[StoredSession]:
        if ancestor is not None:
            wanted = self.session(ancestor).key.id
        else:
            at, met = self.session(sid), {sid}
            while (parent := self.parent(at.sid)) is not None and at.state.inherited > 0:
                if parent.sid in met:
                    break
                met.add(parent.sid)
                at = parent
            wanted = at.state.header.parent_session or ""
        found: list[StoredSession] = []
        queue, seen = [wanted], {wanted}
        while queue:
            for row in self.connection.execute(
                f"SELECT {rows.COLUMNS} FROM session AS s"
                " WHERE s.parent = ? AND s.visible = 1 AND s.inherited > 0",
                (to_sql(queue.pop()),),
            ).fetchall():
                fork = rows.stored(row)
                if fork.sid not in self._sessions:
                    self._sessions[fork.sid] = fork
                found.append(fork)
                if fork.key.id not in seen:
                    seen.add(fork.key.id)
                    queue.append(fork.key.id)
        return found

    def sub_agents(self, root: int) -> list[int]:
        """The sub-agents in scope that are listed under ``root``, at any depth."""
        found: list[int] = []
        queue, seen = [root], {root}
        while queue:
            parent = self.session(queue.pop())
            for (sid,) in self.connection.execute(
                "SELECT sid FROM session WHERE parent = ? AND sub_agent = 1 AND visible = 1",
                (to_sql(parent.key.id),),
            ).fetchall():
                if sid not in seen and self._in_scope(self.session(sid)) and self.root(sid) == root:
                    seen.add(sid)
                    found.append(sid)
                    queue.append(sid)
        return found

    @staticmethod
    def _age(session: StoredSession) -> tuple[int, str, str, str]:
        header = session.state.header
        return header.created_at, header.id, session.key.source, session.key.place
