"""The ``exact`` tier: the query as one phrase, ordered by the rank keys of SPEC 6.5.

Two ways to the same order. ``_by_engine`` lets the full-text engine order by its score, which here is
the match count (see ``counting``, ``engine_order``), and reads only rows that can still win.
``_by_text`` counts in the texts themselves: for short texts, for phrases that can overlap themselves,
and for few hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice
from operator import attrgetter
from typing import Final

import attrs

from ...protocol.cursor import Position
from ...protocol.tokens import can_overlap, count_phrase, lower_ascii, prepare
from ..sqlite import Row
from .counting import may_count
from .engine_order import COLUMNS, EngineOrder
from .literal import literal_pattern
from .looking import Looking
from .query_words import PHRASE_TOKENS_MAX, phrase_match
from .ranked import Group, Hit, Keys, passes
from .rare_tokens import held_by_rare, rows_inside
from .repeats import may_repeat
from .schema import BLOCK_BITS, prompt_of, spans_stand
from .scope import Matching, Sql, hits_up_to, numbers
from .tagging import all_tagged

FEW_HITS: Final = 1_000
"""Up to so many hits inside one session are counted in their texts, about 10 us each; the engine's score
costs a pass over all hits of the phrase in the whole table, whatever the session."""
TAGS_FROM_HITS: Final = 2_000
"""Hits in the whole table from which on the workspace's tag in the expression beats a list of sessions:
below, the engine's pass over the hits of the tag itself costs more than it saves."""
LOOKED_UP_MAX: Final = 4_000
"""Hits whose lengths are looked up one by one, 0.5 us each; more are first thinned out (engine_order)."""
SAMPLE_SHARE: Final = 16
"""One part in so many of the row ids, the newest, tells whether hits are many: 40 to 90 ns each."""
SAMPLED_MAX: Final = 2_500
LONG_PHRASE: Final = 3
"""Tokens of a phrase from which on its rarer tokens are looked at first."""
READ_TOGETHER: Final = 256
TAGGED_LOOKED_UP_MAX: Final = 10_000
"""The same in a workspace, where thinning out costs a walk over the tag and two sets of postings."""
SMALL_DOCUMENTS_MAX: Final = 10_000
"""Documents of workspaces that are small: there cannot be more hits."""
LISTED_MAX: Final = 500
"""Hits in a workspace that are listed at once; counting and then looking up more costs less."""
MAYBE_TWICE_MAX: Final = 40
"""Hits that may count more than one and are read to see, 30 us each, before the engine is asked after all."""
LITERAL_ROWS: Final = 2_000
"""Best hits whose texts are checked for the query's symbols (SPEC 16.2.3)."""
_LITERAL_FETCH: Final = 20_000


