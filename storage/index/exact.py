"""The ``exact`` tier: the query as one phrase, ordered by the rank keys of SPEC 6.5.

Two ways to the same order. ``_by_engine`` lets the full-text engine order by its score, which here is
the match count (see ``counting``), and reads only as many rows as can still win. ``_by_text`` counts in
the texts themselves: for short texts, for phrases that can overlap themselves, and for few hits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Final

import attrs

from ...protocol.cursor import Position
from ...protocol.tokens import can_overlap, count_phrase, lower_ascii, prepare
from .counting import may_count
from .literal import literal_pattern
from .looking import Looking
from .query_words import PHRASE_TOKENS_MAX, phrase_match
from .ranked import Group, Hit, Keys, passes
from .schema import BLOCK_BITS
from .scope import Sql

FEW_HITS: Final = 1_000
"""Up to so many hits inside one session are counted in their texts, about 10 us each; the engine's score
costs a pass over all hits of the phrase in the whole table, whatever the session."""
TAGS_FROM_HITS: Final = 20_000
"""Hits in the whole table from which on the workspace's tag in the expression beats a list of sessions:
below, the engine's pass over the hits of the tag itself costs more than it saves (0.5 against 6 ms)."""
LITERAL_ROWS: Final = 2_000
"""Best hits whose texts are checked for the query's symbols (SPEC 16.2.3)."""
_LITERAL_FETCH: Final = 20_000

_COLUMNS: Final = "f.rowid AS row, d.seq, d.time, d.type, d.surface, d.prompt, d.chars"


@attrs.define(eq=False)
class ExactSearch:
    """One phrase over one scope."""

    looking: Looking
    phrase: list[str]
    prompts_last: bool
    literal: bool
    _counted: list[Hit] | None = attrs.field(default=None, init=False)

    def use(self, hits: list[Hit]) -> None:
        """Take hits that were found in another way, in order of their keys, as all there are."""
        self._counted = hits

    def ranked(self, size: int) -> tuple[list[Hit], bool]:
        """The best hits in order of their keys (ties in any order), and whether these are all.

        A tie that goes on beyond the rows read is left out whole, so what is returned is final.
        """
        if self._counted is not None:
            return self._counted, True
        if self._must_count():
            self._counted = self._literal_first(self._by_text(Sql()))
            return self._counted, True
        hits, complete = self._by_engine(max(size, _LITERAL_FETCH) if self.literal else size, Sql())
        return self._literal_first(hits), complete

    def all_in(self, sids: list[int]) -> list[Hit]:
        """All hits in a few sessions, in order of their keys."""
        if self._counted is not None:
            wanted = frozenset(sids)
            return [hit for hit in self._counted if hit.sid in wanted]
        rows = self.looking.rows_of_sessions(sids)
        return self._literal_first(self._by_engine(-1, rows)[0])

    def _must_count(self) -> bool:
        if can_overlap(self.phrase) or len(self.phrase) > PHRASE_TOKENS_MAX:
            return True
        looking = self.looking
        if not may_count(looking.connection):
            return True
        return looking.scope.inside and self._hits_up_to(FEW_HITS + 1, looking.scope.rows) <= FEW_HITS

    def _hits_up_to(self, limit: int, rows: Sql) -> int:
        row = self.looking.connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM fts AS f WHERE fts MATCH ?{rows.text} LIMIT ?)",
            (phrase_match(self.phrase, self.looking.scope.with_searches), *rows.values, limit),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def _where(self, rows: Sql) -> Sql:
        scope = self.looking.scope
        match, inside = phrase_match(self.phrase, scope.with_searches), scope.rows
        if scope.tags is not None and self._hits_up_to(TAGS_FROM_HITS, Sql()) >= TAGS_FROM_HITS:
            match, inside = f"({match}) AND ({scope.tags})", scope.apart
        where = Sql(" WHERE fts MATCH ?", (match,)) + inside + rows
        return where + Sql(f" AND {scope.events.text}", scope.events.values)

    def _by_engine(self, size: int, rows: Sql) -> tuple[list[Hit], bool]:
        where = self._where(rows)
        prompt = "d.prompt, " if self.prompts_last else ""
        found = self.looking.connection.execute(
            f"SELECT x.*, b.sid FROM (SELECT {_COLUMNS}, bm25(fts, 1.0, 0.0, 1.0, 0.0) AS score"
            f" FROM fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid{where.text}"
            f" ORDER BY score, {prompt}d.chars, d.time DESC LIMIT ?) AS x"
            f" CROSS JOIN block AS b ON b.block = x.row >> {BLOCK_BITS}",
            (*where.values, size),
        ).fetchall()
        complete = size < 0 or len(found) < size
        counts: dict[float, int] = {}
        for row in found:
            if row[7] not in counts:
                counts[row[7]] = self._count(self.looking.text(row[0]))
        hits = [self._hit(row, counts[row[7]], row[8]) for row in found]
        hits.sort(key=_keys_of)  # a join promises no order
        if not complete:
            last = hits[-1].keys
            while hits and hits[-1].keys == last:
                hits.pop()
        return hits, complete

    def _by_text(self, rows: Sql) -> list[Hit]:
        where = self._where(rows)
        found = self.looking.connection.execute(
            f"SELECT {_COLUMNS} FROM fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid{where.text}"
            " ORDER BY f.rowid",
            where.values,
        ).fetchall()
        hits = []
        for row in found:
            count = self._count(self.looking.text(row[0]))
            if count:  # a phrase longer than what the engine was given may still differ
                hits.append(self._hit(row, count, self.looking.sid_of(row[0])))
        hits.sort(key=lambda hit: hit.keys)
        return hits

    def _count(self, text: str) -> int:
        return count_phrase(lower_ascii(prepare(text)), self.phrase)

    def _hit(self, row: Sequence[int], count: int, sid: int) -> Hit:
        row_id, seq, time, kind, surface, prompt, chars = row[:7]
        keys = (0, -count, prompt if self.prompts_last else 0, chars, -time)
        return Hit(row_id, sid, seq, time, kind, surface, keys)

    def _literal_first(self, hits: list[Hit]) -> list[Hit]:
        """Put the hits whose text holds the query as it was typed before the others."""
        if not self.literal:
            return hits
        holds = literal_pattern(self.looking.query)
        checked = [
            attrs.evolve(
                hit, keys=(0 if n < LITERAL_ROWS and holds(self.looking.text(hit.row)) else 1, *hit.keys[1:])
            )
            for n, hit in enumerate(hits)
        ]
        checked.sort(key=lambda hit: hit.keys)
        return checked


