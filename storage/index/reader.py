"""All questions to the index, on one read-only connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeAlias

from ...protocol.documents import Document
from ...protocol.filters import SessionClause
from .. import sqlite
from ..sqlite import Connection
from ..text_codec import TextCodec
from . import rows, visibility
from .bodies import Bodies
from .documents import ranges, read_documents
from .door import (
    EventsFound,
    Reach,
    SearchSpec,
    SessionKey,
    SessionsFound,
    Share,
    Skeleton,
    StoredSession,
)
from .families import parent_of
from .rows import from_sql, to_sql
from .schema import BLOCK_BITS, BLOCK_MASK
from .scope import Sql, any_of, joined, reach_conditions, session_conditions
from .searcher import Searcher
from .skeletons import read_skeleton

LogPath: TypeAlias = Callable[[Connection, int], "str | None"]


def _no_log(_connection: Connection, _sid: int) -> None:
    return None


_SESSIONS = f"SELECT {rows.COLUMNS} FROM session AS s JOIN workspace AS w ON w.ws = s.ws WHERE "

_KIN = """s.visible = 1 AND (s.id IN (
    WITH RECURSIVE up(id) AS (
        SELECT ? UNION
        SELECT p.parent FROM session AS p JOIN up ON p.id = up.id WHERE p.visible = 1 AND p.parent IS NOT NULL
    ) SELECT id FROM up) OR s.parent IN (
    WITH RECURSIVE down(id) AS (
        SELECT ? UNION
        SELECT c.id FROM session AS c JOIN down ON c.parent = down.id WHERE c.visible = 1
    ) SELECT id FROM down))"""
"""UNION drops what was met before, so that a cycle ends."""
_BATCH = 500
"""Ids in one statement: one text is prepared once and serves every batch but the last."""


class Reader:
    """See ``door.IndexReader``, which this fills."""

    def __init__(self, connection: Connection, log_path: LogPath = _no_log) -> None:
        self._connection = connection
        self._log_path = log_path
        self._codec = TextCodec()
        self._bodies = Bodies(connection, self._codec)
        self._searcher = Searcher(connection, self._bodies)
        self._version: int | None = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with sqlite.snapshot(self._connection):
            row = self._connection.execute("PRAGMA data_version").fetchone()
            version = None if row is None else row[0]
            if version is None or version != self._version:  # somebody committed: nothing remembered holds
                self._bodies.forget()
                self._searcher.forget()
                self._version = version
            yield

    def _listed(self, where: Sql, order: str) -> list[StoredSession]:
        found = self._connection.execute(f"{_SESSIONS}{where.text} ORDER BY {order}", where.values)
        return [rows.stored(row) for row in found.fetchall()]

    def sessions(self, reach: Reach, clauses: Sequence[SessionClause] = ()) -> list[StoredSession]:
        conditions = reach_conditions(reach, with_excluded=True) + session_conditions(clauses, reach.live)
        return self._listed(joined(conditions), "s.created_at DESC, s.id, s.rank, s.source, s.place")

    def session(self, sid: int) -> StoredSession | None:
        return rows.by_sid(self._connection, sid)

    def find(self, key: SessionKey) -> StoredSession | None:
        return rows.find(self._connection, key)

    def with_id(self, id: str) -> list[StoredSession]:  # noqa: A002 - the contract's word
        where = Sql("s.visible = 1 AND s.id = ?", (to_sql(id),))
        return self._listed(where, "s.rank, s.source, s.place")

    def with_ids(
        self, ids: Iterable[str], workspaces: Sequence[str | None] | None = None
    ) -> list[StoredSession]:
        inside = Sql() if workspaces is None else Sql(" AND ") + _among(workspaces)
        return [
            row for some in _batches(ids) for row in self._listed(_visible("s.id", some) + inside, "s.sid")
        ]

    def with_parents(self, ids: Iterable[str]) -> list[StoredSession]:
        return [row for some in _batches(ids) for row in self._listed(_visible("s.parent", some), "s.sid")]

    def kin(self, id: str) -> list[StoredSession]:  # noqa: A002 - the contract's word
        return self._listed(Sql(_KIN, (to_sql(id), to_sql(id))), "s.sid")

    def log_path(self, sid: int) -> str | None:
        return self._log_path(self._connection, sid)

    def of_source(self, source: str) -> list[StoredSession]:
        return self._listed(Sql(rows.OF_SOURCE, rows.of_source(source)), "s.id, s.place")

    def fallbacks(self, sid: int) -> list[StoredSession]:
        session = self.session(sid)
        return [] if session is None else visibility.same_session(self._connection, session.state.header)

    def unread(self, reach: Reach) -> list[StoredSession]:
        where = joined(reach_conditions(reach, readable=False))
        found = self._connection.execute(  # CROSS JOIN: the few unread first, not all of a workspace
            f"SELECT {rows.COLUMNS} FROM session AS s CROSS JOIN workspace AS w ON w.ws = s.ws"
            f" WHERE {where.text} ORDER BY s.created_at DESC, s.id, s.rank, s.source, s.place",
            where.values,
        )
        return [rows.stored(row) for row in found.fetchall()]

    def count(self, reach: Reach) -> int:
        return self._sum("count(*)", reach_conditions(reach))

    def losses(self, reach: Reach) -> int:
        return self._sum("coalesce(sum(s.losses), 0)", reach_conditions(reach))

    def workspaces(self) -> list[str]:
        rows_ = self._connection.execute("SELECT cwd FROM workspace WHERE cwd IS NOT NULL").fetchall()
        return [from_sql(cwd) for (cwd,) in rows_]

    def shares(self, reach: Reach) -> list[Share]:
        where = joined(reach_conditions(reach))
        found = self._connection.execute(
            "SELECT w.cwd, count(*), sum(s.losses) FROM session AS s JOIN workspace AS w ON w.ws = s.ws"
            f" WHERE {where.text} GROUP BY s.ws",
            where.values,
        ).fetchall()
        shares = [
            Share(workspace=None if cwd is None else from_sql(cwd), sessions=sessions, losses=losses)
            for cwd, sessions, losses in found
        ]
        return sorted(shares, key=lambda share: (share.workspace is not None, share.workspace or ""))

    def _sum(self, what: str, conditions: Sequence[Sql]) -> int:
        where = joined(conditions)
        row = self._connection.execute(
            f"SELECT {what} FROM session AS s JOIN workspace AS w ON w.ws = s.ws WHERE {where.text}",
            where.values,
        ).fetchone()
        return row[0] if row else 0

    def parent(self, sid: int, reach: Reach | None = None) -> StoredSession | None:
        session = self.session(sid)
        return None if session is None else parent_of(self._connection, session, reach)

    def children(self, sid: int) -> list[StoredSession]:
        session = self.session(sid)
        if session is None:
            return []
        where = Sql("s.visible = 1 AND s.parent = ?", (to_sql(session.key.id),))
        found = self._listed(where, "s.created_at, s.id, s.rank, s.source, s.place")
        return [child for child in found if self._is_child(child, sid)]

    def _is_child(self, child: StoredSession, sid: int) -> bool:
        parent = parent_of(self._connection, child)
        return parent is not None and parent.sid == sid

    def skeleton(self, sid: int) -> list[Skeleton]:
        return read_skeleton(self._bodies, sid)

    def documents(self, sid: int) -> list[Document]:
        session = self.session(sid)
        if session is None:
            return []
        blocks = [
            block
            for (block,) in self._connection.execute(
                "SELECT block FROM block WHERE sid = ? ORDER BY block", (sid,)
            ).fetchall()
        ]
        return read_documents(self._connection, self._bodies, ranges(blocks, 0, session.documents))

    def document(self, sid: int, seq: int) -> Document | None:
        for (block,) in self._connection.execute("SELECT block FROM block WHERE sid = ?", (sid,)).fetchall():
            low, high = block << BLOCK_BITS, block << BLOCK_BITS | BLOCK_MASK
            row = self._connection.execute(
                "SELECT doc FROM doc WHERE doc BETWEEN ? AND ? AND seq = ?", (low, high, seq)
            ).fetchone()
            if row is not None:
                return read_documents(self._connection, self._bodies, [(row[0], row[0])])[0]
        return None

    def generation(self) -> int:
        value = self.get_meta("generation")
        return int(value) if value else 0

    def workspace_generation(self, cwd: str | None) -> int:
        return self._value("SELECT generation FROM workspace WHERE cwd IS ?", to_sql(cwd))

    def session_generation(self, sid: int) -> int:
        return self._value("SELECT generation FROM session WHERE sid = ?", sid)

    def _value(self, statement: str, key: sqlite.SqlValue) -> int:
        row = self._connection.execute(statement, (key,)).fetchone()
        return row[0] if row else 0

    def get_meta(self, name: str) -> bytes | None:
        row = self._connection.execute("SELECT value FROM index_meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def search_sessions(self, spec: SearchSpec, reach: Reach) -> SessionsFound:
        return self._searcher.sessions(spec, reach)

    def search_events(self, spec: SearchSpec, reach: Reach, sid: int) -> EventsFound:
        return self._searcher.events(spec, reach, sid)


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(dict.fromkeys(ids))
    while some := list(islice(rest, _BATCH)):
        yield some


def _among(workspaces: Sequence[str | None]) -> Sql:
    named = any_of("cwd", workspaces)
    return Sql(f"s.ws IN (SELECT ws FROM workspace WHERE {named.text})", named.values)


def _visible(column: str, ids: list[str]) -> Sql:
    named = any_of(column, ids)
    return Sql(f"s.visible = 1 AND {named.text}", named.values)


def open_reader(connection: Connection, log_path: LogPath = _no_log) -> Reader:
    """The reader of an index whose tables exist, on a connection of its own.

    ``log_path``: tells where a session's log lies, from tables beside the index's.
    """
    return Reader(connection, log_path)
