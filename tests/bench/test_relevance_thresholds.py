"""The right session comes first: the labelled set's scores stay where they were measured.

The thresholds stand just under the values of the latest file in bench/results/. Raise them with the
ranking; lowering one needs a reason in the commit.
"""

from __future__ import annotations

from functools import cache

import pytest

from session_query.bench.relevance.__main__ import cases_of
from session_query.bench.relevance.ablations import ABLATIONS, changed
from session_query.bench.relevance.engine import index_searcher
from session_query.bench.relevance.labelled_set import load
from session_query.bench.relevance.scoring import Outcome, Score, clean_share, grouped, run, score

HIT1_AND_HIT5 = {
    "sentence": (0.865, 0.985),
    "half": (0.965, 0.985),
    "paraphrase": (0.20, 0.62),
    "identifier": (0.985, 0.99),
    "error": (0.975, 0.975),
    "chinese": (0.985, 0.985),
    "japanese": (0.985, 0.985),
    "mixed": (0.985, 0.985),
}
ALL_HIT1, ALL_HIT5, ALL_RECALL10, ALL_MRR = 0.895, 0.965, 0.975, 0.925


@cache
def outcomes() -> list[Outcome]:
    labelled = load()
    with index_searcher(labelled.sessions) as searcher:
        return run(searcher, cases_of(labelled))


@cache
def scores() -> dict[str, Score]:
    return {kind: score(found) for kind, found in grouped(outcomes(), lambda o: o.case.group).items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HIT1_AND_HIT5)
def test_scores_of_each_kind(kind: str) -> None:
    found = scores()[kind]
    hit1, hit5 = HIT1_AND_HIT5[kind]
    assert found.hit1 >= hit1
    assert found.hit5 >= hit5


@pytest.mark.slow
def test_scores_of_all_kinds_together() -> None:
    found = score(outcomes())
    assert found.hit1 >= ALL_HIT1
    assert found.hit5 >= ALL_HIT5
    assert found.recall10 >= ALL_RECALL10
    assert found.mrr >= ALL_MRR


@pytest.mark.slow
def test_negatives_get_nothing_in_exact_and_words() -> None:
    assert clean_share(outcomes()) == 1.0


@pytest.mark.slow
def test_no_session_is_listed_twice() -> None:
    for outcome in outcomes():
        ids = [id_ for hit in outcome.first for id_ in (hit.id, *hit.under)]
        assert len(ids) == len(set(ids)), outcome.case.text


def test_every_ablation_takes_away_something_that_exists() -> None:
    for changes in ABLATIONS.values():
        for change in changes:
            with changed(change):
                pass
    with pytest.raises(AttributeError), changed(("relevance", "NO_SUCH_IDEA", 0)):
        pass
