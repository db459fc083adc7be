"""The tiers below ``exact``: ``words``, ``session`` and ``some`` (SPEC 16.1), ordered by relevance.

Two stages. All candidates get a *rough* score from the weights of the words they hold, without a text
being read. The best ``FINE_SESSIONS`` sessions (``FINE_EVENTS`` events, inside one session) are then
scored from their texts and come first; the others follow in the order of their rough scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from heapq import nsmallest
from itertools import islice, pairwise
from operator import or_
from typing import Final

import attrs

from ...protocol.cursor import Position
from ...protocol.records import Match, Tier
from .evidence import Evidence
from .looking import Looking
from .ranked import Group, Hit, Keys, passes
from .relevance import BEST_EVENTS, SESSION_SHARE, event_score, rounded, session_score, speaker_share
from .schema import BLOCK_BITS, prompt_of
from .text_match import TextMatcher

FINE_SESSIONS: Final = 60
ROUGH_SESSIONS: Final = 400
"""Sessions that get a rough score and are asked for words beyond the budget: those that hold most."""
FINE_EVENTS: Final = 30
EVENTS_EACH: Final = 3
"""Events of one session whose texts are read: those with the most weight, the newest among equals."""
SOME_AUTO_MAX: Final = 20
NEGLIGIBLE: Final = 0.2
"""A best ``some`` hit that holds less than this share of the query's weight is no answer (SPEC 16.1.4). Words
that nothing in reach holds do not count: they say that the query was put in other words, not that this is no
answer."""

TIERS_OF: Final[dict[Match, tuple[Tier, ...]]] = {
    "exact": (),
    "words": ("words",),
    "some": ("words", "session", "some"),
    "auto": ("words", "session", "some"),
}


@attrs.define(eq=False)
class _Candidate:
    """A session: rows of its documents that hold a word, and what it holds altogether."""

    sid: int
    rows: list[int]
    mask: int = 0
    held: float = 0.0
    rough: float = 0.0


def _promise(candidate: _Candidate) -> tuple[float, int, int]:
    return -candidate.held, -len(candidate.rows), -candidate.sid


class RelaxedSearch:
    """The words of one query over one scope."""

    def __init__(self, looking: Looking, evidence: Evidence, taken: set[int]) -> None:
        """Args: taken: sessions (or, inside one session, rows) that a better tier has listed."""
        self._looking = looking
        self._evidence = evidence
        self._taken = taken
        self._copies: set[int] = set()
        self._informative = frozenset(evidence.informative)
        self._full = evidence.mask_of(evidence.informative)
        order = [n for n in evidence.words.order if n in self._informative]
        pairs = [(a, b) for a, b in pairwise(order) if a != b]
        self.matcher = TextMatcher(evidence.words.words, pairs)
        self.window = TextMatcher([evidence.words.words[n] for n in evidence.informative], ())

    # -- many sessions --

    def sessions(self, match: Match, want: int, after: Position | None) -> Iterator[tuple[Tier, list[Group]]]:
        """Each tier with its sessions after ``after``, best first, until ``want`` are given."""
        candidates = self._candidates()
        full = self._full
        with_all = self._sessions_with_all()
        tiers: dict[Tier, list[_Candidate]] = {"words": [], "session": [], "some": []}
        for candidate in candidates:
            if candidate.sid in with_all:
                tiers["words"].append(candidate)
            elif candidate.mask == full:
                tiers["session"].append(candidate)
            else:
                tiers["some"].append(candidate)
        for tier in TIERS_OF[match]:
            groups = self._groups(tier, tiers[tier], with_all)
            if tier == "some" and match == "auto":
                groups = iter(()) if self._negligible(tiers[tier]) else islice(groups, SOME_AUTO_MAX)
            found = list(islice((group for group in groups if passes(after, tier, group.keys)), want))
            if found:
                yield tier, found
            want -= len(found)
            if want <= 0:
                return

    def _candidates(self) -> list[_Candidate]:
        """The sessions that hold a word, with their rough scores."""
        evidence, looking = self._evidence, self._looking
        masks = evidence.masks
        blocks: dict[int, list[int]] = {}
        for row in masks:
            block = row >> BLOCK_BITS
            if block in blocks:
                blocks[block].append(row)
            else:
                blocks[block] = [row]
        looking.load_sids(blocks)
        sids = looking.remembered.sids
        found: dict[int, _Candidate] = {}
        for block, rows in blocks.items():
            sid = sids[block]
            if sid in found:
                found[sid].rows += rows
            else:
                found[sid] = _Candidate(sid, rows)
        if looking.tools:
            self._drop_copies(found)
        mask_of = masks.__getitem__
        weight_of = evidence.weight_of
        for candidate in found.values():
            candidate.mask = reduce(or_, map(mask_of, candidate.rows))
            candidate.held = weight_of(candidate.mask)
            candidate.rough = SESSION_SHARE * candidate.held
        best = (
            found.values()
            if len(found) <= ROUGH_SESSIONS
            else nsmallest(ROUGH_SESSIONS, found.values(), _promise)
        )
        self._rate(list(best))
        return list(found.values())

    def _rate(self, candidates: list[_Candidate]) -> None:
        """The rough scores of some candidates, words beyond the budget included."""
        evidence = self._evidence
        by_block: dict[int, _Candidate] = {}
        for candidate in candidates:
            for row in candidate.rows:
                by_block[row >> BLOCK_BITS] = candidate
        for number in evidence.over_budget:
            for block in evidence.blocks_holding(number, by_block):
                by_block[block].mask |= 1 << number
        weight_of, masks = evidence.weight_of, evidence.masks
        for candidate in candidates:
            best = sorted([weight_of(masks[row]) for row in candidate.rows], reverse=True)
            candidate.held = weight_of(candidate.mask)
            candidate.rough = rounded(session_score(best[: len(BEST_EVENTS)], candidate.held))

    def _drop_copies(self, found: dict[int, _Candidate]) -> None:
        """Leave out rows that are copies of events shown elsewhere, and sessions without any other."""
        looking = self._looking
        for sid in looking.forks:
            candidate = found.get(sid)
            if candidate is None or not looking.families.origins(sid):
                continue
            looking.load_docs(candidate.rows)
            copies = {row for row in candidate.rows if looking.root(self._hit(row, ())) is None}
            self._copies |= copies
            candidate.rows = [row for row in candidate.rows if row not in copies]
            if not candidate.rows:
                del found[sid]

    def _sessions_with_all(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        rows = [row for row in self._evidence.rows_with_all() if row not in self._copies]
        self._looking.load_sids({row >> BLOCK_BITS for row in rows})
        for row in rows:
            found.setdefault(self._looking.sid_of(row), []).append(row)
        return found

    def _groups(
        self, tier: Tier, candidates: list[_Candidate], with_all: dict[int, list[int]]
    ) -> Iterator[Group]:
        """The sessions of one tier in order, sub-agents under their parents.

        Those beyond the first ``FINE_SESSIONS`` are looked at only when somebody asks for them.
        """
        looking = self._looking
        candidates.sort(key=lambda candidate: (-candidate.rough, candidate.sid))
        scored: list[tuple[Keys, Keys, Hit, int]] = []
        best = [
            (candidate, self._best(with_all[candidate.sid] if tier == "words" else candidate.rows))
            for candidate in candidates[:FINE_SESSIONS]
        ]
        self._load(row for _, rows in best for row in rows)
        looking.families.load(candidate.sid for candidate, _ in best)
        for candidate, rows in best:
            keys, hit = self._fine(candidate, rows)
            root = looking.families.root(hit.sid) if looking.tools else hit.sid
            scored.append(((*keys, *looking.tie(root)), looking.tie(hit.sid), hit, root))
        scored.sort(key=lambda item: item[:2])
        groups: dict[int, Group] = {}
        for keys, _, hit, root in scored:
            if root not in self._taken:
                groups.setdefault(root, Group(root, keys, hit)).members[hit.sid] = hit
        self._taken.update(groups)
        yield from groups.values()
        for candidate in candidates[FINE_SESSIONS:]:
            rows = with_all[candidate.sid] if tier == "words" else candidate.rows
            hit = self._rough(candidate, rows)
            root = looking.families.root(hit.sid) if looking.tools else hit.sid
            if root not in self._taken:
                self._taken.add(root)
                yield Group(root, hit.keys, hit, {hit.sid: hit})

    def _best(self, rows: Sequence[int]) -> Sequence[int]:
        """The most promising events of a session."""
        if len(rows) <= EVENTS_EACH:
            return rows
        weight_of, masks, full = self._evidence.weight_of, self._evidence.masks, self._full
        return nsmallest(EVENTS_EACH, rows, key=lambda row: (-weight_of(masks.get(row, full)), -row))

    def _load(self, rows: Iterable[int]) -> None:
        """Read what scoring some events takes, in two statements."""
        wanted = list(rows)
        self._looking.load_docs(wanted)
        self._looking.load_texts(wanted)

    def _fine(self, candidate: _Candidate, rows: Iterable[int]) -> tuple[Keys, Hit]:
        """Score a session from the texts of its most promising events."""
        masks = self._evidence.masks
        scored = sorted(self._scored(row, masks.get(row, self._full)) for row in rows)
        score = session_score([-negative for negative, _, _, _ in scored], candidate.held)
        _, time, _, row = scored[0]
        return (0, -rounded(score), time), self._hit(row, (0, -rounded(score), time))

    def _scored(self, row: int, mask: int) -> tuple[float, int, int, int]:
        """(negative score, negative time, negative seq, row) of one event."""
        doc = self._looking.doc(row)
        evidence = self._evidence
        text = self._looking.text(row)
        match = self.matcher.match(text)
        counts = {n: c for n, c in match.counts.items() if n in self._informative}
        for number in evidence.informative:
            if mask >> number & 1:
                counts.setdefault(number, 1)
        ratio = doc.chars / evidence.totals.mean_chars if evidence.totals.mean_chars else 1.0
        score = event_score(
            evidence.weights, counts, match.pairs, ratio, speaker_share(prompt_of(doc.kind) == 1, text)
        )
        return -rounded(score), -doc.time, -doc.seq, row

    def _rough(self, candidate: _Candidate, rows: Iterable[int]) -> Hit:
        masks = self._evidence.masks
        row = max(rows, key=lambda row: (self._evidence.weight_of(masks.get(row, 0)), row))
        return self._hit(row, (1, -candidate.rough, candidate.sid))

    def _negligible(self, candidates: list[_Candidate]) -> bool:
        """Whether nothing here holds a share of the query worth showing."""
        full = self._evidence.weight_held
        return max((candidate.held for candidate in candidates), default=0.0) < NEGLIGIBLE * full

    def _hit(self, row: int, keys: Keys) -> Hit:
        doc = self._looking.doc(row)
        return Hit(row, self._looking.sid_of(row), doc.seq, doc.time, doc.kind, keys)

    # -- inside one session --

    def events(
        self, match: Match, want: int, after: Position | None
    ) -> Iterator[tuple[Tier, list[tuple[Hit, Keys]]]]:
        """Each tier with its events after ``after``, best first, until ``want`` are given."""
        evidence = self._evidence
        with_all = set(evidence.rows_with_all())
        masks = evidence.masks
        for tier in TIERS_OF[match]:
            if tier == "session":
                continue
            rows = with_all if tier == "words" else masks.keys() - with_all
            rows = {row for row in rows if row not in self._taken}
            hits = self._ordered(rows)
            if tier == "some" and match == "auto":
                full = evidence.weight_held
                best = max((evidence.weight_of(masks[row]) for row in rows), default=0.0)
                hits = islice(hits, SOME_AUTO_MAX) if best >= NEGLIGIBLE * full else iter(())
            found = [
                (hit, hit.keys) for hit in islice((h for h in hits if passes(after, tier, h.keys)), want)
            ]
            if found:
                yield tier, found
            want -= len(found)
            if want <= 0:
                return

    def _ordered(self, rows: Iterable[int]) -> Iterator[Hit]:
        evidence = self._evidence
        full = self._full
        masks = evidence.masks
        rough = sorted((-rounded(evidence.weight_of(masks.get(row, full))), -row) for row in rows)
        self._load(-row for _, row in rough[:FINE_EVENTS])
        fine = sorted(self._scored(-row, masks.get(-row, full)) for _, row in rough[:FINE_EVENTS])
        for score, time, seq, row in fine:
            yield self._hit(row, (0, score, time, seq))
        for weight, row in rough[FINE_EVENTS:]:
            yield self._hit(-row, (1, weight, row, 0))
