"""One search from its request to its answer: tiers in order, until enough hits are found (SPEC 16.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...protocol.cursor import Position
from ...protocol.records import TIERS, Tier
from ...protocol.snippet import best_window_start, snippet, whole_snippet
from ...protocol.tokens import first_phrase, tokens
from ..sqlite import Connection
from .bodies import Bodies
from .door import (
    EventsFound,
    Facts,
    FoundEvent,
    FoundInSession,
    Reach,
    SearchSpec,
    SessionsFound,
)
from .evidence import Evidence, Totals
from .exact import ExactSearch, exact_events, exact_sessions
from .literal import find_literal, literal_pieces
from .looking import Looking
from .query_words import query_words
from .ranked import Group, Hit, Keys
from .relaxed import RelaxedSearch
from .remembered import Remembered
from .scanning import scan
from .schema import BLOCK_DOCUMENTS, surface_of, type_of
from .scope import Scope, joined, open_scope, reach_conditions, session_scope

_NUL_AND_MARKERS: Final = ("\0", "\ufdd0", "\ufdd1")


class Searcher:
    """Searches on one read-only connection, inside its caller's transaction."""

    def __init__(self, connection: Connection, bodies: Bodies) -> None:
        self._connection = connection
        self._bodies = bodies
        self._remembered = Remembered()

    def forget(self) -> None:
        """Drop what was looked up: another transaction may see other sessions."""
        self._remembered.clear()

    def _run(self, spec: SearchSpec, scope: Scope) -> _Run:
        self._remembered.trim()
        looking = Looking(
            self._connection, self._bodies, scope, spec.query, spec.tools, remembered=self._remembered
        )
        return _Run(spec, looking)

    def sessions(self, spec: SearchSpec, reach: Reach) -> SessionsFound:
        scope = open_scope(self._connection, reach, spec.session_clauses, spec.event_clauses, spec.only)
        run = self._run(spec, scope)
        want = spec.limit + 1
        found: list[tuple[Tier, Group]] = []
        if run.reaches("exact"):
            found += [("exact", group) for group in run.exact_sessions(want)]
        if run.relaxes and len(found) < want:
            taken = run.listed_sessions(found)
            relaxed = run.relaxed(self._reach_scope(spec, reach, scope), self._totals(reach), False, taken)
            if relaxed is not None:
                for tier, groups in relaxed.sessions(spec.match, want - len(found), spec.after):
                    run.tiers.append(tier)
                    found += [(tier, group) for group in groups]
        run.looking.load_texts(group.best.row for _, group in found[: spec.limit])
        hits = tuple(run.session_hit(tier, group, reach) for tier, group in found[: spec.limit])
        empty = not found and spec.after is None and spec.narrows
        excluded = empty and not self._anything(scope)
        return SessionsFound(hits=hits, more=len(found) > spec.limit, facts=run.facts(excluded))

    def events(self, spec: SearchSpec, reach: Reach, sid: int) -> EventsFound:
        scope = session_scope(self._connection, reach, sid, spec.event_clauses)
        run = self._run(spec, scope)
        want = spec.limit + 1
        found: list[tuple[Tier, Hit, Keys]] = []
        if run.reaches("exact"):
            found += [("exact", hit, keys) for hit, keys in run.exact_events(want)]
        if run.relaxes and len(found) < want:
            whole = session_scope(self._connection, reach, sid, ())
            relaxed = run.relaxed(whole, self._totals_inside(whole), True, run.exact_rows())
            if relaxed is not None:
                for tier, pairs in relaxed.events(spec.match, want - len(found), spec.after):
                    run.tiers.append(tier)
                    found += [(tier, hit, keys) for hit, keys in pairs]
        run.looking.load_texts(hit.row for _, hit, _ in found[: spec.limit])
        hits = tuple(run.event(tier, hit, keys) for tier, hit, keys in found[: spec.limit])
        empty = not found and spec.after is None and bool(spec.event_clauses)
        excluded = empty and not self._anything(scope)
        return EventsFound(hits=hits, more=len(found) > spec.limit, facts=run.facts(excluded))

    def _reach_scope(self, spec: SearchSpec, reach: Reach, scope: Scope) -> Scope:
        if not spec.narrows:
            return scope
        return open_scope(self._connection, reach, (), ())

    def _totals(self, reach: Reach) -> Totals:
        where = joined(reach_conditions(reach))
        known = self._remembered.counts.get(where)
        if known is None:
            row = self._connection.execute(
                f"SELECT sum((s.documents + {BLOCK_DOCUMENTS - 1}) / {BLOCK_DOCUMENTS}), sum(s.documents),"
                " sum(s.texts), sum(s.chars)"
                f" FROM session AS s JOIN workspace AS w ON w.ws = s.ws WHERE {where.text}",
                where.values,
            ).fetchone()
            assert row is not None, "an aggregate has one row"
            known = self._remembered.counts[where] = tuple(value or 0 for value in row)
        units, events, texts, chars = known
        return Totals(units=units, events=events, mean_chars=chars / texts if texts else 0.0)

    def _totals_inside(self, scope: Scope) -> Totals:
        rows = scope.rows_of("d.doc")
        row = self._connection.execute(
            f"SELECT count(*), coalesce(sum(d.chars), 0) FROM doc AS d WHERE d.search = 0{rows.text}",
            rows.values,
        ).fetchone()
        assert row is not None, "an aggregate has one row"
        return Totals(units=row[0], events=row[0], mean_chars=row[1] / row[0] if row[0] else 0.0)

    def _anything(self, scope: Scope) -> bool:
        """Whether any document passes the filters (SPEC 16.3)."""
        rows = scope.rows_of("d.doc")
        seen = "" if scope.with_searches else " AND d.search = 0"
        return (
            self._connection.execute(
                f"SELECT 1 FROM doc AS d WHERE {scope.events.text}{rows.text}{seen} LIMIT 1",
                (*scope.events.values, *rows.values),
            ).fetchone()
            is not None
        )