def exact_events(search: ExactSearch, want: int, after: Position | None) -> list[tuple[Hit, Keys]]:
    """At most ``want`` hits of one session after ``after``, with their full keys."""
    size = 4 * want
    while True:
        hits, complete = search.ranked(size)
        found = [(hit, (*hit.keys, -hit.seq)) for hit in hits]
        found.sort(key=lambda pair: pair[1])
        found = [pair for pair in found if passes(after, "exact", pair[1])]
        if complete or len(found) >= want:
            return found[:want]
        size *= 4


def exact_sessions(search: ExactSearch, want: int, after: Position | None) -> list[Group]:
    """At most ``want`` sessions after ``after``, each with its best hit."""
    size = 4 * want
    while True:
        hits, complete = search.ranked(size)
        groups = list(islice(_grouped(search, hits, after), want))
        if complete or len(groups) >= want:
            return groups
        size *= 4


def _grouped(search: ExactSearch, hits: list[Hit], after: Position | None) -> Iterator[Group]:
    """Sessions after ``after``, in the order of their best hits.

    Lazy: a session is loaded only if it is given, or if a tie is to be decided by its id.
    """
    looking = search.looking
    seen: set[int] = set()
    for _, tied in groupby(hits, key=_keys_of):
        rest = [(hit, root) for hit in tied if (root := looking.root(hit)) is not None]
        if len(rest) > 1:
            rest.sort(key=lambda pair: (looking.tie(pair[1]), looking.tie(pair[0].sid), -pair[0].seq))
        for hit, root in rest:
            if root in seen:
                continue
            seen.add(root)
            if after is None or hit.keys >= after.keys[: len(hit.keys)]:
                group = Group(root, (*hit.keys, *looking.tie(root)), hit, {hit.sid: hit})
                if passes(after, "exact", group.keys):
                    yield group


def _keys_of(hit: Hit) -> Keys:
    return hit.keys
