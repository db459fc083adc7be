"""The scorer's arithmetic, its command line, and question sets of other people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from session_query.bench.relevance.__main__ import main
from session_query.bench.relevance.composing import LabelledSession
from session_query.bench.relevance.external import ExternalSetError, by_sessions, read_external
from session_query.bench.relevance.report import Run, misses
from session_query.bench.relevance.scoring import Case, clean_share, judge, score
from session_query.bench.relevance.searching import Found, Match, Searcher


def case(*answers: str) -> Case:
    return Case(text="q", group="g", answers=tuple(frozenset((answer,)) for answer in answers))


def hits(ids: str, tier: str = "words") -> list[Found]:
    return [Found(name, tier) for name in ids]  # type: ignore[arg-type]


def test_scores_are_means_over_the_cases_that_have_an_answer() -> None:
    outcomes = [
        judge(case("a"), hits("abc")),
        judge(case("c"), hits("abc")),
        judge(case("x"), hits("abc")),
        judge(case("a", "x"), hits("zyxwva")),
        judge(case(), hits("abc")),
    ]
    found = score(outcomes)
    assert found.cases == 4
    assert found.hit1 == 1 / 4
    assert found.hit5 == 3 / 4
    assert found.recall10 == (1 + 1 + 0 + 1) / 4
    assert found.mrr == pytest.approx((1 + 1 / 3 + 0 + 1 / 3) / 4)
    assert found.found_in == (("words", 3),)


def test_a_session_listed_under_a_hit_has_the_hits_place() -> None:
    outcome = judge(case("sub"), [Found("a"), Found("b", "some", ("sub",))])
    assert (outcome.rank, outcome.tier) == (2, "some")


def test_a_target_past_the_tenth_place_is_found_but_not_recalled() -> None:
    outcome = judge(case("k"), hits("abcdefghijk"))
    assert (outcome.rank, outcome.recall) == (11, 0.0)


def test_negatives_are_clean_without_hits_in_the_upper_tiers() -> None:
    clean = judge(case(), hits("a", "some"))
    dirty = judge(case(), hits("a", "exact"))
    assert clean_share([clean, dirty]) == 0.5
    assert clean_share([judge(case("a"), hits("a"))]) is None


def test_misses_say_what_stood_there_instead() -> None:
    run = Run(searcher="s", match="auto", seconds=0.0, outcomes=[judge(case("b"), hits("ab"))])
    assert list(misses(run, {"b": "wanted"})) == [
        "[g] 'q': wanted wanted, at 2; first: a (words), wanted (words)"
    ]


ENTRIES = [
    {
        "question": "Which colour did I paint the boat?",
        "question_type": "single",
        "sessions": [
            {"id": "s1", "turns": [{"role": "user", "content": "I painted the boat green."}]},
            {"id": "s2", "turns": [{"role": "assistant", "content": "Hello."}, "The boat has a hole."]},
        ],
        "answer_session_ids": ["s1"],
    },
    {
        "question": "What did the doctor say about salt?",
        "haystack_session_ids": ["h1", "h2"],
        "haystack_sessions": [
            [{"speaker": "Ada", "text": "My doctor said less salt."}, {"speaker": "Bo", "text": "Poor you."}],
            [{"role": "user", "content": "Nothing much."}],
        ],
        "answer_session_ids": ["h1"],
    },
]


def external_file(folder: Path) -> Path:
    path = folder / "set.json"
    path.write_text(json.dumps(ENTRIES), encoding="utf-8")
    return path


def test_external_sets_become_sessions_and_cases(tmp_path: Path) -> None:
    entries = read_external(external_file(tmp_path))
    assert [entry.case.group for entry in entries] == ["single", "question"]
    assert [[s.header.id for s in entry.sessions] for entry in entries] == [["s1", "s2"], ["h1", "h2"]]
    assert len(list(by_sessions([entries[0], entries[0], entries[1]]))) == 2


def test_an_external_set_is_scored_like_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--external", str(external_file(tmp_path)), "--match", "some", "--json"]) == 0
    plain, index = json.loads(capsys.readouterr().out)
    assert plain["searcher"] == "plain"
    assert plain["scores"]["all"]["recall10"] == 1.0
    assert index["scores"]["all"]["cases"] == 2
    assert index["scores"]["all"]["recall10"] == 1.0


@pytest.mark.parametrize(
    "content", ["{}", '[{"question": 1}]', '[{"question": "q"}]', '[{"question": "q", "sessions": [1]}]']
)
def test_another_shape_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ExternalSetError):
        read_external(path)


class _Fixed:
    def search(self, query: str, *, match: Match, limit: int, workspace: str | None) -> list[Found]:
        return []


@contextmanager
def finds_nothing(sessions: Sequence[LabelledSession]) -> Iterator[Searcher]:
    """An ablation that lost everything."""
    yield _Fixed()


@pytest.mark.slow
def test_the_command_line_scores_any_searcher(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session_query.bench.relevance.__main__._factory", lambda name: finds_nothing)
    assert main(["--searcher", "mine:nothing", "--kind", "error", "--match", "auto", "--show-misses"]) == 0
    printed = capsys.readouterr().out
    assert "### mine:nothing, match auto" in printed
    assert "| all | 47 | 0.000 |" in printed
    assert "wanted" in printed