class _Run:
    """What one search keeps between its tiers."""

    def __init__(self, spec: SearchSpec, looking: Looking) -> None:
        self.spec = spec
        self.looking = looking
        self.phrase = tokens(spec.query)
        self.tiers: list[Tier] = []
        self.too_broad = False
        self.only_common = False
        self._exact: ExactSearch | None = None
        self._relaxed: RelaxedSearch | None = None

    def reaches(self, tier: Tier) -> bool:
        """Whether a page that goes on after ``spec.after`` still has hits of ``tier`` to give."""
        after = self.spec.after
        return after is None or TIERS.index(after.tier) <= TIERS.index(tier)

    @property
    def relaxes(self) -> bool:
        return self.spec.match != "exact" and bool(self.phrase)

    def _search(self) -> ExactSearch:
        if self._exact is None:
            literal = bool(literal_pieces(self.spec.query)) and bool(self.phrase)
            self._exact = ExactSearch(self.looking, self.phrase, self.spec.tools, literal)
            if not self.phrase:
                hits = scan(self.looking, self.spec.tools)
                self.too_broad = hits is None
                self._exact.use(hits or [])
        return self._exact

    def exact_sessions(self, want: int) -> list[Group]:
        groups = exact_sessions(self._search(), want, self.spec.after)
        self._note_exact(groups)
        return groups

    def exact_events(self, want: int) -> list[tuple[Hit, Keys]]:
        found = exact_events(self._search(), want, self.spec.after)
        self._note_exact(found)
        return found

    def _note_exact(self, found: Sequence[object]) -> None:
        if found:
            self.tiers.append("exact")

    def listed_sessions(self, found: list[tuple[Tier, Group]]) -> set[int]:
        """Sessions that the exact tier lists, on this page or an earlier one."""
        if self.spec.after is None:
            return {group.root for _, group in found}
        return {group.root for group in exact_sessions(self._search(), 1 << 40, None)}

    def exact_rows(self) -> set[int]:
        """Documents that the exact tier lists, on this page or an earlier one."""
        return {hit.row for hit in self._search().ranked(1 << 40)[0]}

    def relaxed(self, reach: Scope, totals: Totals, inside: bool, taken: set[int]) -> RelaxedSearch | None:
        """The tiers below, or None if the query has only common words (SPEC 16.1.4)."""
        evidence = Evidence(self.looking, query_words(self.spec.query), reach, totals, inside)
        if not evidence.informative:
            self.only_common = True
            return None
        self._relaxed = RelaxedSearch(self.looking, evidence, taken)
        return self._relaxed

    def facts(self, excluded: bool) -> Facts:
        return Facts(
            tiers=tuple(self.tiers),
            only_common_words=self.only_common,
            too_broad=self.too_broad,
            filters_excluded_everything=excluded,
        )

    def session_hit(self, tier: Tier, group: Group, reach: Reach) -> FoundInSession:
        """A group with everything a caller shows of it."""
        session = self.looking.session(group.root)
        members = self._members(tier, group)
        subs = [hit for sid, hit in members.items() if sid != group.root]
        subs.sort(key=self._member_key)
        return FoundInSession(
            session=session,
            live=session.sid in reach.live,
            tier=tier,
            best=self.event(tier, group.best, group.best.keys),
            position=Position(tier, group.keys),
            own=group.root in members,
            sub_agents=tuple([self._sub_agent(tier, hit, reach) for hit in subs]),
        )

    def _member_key(self, hit: Hit) -> tuple[Keys, Keys]:
        return hit.keys, self.looking.tie(hit.sid)

    def _members(self, tier: Tier, group: Group) -> dict[int, Hit]:
        """The best hit of every session in a group; a page may have read only the group's best."""
        if tier != "exact" or not self.spec.tools:
            return group.members
        family = self.looking.families.sub_agents(group.root)
        if not family:
            return group.members
        members: dict[int, Hit] = {}
        for hit in self._search().all_in([group.root, *family]):
            if self.looking.root(hit) == group.root:
                best = members.get(hit.sid)
                if best is None or (hit.keys, -hit.seq) < (best.keys, -best.seq):
                    members[hit.sid] = hit
        return members

    def _sub_agent(self, tier: Tier, hit: Hit, reach: Reach) -> FoundInSession:
        session = self.looking.session(hit.sid)
        return FoundInSession(
            session=session,
            live=session.sid in reach.live,
            tier=tier,
            best=self.event(tier, hit, hit.keys),
            position=Position(tier, (*hit.keys, *self.looking.tie(hit.sid))),
        )

    def event(self, tier: Tier, hit: Hit, keys: Keys) -> FoundEvent:
        text = self.looking.text(hit.row)
        shown = _shown(text)
        found = whole_snippet(shown, self.spec.snippet_chars)
        if found is None:
            found = snippet(shown, self._window(tier, text), self.spec.snippet_chars)
        return FoundEvent(
            sid=hit.sid,
            seq=hit.seq,
            type=self.looking.type_name(type_of(hit.kind)),
            time=hit.time,
            surface=surface_of(hit.kind),
            snippet=found,
            tier=tier,
            position=Position(tier, keys),
        )

    def _window(self, tier: Tier, text: str) -> int | None:
        """Where the snippet begins to be about the query (SPEC 6.7, 16.1.5)."""
        if tier == "exact":
            if self.phrase:
                return first_phrase(text, self.phrase)
            spans = find_literal(text, self.spec.query)
            return spans[0][0] if spans else None
        assert self._relaxed is not None, "a relaxed tier was searched"
        return best_window_start(text, self._relaxed.window.spans(text), self.spec.snippet_chars)


def _shown(text: str) -> str:
    """``text`` without what no snippet shows. Looking for it takes a hundredth of translating it all."""
    for char in _NUL_AND_MARKERS:
        if char in text:
            text = text.replace(char, "\ufffd")
    return text