@attrs.define(eq=False, slots=False)
class ExactSearch:
    """One phrase over one scope."""

    looking: Looking
    phrase: list[str]
    prompts_last: bool
    literal: bool
    _counted: list[Hit] | None = attrs.field(default=None, init=False)
    _once: list[Row] | None = attrs.field(default=None, init=False)

    def use(self, hits: list[Hit]) -> None:
        """Take hits that were found in another way, in order of their keys, as all there are."""
        self._counted = hits

    def ranked(self, size: int) -> tuple[list[Hit], bool]:
        """The best hits in order of their keys (ties in any order), and whether these are all.

        A tie that goes on beyond the rows read is left out whole, so what is returned is final.
        """
        if self._counted is not None:
            return self._counted, True
        rows = self._rows_inside()
        few = None if rows is not None else self._few_hits()
        if rows is not None or few is not None:
            found = self._looked_up(rows) if few is None else self._matched(few)
            self._counted = self._literal_first(self._by_text(found))
            return self._counted, True
        hits, complete = self._by_engine(max(size, _LITERAL_FETCH) if self.literal else size)
        return self._literal_first(hits), complete

    def holds_every_session(self, hits: list[Hit]) -> bool:
        """Whether further hits could only be of sessions that are among these with a better one."""
        looking = self.looking
        if looking.tools and looking.forks:
            return False  # the better one may be a copy that is shown elsewhere
        return self._sessions_with_hits == len({hit.sid for hit in hits})

    @cached_property
    def _sessions_with_hits(self) -> int:
        """How many sessions of the scope hold the phrase: 0.3 us a hit, 1 with an event filter.

        Asked when a page is not full. To read on until all hits are ranked costs ten times as much.
        """
        scope = self.looking.scope
        if scope.tags is not None and self._rows_tagged is not None and scope.events.text == "TRUE":
            self.looking.load_sids({row >> BLOCK_BITS for row in self._rows_tagged})
            return len({self.looking.sid_of(row) for row in self._rows_tagged})
        matching = self._plain if scope.tags is None else self._tagged
        filtered = scope.events.text != "TRUE"
        row = self.looking.connection.execute(
            "SELECT count(DISTINCT b.sid) FROM fts AS f"
            + (" CROSS JOIN doc AS d ON d.doc = f.rowid" if filtered else "")
            + f" CROSS JOIN block AS b ON b.block = f.rowid >> {BLOCK_BITS}"
            f" WHERE fts MATCH ?{matching.rows.text} AND {scope.events.text}",
            (matching.expression, *matching.rows.values, *scope.events.values),
        ).fetchone()
        assert row is not None, "a count has a row"
        return int(row[0])

    def all_in(self, sids: list[int]) -> list[Hit]:
        """All hits in a few sessions, in order of their keys."""
        if self._counted is not None:
            wanted = frozenset(sids)
            return [hit for hit in self._counted if hit.sid in wanted]
        order = EngineOrder(self.looking.connection, self.prompts_last)
        matching = Matching(self._plain.expression, self._plain.rows + self.looking.rows_of_sessions(sids))
        return self._literal_first(
            self._settled(order.joined(matching, self.looking.scope.events, -1), True)[0]
        )

    def _rows_inside(self) -> list[int] | None:
        """Documents of one session among which a phrase of several tokens is looked for in the texts."""
        if not self.looking.scope.inside or len(self.phrase) < 2:
            return None
        return rows_inside(self.looking, self.phrase[:PHRASE_TOKENS_MAX], FEW_HITS)

    def _few_hits(self) -> Matching | None:
        """What to match if the matches are to be counted in their texts, None if the engine is to count."""
        scope = self.looking.scope
        own = self._plain if scope.tags is None else self._tagged
        if can_overlap(self.phrase) or len(self.phrase) > PHRASE_TOKENS_MAX:
            return self._held_by_rare or own
        if not may_count(self.looking.connection):
            return own
        if scope.inside:
            return own if self._hits_up_to(FEW_HITS + 1, own) <= FEW_HITS else None
        if len(self.phrase) >= LONG_PHRASE and self._held_by_rare is not None:
            return self._held_by_rare
        return None

    @cached_property
    def _held_by_rare(self) -> Matching | None:
        return held_by_rare(self.looking, self.phrase[:PHRASE_TOKENS_MAX])

    @cached_property
    def _hits_everywhere(self) -> int:
        """Hits in the whole table, as far as it matters."""
        return self._hits_up_to(TAGS_FROM_HITS, Matching(self._plain.expression, Sql()))

    @property
    def _are_few_tagged(self) -> bool:
        """Whether the searched workspaces have few hits. Small ones need no count: to walk to the hits of one
        takes as long as to look them up."""
        return self._is_small or self._hits_tagged <= TAGGED_LOOKED_UP_MAX

    @property
    def _is_small(self) -> bool:
        return self.looking.scope.tagged <= SMALL_DOCUMENTS_MAX

    @cached_property
    def _hits_tagged(self) -> int:
        """Hits in the searched workspaces, as far as it matters: 0.1 us each."""
        rows = self._rows_tagged
        return self._hits_up_to(TAGGED_LOOKED_UP_MAX + 1, self._tagged) if rows is None else len(rows)

    @cached_property
    def _rows_tagged(self) -> list[int] | None:
        """The hits in the searched workspaces if they are few: then they are not walked to twice."""
        found = self.looking.connection.execute(
            f"SELECT f.rowid FROM fts AS f WHERE fts MATCH ?{self._tagged.rows.text} LIMIT ?",
            (self._tagged.expression, *self._tagged.rows.values, LISTED_MAX + 1),
        ).fetchall()
        return [row for (row,) in found] if len(found) <= LISTED_MAX else None

    def _hits_up_to(self, limit: int, matching: Matching) -> int:
        return hits_up_to(self.looking.connection, limit, matching)

    @cached_property
    def _plain(self) -> Matching:
        scope = self.looking.scope
        return Matching(phrase_match(self.phrase, scope.with_searches), scope.rows)

    @cached_property
    def _tagged(self) -> Matching:
        scope = self.looking.scope
        return Matching(f"({self._plain.expression}) AND ({scope.tags})", scope.apart)

    def _matching(self) -> Matching:
        """The better way to keep to the scope for the engine's order."""
        if self.looking.scope.tags is None:
            return self._plain
        return self._tagged if self._hits_everywhere >= TAGS_FROM_HITS else self._plain

    def _by_engine(self, size: int) -> tuple[list[Hit], bool]:
        order = EngineOrder(self.looking.connection, self.prompts_last)
        if self.looking.scope.tags is not None and self._are_few_tagged:
            known = self._by_repeats(order, size) if self._is_small or self._hits_tagged else ([], True)
            if known is not None:
                return known
        matching, events = self._matching(), self.looking.scope.events
        most, hits = self._hits_among(matching)
        if not hits:
            return [], True
        if hits <= most or events.text != "TRUE":
            found = order.joined(matching, events, size)
            return self._settled(found, len(found) < size)
        scored = order.by_score(matching, size)
        if len(scored) < size:
            return self._settled(order.look_up(scored), True)
        edge = scored[-1][1]
        better = [pair for pair in scored if pair[1] < edge]
        missing = size - len(better)
        if all_tagged(self.looking.connection) and self._count(self.looking.text(scored[-1][0])) == 1:
            tied = order.shortest(matching, edge, missing, frozenset(row for row, _ in better), hits)
        else:
            tied = order.at_score(matching, edge, missing)
        return self._settled(order.look_up(better) + tied, False)

    def _hits_among(self, matching: Matching) -> tuple[int, int]:
        """Up to how many hits are all looked up, and how many there are, as far as that matters.

        Only told to be many by the sample: an estimate chooses a way to the answer, never the answer.
        """
        if self.looking.scope.tags is not None and self._hits_everywhere >= TAGS_FROM_HITS:
            known = self._hits_tagged
            if known <= TAGGED_LOOKED_UP_MAX:
                return TAGGED_LOOKED_UP_MAX, known
            return TAGGED_LOOKED_UP_MAX, max(known, self._estimate(matching))
        estimate = self._estimate(matching)
        if estimate > 2 * LOOKED_UP_MAX:
            return LOOKED_UP_MAX, estimate
        return LOOKED_UP_MAX, self._hits_up_to(LOOKED_UP_MAX + 1, matching)

    def _estimate(self, matching: Matching) -> int:
        return SAMPLE_SHARE * self._hits_up_to(SAMPLED_MAX, self._newest_of(matching))

    def _newest_of(self, matching: Matching) -> Matching:
        row = self.looking.connection.execute("SELECT max(block) FROM block").fetchone()
        last = 0 if row is None or row[0] is None else int(row[0])
        first = last - last // SAMPLE_SHARE
        return Matching(matching.expression, Sql(" AND f.rowid >= ?", (first << BLOCK_BITS,)) + matching.rows)

    def _by_repeats(self, order: EngineOrder, size: int) -> tuple[list[Hit], bool] | None:
        """The best hits of some workspaces without the engine's score; None if too many may count twice."""
        if not spans_stand(self.looking.connection):
            return None
        scope = self.looking.scope
        most = size + MAYBE_TWICE_MAX
        listed = None if self._is_small else self._rows_tagged
        source = self._tagged if listed is None else listed
        found = self._once
        if found is None:
            found = order.known_once(source, scope.events, may_repeat(self.phrase), most)
        maybe = sum(row[5] for row in found)
        if maybe > MAYBE_TWICE_MAX:
            return None
        shown = found
        if (
            len(found) < most
        ):  # all there are; a page takes few of them, the rest is ranked if it is asked for
            self._once, shown = found, found[: maybe + size // 2]
        self.looking.load_texts(row[0] for row in shown[:maybe])
        self.looking.load_sids({row[0] >> BLOCK_BITS for row in shown})
        sid_of, last = self.looking.sid_of, self.prompts_last
        text = self.looking.text
        hits = [self._hit(row, self._count(text(row[0])), sid_of(row[0])) for row in shown[:maybe]]
        hits += [  # as ``_hit``, written out: a call less for each of a hundred
            Hit(doc, sid_of(doc), seq, time, kind, (0, -1, prompt_of(kind) if last else 0, chars, -time))
            for doc, seq, time, kind, chars, _ in shown[maybe:]
        ]
        complete = len(shown) == len(found) < most
        edge = hits[-1].keys if hits else ()
        hits.sort(key=_keys_of)
        if not complete:  # what ties with the last one, or comes after it, may not be all
            while hits and hits[-1].keys >= edge:
                hits.pop()
        return hits, complete

    def _settled(self, found: list[Row], complete: bool) -> tuple[list[Hit], bool]:
        """Rows as hits in order, with real counts; without a tie that may go on."""
        counts: dict[float, int] = {}
        for row in found:
            if row[5] not in counts:
                counts[row[5]] = self._count(self.looking.text(row[0]))
        last = self.prompts_last
        hits = [
            Hit(doc, sid, seq, time, kind, (0, -counts[score], prompt_of(kind) if last else 0, chars, -time))
            for doc, seq, time, kind, chars, score, sid in found
        ]
        hits.sort(key=_keys_of)
        if not complete:
            edge = hits[-1].keys
            while hits and hits[-1].keys == edge:
                hits.pop()
        return hits, complete

    def _looked_up(self, rows: Iterable[int] | None) -> list[Row]:
        events = self.looking.scope.events
        return self.looking.connection.execute(
            f"SELECT {COLUMNS} FROM json_each(?) AS j CROSS JOIN doc AS d ON d.doc = j.value"
            f" WHERE {events.text}",
            (numbers(rows or ()), *events.values),
        ).fetchall()

    def _matched(self, matching: Matching) -> list[Row]:
        events = self.looking.scope.events
        return self.looking.connection.execute(
            f"SELECT {COLUMNS} FROM fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid"
            f" WHERE fts MATCH ?{matching.rows.text} AND {events.text} ORDER BY f.rowid",
            (matching.expression, *matching.rows.values, *events.values),
        ).fetchall()

    def _by_text(self, found: Sequence[Row]) -> list[Hit]:
        """Those of some documents that hold the phrase, in order of their keys."""
        hits = []
        for at, row in enumerate(found):
            if at % READ_TOGETHER == 0:
                self.looking.load_texts(later[0] for later in found[at : at + READ_TOGETHER])
            count = self._count(self.looking.text(row[0]))
            if count:  # a phrase longer than what the engine was given may still differ
                hits.append(self._hit(row, count, self.looking.sid_of(row[0])))
        hits.sort(key=_keys_of)
        return hits

    def _count(self, text: str) -> int:
        return count_phrase(lower_ascii(prepare(text)), self.phrase)

    def _hit(self, row: Sequence[int], count: int, sid: int) -> Hit:
        row_id, seq, time, kind, chars = row[:5]
        keys = (0, -count, prompt_of(kind) if self.prompts_last else 0, chars, -time)
        return Hit(row_id, sid, seq, time, kind, keys)

    def _literal_first(self, hits: list[Hit]) -> list[Hit]:
        """Put the hits whose text holds the query as it was typed before the others.

        Which of equal ones are among those checked is not left to the way they were found in.
        """
        if not self.literal:
            return hits
        hits = sorted(hits, key=_keys_and_row)
        holds = literal_pattern(self.looking.query)
        checked = [
            hit._replace(
                keys=(0 if n < LITERAL_ROWS and holds(self.looking.text(hit.row)) else 1, *hit.keys[1:])
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
        search.looking.families.load(islice(dict.fromkeys(hit.sid for hit in hits), want))
        groups = list(islice(_grouped(search, hits, after), want))
        if complete or len(groups) >= want or search.holds_every_session(hits):
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


_keys_of: Final = attrgetter("keys")
_keys_and_row: Final = attrgetter("keys", "row")
