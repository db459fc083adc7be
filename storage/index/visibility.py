"""Which row of a session is the visible one when several sources hold it (SPEC 16.6.3)."""

from __future__ import annotations

from ...protocol.header import SessionHeader
from ..sqlite import Connection
from . import rows
from .door import StoredSession
from .rows import to_sql

LIVE: str = "live"


def same_session(connection: Connection, header: SessionHeader) -> list[StoredSession]:
    """All rows with this id, cwd and creation time: readable before unreadable, then by rank."""
    found = connection.execute(
        f"SELECT {rows.COLUMNS} FROM session AS s JOIN workspace AS w ON w.ws = s.ws"
        " WHERE s.id = ? AND s.created_at = ? AND w.cwd IS ?"
        " ORDER BY s.error IS NOT NULL, s.rank, s.source, s.place",
        (to_sql(header.id), header.created_at, to_sql(header.cwd)),
    ).fetchall()
    return [rows.stored(row) for row in found]


def settle(connection: Connection, header: SessionHeader) -> list[int]:
    """Make the best shown row of one session visible and the others not. Returns the sids that flipped.

    A live row covers a stored one only if the headers are compatible (SPEC 16.6.2).
    """
    hidden = {name for (name,) in connection.execute("SELECT name FROM source WHERE shown = 0").fetchall()}
    above: list[StoredSession] = []
    flipped = []
    for session in same_session(connection, header):
        there = session.key.source not in hidden
        shown = there and not any(_covers(other, session) for other in above)
        if there:
            above.append(session)  # covered itself, it covers all the same: they are one session
        if shown != session.visible:
            connection.execute("UPDATE session SET visible = ? WHERE sid = ?", (int(shown), session.sid))
            flipped.append(session.sid)
    return flipped


def _covers(upper: StoredSession, lower: StoredSession) -> bool:
    if upper.key.source == lower.key.source:
        return False  # one id in two unrelated folders is two sessions (SPEC 16.6.1)
    return upper.key.source != LIVE or _compatible(upper.state.header, lower.state.header)


def _compatible(a: SessionHeader, b: SessionHeader) -> bool:
    """SPEC 1.1.3; id, creation time and cwd are equal already."""
    return (
        a.version == b.version
        and a.parent_session == b.parent_session
        and a.seed_length == b.seed_length
        and (a.delegation_depth or 0) == (b.delegation_depth or 0)
    )
