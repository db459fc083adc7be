"""Queries of 100,000 characters cost what they are long, not the square of it, nor that again for each text.

Work is counted, not timed: a pattern is made once, and no part of a query is folded twice.
"""

from __future__ import annotations

import pytest

from session_query.storage.index import query_words as module
from session_query.storage.index.literal import find_literal
from session_query.storage.index.query_words import query_words


def test_a_query_of_symbols_is_made_ready_once_for_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "!?" * 50_000
    assert find_literal("so" + query + "!", query) == [(2, 100_002)]
    monkeypatch.setattr("session_query.storage.index.literal.re", None)  # nothing is compiled from here on
    assert [find_literal(f"text {n} !?", query) for n in range(100)] == [[]] * 100


def test_a_long_piece_is_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fold, folded = module.lower_ascii, list[str]()

    def counting(text: str) -> str:
        folded.append(text)
        return fold(text)

    monkeypatch.setattr(module, "lower_ascii", counting)
    words = query_words("(openNursery" * 10_000)
    assert [word.main for word in words.words] == [("opennursery",)]
    assert words.order == (0,) * 10_000
    assert len(folded) == 1


def test_each_word_keeps_how_it_was_typed() -> None:
    assert [word.others[-1:] for word in query_words("openNursery nursery").words] == [
        (("open", "nursery"),),
        query_words("nursery").words[0].others[-1:],
    ]
