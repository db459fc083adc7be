"""The sessions and documents one search may look at: reach, session clauses, event clauses, as SQL.

Everything here narrows a statement over ``fts AS f`` and ``doc AS d``; nothing is filtered afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ...protocol.filters import (
    AvailabilityClause,
    CreatedAtClause,
    CwdClause,
    EventClause,
    IdClause,
    Number,
    ParentClause,
    SeqClause,
    SessionClause,
    SurfaceClause,
    TimeClause,
    TypeClause,
)
from ..sqlite import Connection, SqlValue
from .door import Only, Reach, StoredSession
from .rows import to_sql
from .schema import BLOCK_BITS, BLOCK_MASK, SURFACE_NUMBERS, TAG
from .tagging import all_tagged

_INT64: Final = 2**63


@attrs.frozen
class Sql:
    """A condition with its values."""

    text: str = ""
    values: tuple[SqlValue, ...] = ()

    def __add__(self, other: Sql) -> Sql:
        return Sql(self.text + other.text, self.values + other.values)


@attrs.frozen
class Matching:
    """A full-text expression in a scope, with the condition on ``f.rowid``."""

    expression: str
    rows: Sql


def hits_up_to(connection: Connection, limit: int, matching: Matching) -> int:
    """How many documents match, at most ``limit``."""
    row = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM fts AS f WHERE fts MATCH ?{matching.rows.text} LIMIT ?)",
        (matching.expression, *matching.rows.values, limit),
    ).fetchone()
    return 0 if row is None else int(row[0])


def any_of(column: str, values: Iterable[str | None]) -> Sql:
    """``column`` is one of ``values``, None meaning null; no values match nothing (SPEC 5.1)."""
    given = list(values)
    texts = [to_sql(value) for value in given if value is not None]
    null = f" OR {column} IS NULL" if len(texts) < len(given) else ""
    return Sql(f"({column} IN ({','.join('?' * len(texts))}){null})", tuple(texts))


def numbers(values: Iterable[int]) -> str:
    """A set of integers as one parameter for ``json_each``: a statement has no limit on how many."""
    return json.dumps(sorted(values))


def between(column: str, lower: Number | None, upper: Number | None) -> list[Sql]:
    """Inclusive bounds. SQLite compares an integer with a double exactly, so fractions need no care."""
    found = []
    if lower is not None:
        found.append(Sql(f"{column} >= ?", (_bindable(lower),)))
    if upper is not None:
        found.append(Sql(f"{column} <= ?", (_bindable(upper),)))
    return found


def _bindable(value: Number) -> SqlValue:
    return value if isinstance(value, float) or -_INT64 <= value < _INT64 else float(value)


def session_conditions(clauses: Sequence[SessionClause], live: frozenset[int]) -> list[Sql]:
    """The clauses as conditions on ``session AS s JOIN workspace AS w`` (SPEC 5)."""
    found: list[Sql] = []
    for clause in clauses:
        match clause:
            case IdClause(values):
                found.append(any_of("s.id", values))
            case CwdClause(values):
                found.append(any_of("w.cwd", values))
            case ParentClause(values):
                found.append(any_of("s.parent", values))
            case CreatedAtClause(lower, upper):
                found += between("s.created_at", lower, upper)
            case AvailabilityClause(wanted):
                found.append(_availability(frozenset(wanted), live))
    return found


def _availability(wanted: frozenset[str], live: frozenset[int]) -> Sql:
    parts = []
    values: tuple[SqlValue, ...] = ()
    if "live" in wanted:
        parts.append("s.sid IN (SELECT value FROM json_each(?))")
        values = (numbers(live),)
    if "persisted" in wanted:
        parts.append("s.persisted = 1")
    return Sql(f"({' OR '.join(parts) or 'FALSE'})", values)


def reach_conditions(reach: Reach, *, with_excluded: bool = False, readable: bool = True) -> list[Sql]:
    """Visible sessions in reach, as conditions on ``session AS s JOIN workspace AS w``."""
    found = [Sql(f"s.visible = 1 AND s.error IS {'' if readable else 'NOT '}NULL")]
    if reach.workspaces is not None:
        found.append(any_of("w.cwd", reach.workspaces))
    outside = reach.hidden if with_excluded else reach.hidden | reach.excluded
    if outside:
        found.append(Sql("s.sid NOT IN (SELECT value FROM json_each(?))", (numbers(outside),)))
    return found


def joined(conditions: Sequence[Sql]) -> Sql:
    """All conditions, ANDed; TRUE without any."""
    return Sql(
        " AND ".join(condition.text for condition in conditions) or "TRUE",
        tuple(value for condition in conditions for value in condition.values),
    )


def event_conditions(clauses: Sequence[EventClause]) -> list[Sql]:
    """The clauses as conditions on ``doc AS d``."""
    found: list[Sql] = []
    for clause in clauses:
        match clause:
            case SeqClause(lower, upper):
                found += between("d.seq", lower, upper)
            case TimeClause(lower, upper):
                found += between("d.time", lower, upper)
            case TypeClause(values):
                names = any_of("name", values)
                found.append(Sql(f"d.type IN (SELECT type FROM type WHERE {names.text})", names.values))
            case SurfaceClause(surfaces):
                wanted = ",".join(str(SURFACE_NUMBERS[surface]) for surface in sorted(set(surfaces)))
                found.append(Sql(f"d.surface IN ({wanted})"))
            case _:
                raise TypeError("a search takes no text clause")
    return found


@attrs.frozen(kw_only=True)
class Scope:
    """What one search looks at.

    ``sids``: the sessions, or None for all of the reach but ``outside``. ``rows``: the same as a condition
    on ``f.rowid``; or else ``tags``, an expression for ``MATCH``, together with ``apart``: better where
    hits are many, since the engine then skips what lies between. ``tagged``: at most so many documents are.
    ``events``: the condition on ``d``. ``plain``: no event filter and no cut, so that spans tell the truth.
    ``inside``: one session. ``with_searches``: documents that are searches are seen (SPEC 16.1.7).
    ``reach``: outside it no session has a part in anything, parents included.
    """

    sids: frozenset[int] | None
    outside: frozenset[int]
    rows: Sql
    tags: str | None
    tagged: int
    apart: Sql
    events: Sql
    plain: bool
    inside: bool
    with_searches: bool
    reach: Reach

    def rows_of(self, column: str) -> Sql:
        """``rows`` for a statement that names the row id differently."""
        return Sql(self.rows.text.replace("f.rowid", column), self.rows.values)

    def holds(self, session: StoredSession) -> bool:
        """Whether a visible session is among the searched ones."""
        if self.sids is not None:
            return session.sid in self.sids
        return self.reach.holds(session) and session.sid not in self.outside


def open_scope(
    connection: Connection,
    reach: Reach,
    session_clauses: Sequence[SessionClause],
    event_clauses: Sequence[EventClause],
    only: Sequence[Only] = (),
) -> Scope:
    """Work out what a search over many sessions looks at."""
    cut = cuts(connection, reach, None)
    sids: frozenset[int] | None = None
    tags: str | None = None
    tagged = 0
    outside = reach.hidden | reach.excluded
    if session_clauses or only:
        conditions = reach_conditions(reach) + session_conditions(session_clauses, reach.live)
        sids = _sids(connection, joined(conditions + [_named(one) for one in only]))
        rows = apart = _in_blocks("IN", Sql("sid IN (SELECT value FROM json_each(?))", (numbers(sids),)))
    else:
        unseen = connection.execute("SELECT sid FROM session WHERE visible = 0 AND error IS NULL").fetchall()
        out = outside | {sid for (sid,) in unseen}
        apart = (
            _in_blocks("NOT IN", Sql("sid IN (SELECT value FROM json_each(?))", (numbers(out),)))
            if out
            else Sql()
        )
        rows = apart
        if reach.workspaces is not None:
            tags, tagged = _tags(connection, reach.workspaces)
            where = joined(reach_conditions(reach))
            inside = f"SELECT s.sid FROM session AS s JOIN workspace AS w ON w.ws = s.ws WHERE {where.text}"
            rows = _in_blocks("IN", Sql(f"sid IN ({inside})", where.values))
    return Scope(
        sids=sids,
        outside=outside,
        rows=rows + cut,
        tags=tags,
        tagged=tagged,
        apart=apart + cut,
        events=joined(event_conditions(event_clauses)),
        plain=not event_clauses and not cut.text,
        inside=False,
        with_searches=any(isinstance(clause, TypeClause) for clause in event_clauses),
        reach=reach,
    )


def _sids(connection: Connection, where: Sql) -> frozenset[int]:
    found = connection.execute(
        f"SELECT s.sid FROM session AS s JOIN workspace AS w ON w.ws = s.ws WHERE {where.text}", where.values
    ).fetchall()
    return frozenset(sid for (sid,) in found)


def _in_blocks(operator: str, sessions: Sql) -> Sql:
    blocks = f"SELECT block FROM block WHERE {sessions.text}"
    return Sql(f" AND f.rowid >> {BLOCK_BITS} {operator} ({blocks})", sessions.values)


def _tags(connection: Connection, workspaces: Sequence[str | None]) -> tuple[str | None, int]:
    """The expression for ``MATCH`` that holds for documents of these workspaces, and how many these are.

    None without tags.
    """
    if not all_tagged(connection):
        return None, 0
    wanted = any_of("cwd", workspaces)
    found = connection.execute(
        f"SELECT ws, documents FROM workspace WHERE {wanted.text}", wanted.values
    ).fetchall()
    tokens = [f'"{TAG}{ws}"' for ws, _ in found] or [f'"{TAG}"']
    return f"parts : ({' OR '.join(tokens)})", sum(documents for _, documents in found)


def _named(only: Only) -> Sql:
    roots = " OR s.parent IS NULL" if only.or_roots else ""
    return Sql(f"(s.sid IN (SELECT value FROM json_each(?)){roots})", (numbers(only.sids),))


def session_scope(connection: Connection, reach: Reach, sid: int, clauses: Sequence[EventClause]) -> Scope:
    """What a search inside one session looks at."""
    blocks = [b for (b,) in connection.execute("SELECT block FROM block WHERE sid = ?", (sid,)).fetchall()]
    rows = _ranges(blocks)
    cut = cuts(connection, reach, sid)
    return Scope(
        sids=frozenset((sid,)),
        outside=frozenset(),
        rows=rows + cut,
        tags=None,
        tagged=0,
        apart=Sql(),
        events=joined(event_conditions(clauses)),
        plain=False,
        inside=True,
        with_searches=any(isinstance(clause, TypeClause) for clause in clauses),
        reach=reach,
    )


def _ranges(blocks: Sequence[int]) -> Sql:
    """The documents of some blocks. The range around all of them is what the engine can make use of."""
    edges = [(b << BLOCK_BITS, b << BLOCK_BITS | BLOCK_MASK) for b in blocks]
    if not edges:
        return Sql(" AND FALSE")
    around = Sql(" AND f.rowid BETWEEN ? AND ?", (min(edges)[0], max(edges)[1]))
    if len(edges) == 1:
        return around
    each = " OR ".join("f.rowid BETWEEN ? AND ?" for _ in edges)
    return around + Sql(f" AND ({each})", tuple(edge for pair in edges for edge in pair))


def cuts(connection: Connection, reach: Reach, only: int | None) -> Sql:
    """Documents that must not be seen although their session is (SPEC 10.8.2), as row-id ranges."""
    found = Sql()
    for sid, seq in reach.cuts.items():
        if only is not None and sid != only:
            continue
        for (block,) in connection.execute("SELECT block FROM block WHERE sid = ?", (sid,)).fetchall():
            low, high = block << BLOCK_BITS, block << BLOCK_BITS | BLOCK_MASK
            row = connection.execute(
                "SELECT min(doc) FROM doc WHERE doc BETWEEN ? AND ? AND seq >= ?", (low, high, seq)
            ).fetchone()
            if row is not None and row[0] is not None:
                found += Sql(" AND f.rowid NOT BETWEEN ? AND ?", (row[0], high))
    return found
