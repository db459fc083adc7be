"""What is made of a text's words is the same whether they were split once for all or each time."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.tokens import parts, prepare, split_bytes
from session_query.storage.index.repeats import repeated, repeated_of
from session_query.storage.index.spans import SpanRow

_words = st.sampled_from(
    [
        "open",
        "Open",
        "openNursery",
        "nursery",
        "HTTPReply",
        "reply",
        "http",
        "é",
        "écoleHaute",
        "日志",
        "a_bC",
        "\u0085",
    ]
)
_texts = st.lists(_words | st.text(max_size=6), max_size=30).map(" ".join)
FREQUENT = frozenset((b"open", b"nursery", b"reply", "日志".encode(), b"haute"))


@given(st.lists(_texts, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_words_split_once_serve_for_all(texts: list[str]) -> None:
    apart, shared = (SpanRow(1, 1, False, FREQUENT) for _ in range(2))
    for text in texts:
        prepared = prepare(text)
        counts = Counter(split_bytes(prepared))
        pieces = " ".join(parts(prepared))
        assert repeated_of(counts) == repeated(prepared)
        apart.add(prepared, pieces)
        shared.add_split(counts, pieces)
        assert shared.tokens == apart.tokens
