"""Which documents and sessions in scope hold which words of a query; nothing outside the scope is seen.

A *mask* has a bit for each word. Postings are read rarest word first until a budget is spent; words
beyond it are looked up only where it matters: in the texts of candidates, and in spans for sessions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final

import attrs

from .looking import Looking
from .query_words import QueryWords, Word, quoted, word_match
from .relevance import word_weight
from .schema import BLOCK_BITS, BLOCK_DOCUMENTS, spans_stand
from .scope import Scope, Sql, joined, numbers, reach_conditions

POSTINGS_MAX: Final = 10_000
"""Postings brought into Python for one search, about 1 us each with all that follows."""
COMMON_SESSIONS: Final = 0.5
COMMON_EVENTS: Final = 0.05
"""A word is common if more than half of the sessions and one event in twenty hold it: it tells no session
from another (SPEC 16.1.4)."""
VERY_COMMON_EVENTS: Final = 0.25
"""If all words of a query are common, those in at most a quarter of the events still count."""
SAMPLE_EVENTS: Final = 20_000
"""The newest events in reach, by which common words are told in a larger reach."""
COMMON_TOTAL_MIN: Final = 8
"""Among fewer sessions (events, inside one session) no word is common: such counts say nothing."""

_BLOCKS_OF: Final = f"SELECT DISTINCT f.rowid >> {BLOCK_BITS} AS block FROM"


@attrs.frozen(kw_only=True)
class Totals:
    """What the reach holds before any filter. ``units``: sessions, or events inside one session."""

    units: int
    events: int
    mean_chars: float


class Evidence:
    """The words of one query in one scope. Lists follow ``words.words``.

    ``reach``: the scope without filters, which alone weights come from (SPEC 16.1.3).
    """

    def __init__(
        self, looking: Looking, words: QueryWords, reach: Scope, totals: Totals, inside: bool
    ) -> None:
        self.looking = looking
        self.words = words
        self.reach = reach
        self.totals = totals
        self.inside = inside
        self.truncated = False
        self._weights_of: dict[int, float] = {}
        self._rows_of: dict[Word, list[int]] = {}

    @cached_property
    def holders(self) -> list[int]:
        """How many units in reach hold each word."""
        return [self._count_holders(word) for word in self.words.words]

    @cached_property
    def weights(self) -> list[float]:
        return [word_weight(held, max(self.totals.units, held)) for held in self.holders]

    @cached_property
    def weight_held(self) -> float:
        """The weight of the informative words that anything in reach holds: as much as a hit can have."""
        return sum(self.weights[n] for n in self.informative if self.holders[n])

    @cached_property
    def informative(self) -> list[int]:
        """The words that tell sessions apart, ascending; none if all are common (SPEC 16.1.4)."""
        every = range(len(self.words.words))
        found = [n for n in every if not self._is_common(n, COMMON_EVENTS)]
        return found or [n for n in every if not self._is_common(n, VERY_COMMON_EVENTS)]

    def _is_common(self, number: int, event_share: float) -> bool:
        totals = self.totals
        if totals.units < COMMON_TOTAL_MIN or self.holders[number] <= COMMON_SESSIONS * totals.units:
            return False
        if self.inside:
            return True
        first, events = self._newest
        limit = int(event_share * events) + 1
        return self._events_holding(self.words.words[number], limit, first) >= limit

    @cached_property
    def _newest(self) -> tuple[int, int]:
        """The row id from which on the newest events in reach stand for all, and how many these are."""
        if self.totals.events <= SAMPLE_EVENTS:
            return 0, self.totals.events
        where = joined(reach_conditions(self.reach.reach))
        blocks = self.looking.connection.execute(
            "SELECT b.block, min(s.documents, ?) FROM block AS b JOIN session AS s ON s.sid = b.sid"
            f" JOIN workspace AS w ON w.ws = s.ws WHERE {where.text} ORDER BY b.block DESC LIMIT ?",
            (BLOCK_DOCUMENTS, *where.values, SAMPLE_EVENTS),
        )
        events = first = 0
        for block, documents in blocks:
            events += documents
            first = block << BLOCK_BITS
            if events >= SAMPLE_EVENTS:
                break
        blocks.close()
        return first, events

    def _count_holders(self, word: Word) -> int:
        if self.inside:
            rows = self._rows_inside(word)
            return self._events_holding(word) if rows is None else len(rows)
        counts, key = self.looking.remembered.counts, (word.alternatives, self.reach.rows)
        if key not in counts:
            counts[key] = (self._count_blocks(word),)
        return counts[key][0]

    def _rows_inside(self, word: Word) -> list[int] | None:
        """The events of one session that hold a word, if no filter is set and they are not too many.

        They are counted for the word's weight and wanted again as its postings.
        """
        scope = self.looking.scope
        if scope.with_searches or scope.events.text != "TRUE" or scope.rows != self.reach.rows:
            return None
        rows = self._rows_of.get(word)
        if rows is None:
            rows = self._rows_of[word] = self.rows_matching(word_match(word, False), POSTINGS_MAX + 1)
        return rows if len(rows) <= POSTINGS_MAX else None

    def _count_blocks(self, word: Word) -> int:
        spans = self._span_blocks(word, self.reach)
        row = self.looking.connection.execute(f"SELECT count(*) FROM ({spans.text})", spans.values).fetchone()
        assert row is not None, "an aggregate has one row"
        count: int = row[0]
        return count

    def _events_holding(self, word: Word, limit: int = -1, first: int = 0) -> int:
        rows = self.reach.rows
        if first:  # two lower bounds would keep the engine from using the better one
            rows = Sql(" AND f.rowid >= ?", (first,)) + rows
        row = self.looking.connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM fts AS f WHERE fts MATCH ?{rows.text} LIMIT ?)",
            (word_match(word, False), *rows.values, limit),
        ).fetchone()
        assert row is not None, "an aggregate has one row"
        count: int = row[0]
        return count

    def _span_blocks(self, word: Word, scope: Scope) -> Sql:
        """A statement for the blocks whose documents hold a word; a pair needs both its characters."""
        single = [alternative[0] for alternative in word.alternatives if len(alternative) == 1]
        several = [alternative for alternative in word.alternatives if len(alternative) > 1]
        selects = self._holding_any(single, scope)
        for alternative in several:
            each = [_combined(self._holding_any([token], scope), " UNION ") for token in alternative]
            selects.append(_combined(each, " INTERSECT "))
        return _combined(selects, " UNION ")

    def _holding_any(self, tokens: Sequence[str], scope: Scope) -> list[Sql]:
        """Statements for blocks that hold one of some tokens: from spans, and from postings of rare ones."""
        spanned = self._spanned
        frequent = [quoted((token,)) for token in tokens if token in spanned]
        others = [quoted((token,)) for token in tokens if token not in spanned]
        found = []
        if frequent:
            match = " OR ".join(frequent)
            first = (
                f"SELECT f.rowid >> {BLOCK_BITS} AS block FROM span AS f WHERE span MATCH ? AND f.rowid > 0"
            )
            found.append(Sql(first, (match,)) + scope.rows)
        if others:
            match = f"{{text parts}} : ({' OR '.join(others)})"
            first = f"{_BLOCKS_OF} fts AS f WHERE fts MATCH ?"
            found.append(Sql(first, (match,)) + scope.rows)
        return found

    @cached_property
    def _spanned(self) -> frozenset[str]:
        """The tokens of the query that spans answer for; none until every block is covered."""
        execute = self.looking.connection.execute
        if not spans_stand(self.looking.connection):
            return frozenset()
        if execute("SELECT 1 FROM span_todo LIMIT 1").fetchone() is not None:
            return frozenset()
        every = {token for word in self.words.words for parts in word.alternatives for token in parts}
        found = execute(
            "SELECT token FROM span_word WHERE token IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(every)),),
        ).fetchall()
        return frozenset(token for (token,) in found)

    @cached_property
    def masks(self) -> dict[int, int]:
        """Row id to the mask of the words (within the budget) that the document holds."""
        found: dict[int, int] = {}
        for number in self.within_budget:
            bit = 1 << number
            for row in self._postings[number]:
                found[row] = found.get(row, 0) | bit
        return found

    @cached_property
    def within_budget(self) -> list[int]:
        """The informative words whose postings were read, rarest first; at least one."""
        return list(self._postings)

    @cached_property
    def _postings(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        left = POSTINGS_MAX
        for number in sorted(self.informative, key=lambda n: (self.holders[n], n)):
            known = self._rows_inside(self.words.words[number]) if self.inside else None
            if known is not None:
                rows = known[: left + 1]
            else:
                match = word_match(self.words.words[number], self._with_searches)
                rows = self.rows_matching(match, left + 1)
            if len(rows) > left:
                if not found:  # even the rarest word is everywhere: the newest sessions stand for all
                    found[number] = rows[:left]
                    self.truncated = True
                break
            found[number] = rows
            left -= len(rows)
        return found

    @property
    def _with_searches(self) -> bool:
        return self.looking.scope.with_searches

    @property
    def over_budget(self) -> list[int]:
        return [n for n in self.informative if n not in self._postings]

    def rows_matching(self, match: str, limit: int) -> list[int]:
        """Row ids in scope, newest session first."""
        if self.inside:  # ascending if they are few: else the engine begins at the end of all postings
            rows = self._rows(match, "", limit)
            if len(rows) < limit:
                return rows[::-1]
        return self._rows(match, " ORDER BY f.rowid DESC", limit)

    def _rows(self, match: str, order: str, limit: int) -> list[int]:
        scope = self.looking.scope
        join = "" if scope.events.text == "TRUE" else " CROSS JOIN doc AS d ON d.doc = f.rowid"
        found = self.looking.connection.execute(
            f"SELECT f.rowid FROM fts AS f{join} WHERE fts MATCH ?{scope.rows.text}"
            f" AND {scope.events.text}{order} LIMIT ?",
            (match, *scope.rows.values, *scope.events.values, limit),
        ).fetchall()
        return [row for (row,) in found]

    def rows_with_all(self) -> list[int]:
        """Documents that hold every informative word."""
        if not self.over_budget and not self.truncated:
            full = self.mask_of(self.informative)
            return [row for row, mask in self.masks.items() if mask == full]
        each = [word_match(self.words.words[n], self._with_searches) for n in self.informative]
        return self.rows_matching(" AND ".join(f"({match})" for match in each), POSTINGS_MAX)

    def blocks_holding(self, number: int, among: Collection[int]) -> set[int]:
        """Which of some blocks have a document that holds a word and passes every filter (SPEC 16.1.2)."""
        scope = self.looking.scope
        word = self.words.words[number]
        if scope.plain and all(len(alternative) == 1 for alternative in word.alternatives):
            holding = self._span_blocks(word, scope)
        else:
            match = word_match(word, self._with_searches)
            holding = Sql(
                f"{_BLOCKS_OF} fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid"
                f" WHERE fts MATCH ?{scope.rows.text} AND {scope.events.text}",
                (match, *scope.rows.values, *scope.events.values),
            )
        wanted = "SELECT value FROM json_each(?)"
        found = self.looking.connection.execute(
            f"SELECT x.* FROM ({holding.text}) AS x WHERE x.block IN ({wanted})",
            (*holding.values, numbers(among)),
        ).fetchall()
        return {block for (block,) in found}

    def mask_of(self, numbers: Sequence[int]) -> int:
        return sum(1 << number for number in numbers)

    def weight_of(self, mask: int) -> float:
        """The weights of the words in a mask, added up."""
        found = self._weights_of.get(mask)
        if found is None:
            found = sum(self.weights[n] for n in self.informative if mask >> n & 1)
            self._weights_of[mask] = found
        return found


def _combined(selects: Sequence[Sql], operator: str) -> Sql:
    """Compound selects are flat and read left to right, so each part is wrapped."""
    if len(selects) == 1:
        return Sql(f"SELECT DISTINCT * FROM ({selects[0].text})", selects[0].values)
    text = operator.join(f"SELECT * FROM ({select.text})" for select in selects)
    return Sql(text, tuple(value for select in selects for value in select.values))
