"""Scores of one searcher over labelled queries: hit@1, hit@5, recall@10, MRR, by kind and by match."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from ...protocol.records import Tier
from .searching import Found, Match, Searcher

LIMIT: Final = 20
"""Sessions asked for; what comes later counts as not found."""
RECALL_AT: Final = 10


@attrs.frozen(kw_only=True)
class Case:
    """One query to be scored. ``answers``: for each target the ids that count as it; none: a negative."""

    text: str
    group: str
    answers: tuple[frozenset[str], ...]
    workspace: str | None = None


@attrs.frozen(kw_only=True)
class Outcome:
    """What a searcher made of one case. ``rank`` is the first answer's place from 1, None if not found.

    ``tier``: that hit's tier, or the first hit's if nothing was found. ``recall``: share of the targets
    among the first ten.
    """

    case: Case
    rank: int | None
    recall: float
    tier: Tier | None
    first: tuple[Found, ...]

    @property
    def clean(self) -> bool:
        """For a negative: nothing in ``exact`` and ``words`` (SPEC 16.1)."""
        return not any(found.tier in ("exact", "words") for found in self.first)


@attrs.frozen(kw_only=True)
class Score:
    """Means over the cases of a group, negatives left out. ``found_in``: how often which tier answered."""

    cases: int
    hit1: float
    hit5: float
    recall10: float
    mrr: float
    found_in: tuple[tuple[str, int], ...] = ()

    @property
    def spread(self) -> float:
        """Half the width of the 95 % interval of ``hit1``, had other such cases been written."""
        return 1.96 * math.sqrt(self.hit1 * (1 - self.hit1) / self.cases) if self.cases else 0.0


def run(searcher: Searcher, cases: Iterable[Case], match: Match = "auto") -> list[Outcome]:
    """Ask every case once."""
    return [
        judge(case, searcher.search(case.text, match=match, limit=LIMIT, workspace=case.workspace))
        for case in cases
    ]


def judge(case: Case, found: Sequence[Found]) -> Outcome:
    """Compare one answer with what it should hold. A session listed under a hit has the hit's place."""
    places = [frozenset((hit.id, *hit.under)) for hit in found]
    ranks = [_rank(places, ids) for ids in case.answers]
    held = [rank for rank in ranks if rank is not None]
    best = min(held, default=None)
    tier = found[0].tier if found else None
    return Outcome(
        case=case,
        rank=best,
        recall=sum(rank <= RECALL_AT for rank in held) / len(ranks) if ranks else 0.0,
        tier=tier if best is None else found[best - 1].tier,
        first=tuple(found),
    )


def _rank(places: Sequence[frozenset[str]], ids: frozenset[str]) -> int | None:
    return next((rank for rank, place in enumerate(places, 1) if place & ids), None)


def score(outcomes: Iterable[Outcome]) -> Score:
    """The means of all cases that have an answer."""
    judged = [outcome for outcome in outcomes if outcome.case.answers]
    if not judged:
        return Score(cases=0, hit1=0.0, hit5=0.0, recall10=0.0, mrr=0.0)
    tiers = Counter(outcome.tier or "none" for outcome in judged if outcome.rank is not None)
    return Score(
        cases=len(judged),
        hit1=statistics.fmean(_within(outcome, 1) for outcome in judged),
        hit5=statistics.fmean(_within(outcome, 5) for outcome in judged),
        recall10=statistics.fmean(outcome.recall for outcome in judged),
        mrr=statistics.fmean(1 / outcome.rank if outcome.rank else 0.0 for outcome in judged),
        found_in=tuple(sorted(tiers.items())),
    )


def _within(outcome: Outcome, places: int) -> bool:
    return outcome.rank is not None and outcome.rank <= places


def grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    """Outcomes by what ``key`` says of them, in order of first occurrence."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(key(outcome), []).append(outcome)
    return found


def clean_share(outcomes: Iterable[Outcome]) -> float | None:
    """The share of negatives that got nothing in ``exact`` and ``words``; None without negatives."""
    negatives = [outcome.clean for outcome in outcomes if not outcome.case.answers]
    return statistics.fmean(negatives) if negatives else None
