"""One search under way: its connection, what it looks at, and what it has looked up so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import attrs

from ..sqlite import Connection
from .bodies import Bodies
from .door import StoredSession
from .families import Families
from .ranked import Hit, Keys, session_tie
from .remembered import Remembered
from .rows import from_sql
from .schema import BLOCK_BITS, BLOCK_MASK
from .scope import Scope, Sql, numbers


class Doc(NamedTuple):
    """What is filtered and ranked by, of one document."""

    seq: int
    time: int
    kind: int
    chars: int


@attrs.define(eq=False)
class Looking:
    """Shared by the tiers of one search. ``tools``: copies and sub-agents are folded (SPEC 16.9)."""

    connection: Connection
    bodies: Bodies
    scope: Scope
    query: str
    tools: bool
    remembered: Remembered = attrs.field(factory=Remembered, kw_only=True)
    families: Families = attrs.field(init=False)
    _docs: dict[int, Doc] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.families = Families(self.connection, self.scope, self.remembered.sessions)

    def sid_of(self, row: int) -> int:
        """The session of a document."""
        block = row >> BLOCK_BITS
        sid = self.remembered.sids.get(block)
        if sid is None:
            found = self.connection.execute("SELECT sid FROM block WHERE block = ?", (block,)).fetchone()
            assert found is not None, "a document's block exists in the same snapshot"
            sid = self.remembered.sids[block] = found[0]
        return sid

    def load_sids(self, blocks: Collection[int]) -> None:
        """Look the sessions of many blocks up at once."""
        sids = self.remembered.sids
        missing = [block for block in blocks if block not in sids]
        if missing:
            found = self.connection.execute(
                "SELECT block, sid FROM block WHERE block IN (SELECT value FROM json_each(?))",
                (numbers(missing),),
            ).fetchall()
            sids.update(found)

    @property
    def forks(self) -> tuple[int, ...]:
        """The sids of all sessions that inherited events."""
        found = self.remembered.forks
        if found is None:
            rows = self.connection.execute("SELECT sid FROM session WHERE inherited > 0").fetchall()
            found = self.remembered.forks = tuple(sid for (sid,) in rows)
        return found

    def text(self, row: int) -> str:
        """A document's text."""
        return self.bodies.text(row)

    def doc(self, row: int) -> Doc:
        """A document's own row."""
        found = self._docs.get(row)
        if found is None:
            self.load_docs((row,))
            found = self._docs[row]  # a posting's document exists in the same snapshot
        return found

    def load_docs(self, rows: Iterable[int]) -> None:
        """Read the rows of many documents at once."""
        missing = [row for row in rows if row not in self._docs]
        if missing:
            found = self.connection.execute(
                "SELECT d.doc, d.seq, d.time, d.kind, d.chars"
                " FROM json_each(?) AS j CROSS JOIN doc AS d ON d.doc = j.value",
                (numbers(missing),),
            ).fetchall()
            self._docs.update((row[0], Doc(*row[1:])) for row in found)

    def load_texts(self, rows: Iterable[int]) -> None:
        """Read the texts of many documents at once: those that a page shows."""
        self.bodies.load(rows)

    def type_name(self, number: int) -> str:
        types = self.remembered.types
        name = types.get(number)
        if name is None:
            found = self.connection.execute("SELECT name FROM type WHERE type = ?", (number,)).fetchone()
            assert found is not None, "a document's type exists in the same snapshot"
            name = types[number] = from_sql(found[0])
        return name

    def session(self, sid: int) -> StoredSession:
        return self.families.session(sid)

    def tie(self, sid: int) -> Keys:
        """What decides between sessions that rank the same otherwise."""
        return session_tie(self.families.session(sid))

    def root(self, hit: Hit) -> int | None:
        """The session a hit is listed under; None for a copy that is shown elsewhere."""
        if not self.tools:
            return hit.sid
        origin = self.families.origin(hit.sid, hit.seq)
        if origin is not None and self._holds_copy(origin, hit.row):
            return None
        return self.families.root(hit.sid)

    def rows_of_sessions(self, sids: list[int]) -> Sql:
        """The condition on ``f.rowid`` that a document is in one of a few sessions."""
        blocks = "SELECT block FROM block WHERE sid IN (SELECT value FROM json_each(?))"
        return Sql(f" AND f.rowid >> {BLOCK_BITS} IN ({blocks})", (numbers(sids),))

    def _holds_copy(self, sid: int, row: int) -> bool:
        """Whether a session holds an event of the same type and text that the filters let through.

        By content, not by place: a fork's own first records push its copies back, and what a header says
        was inherited need not be so (SPEC 16.9).
        """
        events, rows = self.scope.events, self.scope.rows_of("d.doc")
        seen = "" if self.scope.with_searches else " AND d.search = 0"
        alike = self.connection.execute(
            "SELECT d.doc FROM doc AS own CROSS JOIN block AS b CROSS JOIN doc AS d"
            f" ON d.doc BETWEEN b.block << {BLOCK_BITS} AND (b.block << {BLOCK_BITS}) + {BLOCK_MASK}"
            " WHERE own.doc = ? AND b.sid = ? AND d.chars = own.chars AND d.type = own.type"
            f" AND {events.text}{rows.text}{seen}",
            (row, sid, *events.values, *rows.values),
        ).fetchall()
        return any(self.text(other) == self.text(row) for (other,) in alike)
