"""SPEC 6.7 and 16.1.5: snippets, against a slow model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.snippet_model import slow_snippet
from session_query.protocol.snippet import best_window_start, snippet, whole_snippet

TEXTS = st.text(alphabet=st.sampled_from([*"abc", " ", "\n", "\u3000", "\x1c", "é", "😀"]), max_size=120)


@pytest.mark.parametrize(
    ("marked", "limit", "shown"),
    [
        ("one two three «four» five six seven", 12, "…ree four f…"),
        ("«alpha» beta gamma delta", 9, "alpha be…"),
        ("zero one two three «last»", 10, "…hree last"),
        ("ab«c»", 2, "…c"),
        ("«ab»cd", 2, "a…"),
        ("a«b»cd", 2, "…b"),
        ("0123456789«K»0123456789", 6, "…89K0…"),
        ("😀😁😂🤣«fox»😀😁😂", 6, "…😂🤣fo…"),
    ],
)
def test_6_7_worked_examples(marked: str, limit: int, shown: str) -> None:
    start = marked.index("«")
    assert snippet(marked.replace("«", "").replace("»", ""), start, limit) == shown


@settings(max_examples=200)
@given(TEXTS, st.integers(1, 40), st.data())
def test_6_7_agrees_with_the_model(text: str, limit: int, data: st.DataObject) -> None:
    starts = [index for index, char in enumerate(text) if slow_snippet(char, 0, 1)]
    start = data.draw(st.sampled_from([None, *starts]))
    shown = snippet(text, start, limit)
    assert shown == slow_snippet(text, start, limit)
    assert len(shown) <= limit


@settings(max_examples=200)
@given(TEXTS, st.integers(1, 60), st.data())
def test_what_fits_whole_is_the_snippet_wherever_its_span_is(
    text: str, limit: int, data: st.DataObject
) -> None:
    whole = whole_snippet(text, limit)
    collapsed = slow_snippet(text, None, 1_000)
    if len(text) <= 2 * limit:
        assert whole == (collapsed if len(collapsed) <= limit else None)
    if whole is not None:
        starts = [index for index, char in enumerate(text) if slow_snippet(char, 0, 1)]
        start = data.draw(st.sampled_from([None, *starts]))
        assert whole == slow_snippet(text, start, limit) == snippet(text, start, limit)


@given(TEXTS, st.integers(0, 130), st.integers(1, 40))
def test_any_start_is_survived(text: str, start: int, limit: int) -> None:
    assert len(snippet(text, start, limit)) <= limit


@pytest.mark.parametrize("start", [0, 500_000, 999_999])
def test_a_long_text_gives_what_the_model_gives(start: int) -> None:
    text = "ab  cde\n" * 125_000
    start -= start % 8
    assert snippet(text, start, 240) == slow_snippet(text, start, 240)


def test_runs_longer_than_any_slice_collapse() -> None:
    text = "head" + " " * 50_000 + "needle" + "\n" * 50_000 + "tail"
    for limit in (1, 8, 12, 240):
        assert snippet(text, text.index("needle"), limit) == slow_snippet(text, text.index("needle"), limit)


def words(text: str, *wanted: str) -> list[tuple[int, int, int]]:
    spans = []
    for word, needle in enumerate(wanted):
        at = text.find(needle)
        while at >= 0:
            spans.append((at, at + len(needle), word))
            at = text.find(needle, at + 1)
    return sorted(spans)


def test_16_1_5_the_window_with_most_distinct_words_wins() -> None:
    text = "red red red red " + "filler " * 40 + "red green blue " + "filler " * 40 + "green"
    start = best_window_start(text, words(text, "red", "green", "blue"), 30)
    assert start == text.index("red green blue")
    assert "red green blue" in snippet(text, start, 30)


def test_16_1_5_ties_go_to_the_earliest() -> None:
    text = "one " + "x " * 100 + "two"
    assert best_window_start(text, words(text, "one", "two"), 20) == 0
    assert best_window_start(text, [], 20) is None


def test_16_1_5_distance_is_counted_after_whitespace_is_collapsed() -> None:
    text = "lone " + "x" * 200 + " left" + " " * 60 + "right"
    start = best_window_start(text, words(text, "lone", "left", "right"), 24)
    assert snippet(text, start, 24).endswith("left right")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), min_size=1, max_size=30))
def test_16_1_5_no_other_span_would_show_more_words(order: list[tuple[int, int]]) -> None:
    names = ["alpha", "bravo", "gamma", "delta"]
    middle = "".join(f"{names[word]}\n \n{'-' * gap}  " for word, gap in order)
    text = "=" * 80 + " " + middle + "=" * 80  # away from both ends, where windows shift
    spans = words(text, *names)

    def shown(at: int | None) -> int:
        return sum(name in snippet(text, at, 60) for name in names)

    assert shown(best_window_start(text, spans, 60)) == max(shown(span[0]) for span in spans)
