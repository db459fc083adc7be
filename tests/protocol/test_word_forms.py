"""Other forms of English words, by rule (SPEC 16.1.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.word_forms import word_forms


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("nursery", "nurseries"),
        ("commit", "committed"),
        ("commits", "commit"),
        ("stopped", "stop"),
        ("running", "run"),
        ("cancelled", "cancel"),
        ("move", "moving"),
        ("moved", "move"),
        ("index", "indexes"),
        ("boxes", "box"),
        ("tries", "tried"),
        ("try", "tries"),
        ("fix", "fixed"),
        ("used", "use"),
        ("need", "needs"),
        ("bug", "bugs"),
    ],
)
def test_plural_and_tense_lead_to_each_other(word: str, other: str) -> None:
    assert other in word_forms(word)
    assert word in word_forms(other)


@pytest.mark.parametrize("word", ["", "a", "is", "x1", "café", "東", "err_conn", "UPPER", "a" * 40])
def test_only_plain_words_have_forms(word: str) -> None:
    assert word_forms(word) == []


@given(st.text("aeiousdgnyt", min_size=3, max_size=12))
def test_forms_are_few_distinct_and_not_the_word_itself(word: str) -> None:
    found = word_forms(word)
    assert word not in found
    assert found == sorted(set(found))
    assert len(found) < 30
    assert all(form.isascii() and form.isalpha() for form in found)


def test_what_is_no_ending_is_not_cut_off() -> None:
    assert "str" not in word_forms("string")
    assert "clas" not in word_forms("class")
    assert "statu" not in word_forms("status")
