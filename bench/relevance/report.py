"""One scored run as people and programs read it: tables, misses, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from ...protocol.json_value import JSON
from .scoring import Outcome, Score, clean_share, grouped, score
from .searching import Match

ALL: Final = "all"
HEADINGS: Final = ("queries", "hit@1", "±", "hit@5", "recall@10", "MRR")


@attrs.frozen(kw_only=True)
class Run:
    """What one searcher made of the cases with one ``match``. ``seconds``: CPU of all searches together."""

    searcher: str
    match: Match
    outcomes: Sequence[Outcome]
    seconds: float

    @property
    def scores(self) -> dict[str, Score]:
        """By group, then of all together."""
        groups = grouped((o for o in self.outcomes if o.case.answers), lambda o: o.case.group)
        return {name: score(outcomes) for name, outcomes in groups.items()} | {ALL: score(self.outcomes)}

    @property
    def clean(self) -> float | None:
        return clean_share(self.outcomes)


def as_text(runs: Iterable[Run]) -> str:
    """A Markdown table for each run."""
    return "\n\n".join("\n".join(_table(run)) for run in runs)


def _table(run: Run) -> Iterator[str]:
    yield f"### {run.searcher}, match {run.match}"
    yield ""
    yield "| kind | " + " | ".join(HEADINGS) + " | answered in |"
    yield "| --- |" + " ---: |" * len(HEADINGS) + " --- |"
    for name, found in run.scores.items():
        numbers = (found.hit1, found.spread, found.hit5, found.recall10, found.mrr)
        tiers = ", ".join(f"{tier} {count}" for tier, count in found.found_in if tier != "none")
        yield f"| {name} | {found.cases} | " + " | ".join(f"{n:.3f}" for n in numbers) + f" | {tiers} |"
    yield ""
    asked = max(1, len(run.outcomes))
    yield f"{run.seconds * 1000 / asked:.1f} ms CPU a query."
    if run.clean is not None and run.searcher != "plain":
        yield f"Negatives without a hit in exact and words: {run.clean:.3f}."


LINE_KINDS: Final = ("sentence", "half", "paraphrase")
"""The kinds that ranking decides; the others say whether tokens work."""


def as_lines(runs: Iterable[Run]) -> str:
    """One line a run: the kinds that ranking decides, and all together."""
    groups = (*LINE_KINDS, ALL)
    lines = [
        "| searcher | " + " | ".join(f"{name} hit@1 | hit@5" for name in groups) + " | MRR |",
        "| --- |" + " ---: |" * (2 * len(groups) + 1),
    ]
    for run in runs:
        scores = run.scores
        found = [scores[name] for name in groups if name in scores]
        numbers = " | ".join(f"{one.hit1:.3f} | {one.hit5:.3f}" for one in found)
        lines.append(f"| {run.searcher} | {numbers} | {scores[ALL].mrr:.3f} |")
    return "\n".join(lines)


def as_json(runs: Iterable[Run]) -> JSON:
    """The same numbers as data."""
    return [
        {
            "searcher": run.searcher,
            "match": run.match,
            "cpu_seconds": round(run.seconds, 3),
            "negatives_clean": run.clean,
            "scores": {name: _score_json(found) for name, found in run.scores.items()},
        }
        for run in runs
    ]


def _score_json(found: Score) -> JSON:
    return {
        "cases": found.cases,
        "hit1": round(found.hit1, 4),
        "hit1_spread": round(found.spread, 4),
        "hit5": round(found.hit5, 4),
        "recall10": round(found.recall10, 4),
        "mrr": round(found.mrr, 4),
        "found_in": dict[str, JSON](found.found_in),
    }


def misses(run: Run, names: Mapping[str, str]) -> Iterator[str]:
    """Every case whose answer is not first, and every negative that is not clean, with what came first."""

    def name(found: str) -> str:
        return names.get(found, found)

    for outcome in run.outcomes:
        case = outcome.case
        if outcome.rank == 1 if case.answers else outcome.clean:
            continue
        first = ", ".join(f"{name(hit.id)} ({hit.tier or 'plain'})" for hit in outcome.first[:3])
        wanted = " or ".join(sorted({name(one) for ids in case.answers for one in ids})) or "nothing"
        place = outcome.rank or "-"
        yield f"[{case.group}] {case.text!r}: wanted {wanted}, at {place}; first: {first or 'nothing'}"
