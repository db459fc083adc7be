"""A query taken apart into the words that ``words``, ``session`` and ``some`` look for (SPEC 16.1, 16.2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final, TypeAlias

import attrs

from ...protocol.token_chars import is_unspaced
from ...protocol.tokens import case_parts, lower_ascii, prepare, tokens
from ...protocol.whitespace import split
from ...protocol.word_forms import word_forms

Alternative: TypeAlias = tuple[str, ...]
"""Consecutive tokens that stand for a word: mostly one; two for a pair of characters or ``open nursery``."""

WORDS_MAX: Final = 64
"""Words looked at in a longer query: the first ones. Nobody types more; hostile queries do."""
RUN_CHARS: Final = 12
"""A longer run of characters is looked for by every second pair: its pairs say the same thing twice."""
PHRASE_TOKENS_MAX: Final = 64
"""Tokens of a phrase given to the engine; whether the rest follows is then checked in the text."""


@attrs.frozen
class Word:
    """One distinct word of a query. ``main`` is how it was typed; ``others`` may stand for it."""

    main: Alternative
    others: tuple[Alternative, ...] = ()

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        return (self.main, *self.others)


@attrs.frozen
class QueryWords:
    """``words``: distinct, in order of first occurrence. ``order``: the whole query as indices into them."""

    words: tuple[Word, ...]
    order: tuple[int, ...]


def query_words(query: str) -> QueryWords:
    """Take a query apart.

    A run of characters of a script without spaces is looked for by its overlapping pairs: single
    characters occur everywhere. Identifiers with case borders also match as separate words, other words
    in their other forms.
    """
    words: dict[Alternative, Word] = {}
    order: list[int] = []
    place: dict[Alternative, int] = {}
    for piece in split(query):
        for main, typed in _units(piece):
            if main not in words:
                if len(words) == WORDS_MAX:
                    return QueryWords(tuple(words.values()), tuple(order))
                place[main] = len(words)
                words[main] = Word(main, _others(main, typed))
            order.append(place[main])
    return QueryWords(tuple(words.values()), tuple(order))


def _units(piece: str) -> Iterator[tuple[Alternative, str]]:
    """The words of one space-free piece, each with how it was typed (case kept), as they are asked for."""
    typed = prepare(piece).split()
    folded = [lower_ascii(part) for part in typed]
    at = 0  # tokens come in the order of the parts: looking from the start each time is quadratic
    found = tokens(piece)
    run: list[str] = []
    for token in [*found, ""]:
        if token and is_unspaced(token):
            run.append(token)
            continue
        if len(run) == 1:
            yield (run[0],), run[0]
        for pair in islice(pairwise(run), None, None, 1 if len(run) <= RUN_CHARS else 2):
            yield pair, ""
        run = []
        if token:
            here = next((n for n in range(at, len(folded)) if token in folded[n]), None)
            yield (token,), token if here is None else typed[here]
            at = at if here is None else here


def _others(main: Alternative, typed: str) -> tuple[Alternative, ...]:
    if len(main) > 1:
        return ()
    found: list[Alternative] = [(form,) for form in word_forms(main[0])]
    split_up = case_parts(typed)
    if len(split_up) > 1 and "".join(split_up) == main[0]:
        found.append(tuple(split_up))
    return tuple(found)


def quoted(alternative: Alternative) -> str:
    """A phrase for ``MATCH``. Tokens hold letters, digits and characters beyond ASCII: nothing to escape."""
    return f'"{" ".join(alternative)}"'


def phrase_match(phrase: list[str], with_searches: bool) -> str:
    """The ``exact`` tier's expression: the phrase in the text itself, never in parts of identifiers."""
    columns = "{text search_text}" if with_searches else "text"
    return f"{columns} : {quoted(tuple(phrase[:PHRASE_TOKENS_MAX]))}"


def word_match(word: Word, with_searches: bool) -> str:
    """A word in any of its forms, whole or as a part of an identifier (SPEC 16.2.2)."""
    whole = "{text search_text}" if with_searches else "text"
    either = "{text parts search_text search_parts}" if with_searches else "{text parts}"
    single = [quoted(alternative) for alternative in word.alternatives if len(alternative) == 1]
    several = [quoted(alternative) for alternative in word.alternatives if len(alternative) > 1]
    found = [f"({either} : ({' OR '.join(single)}))"] if single else []
    return " OR ".join(found + [f"({whole} : {phrase})" for phrase in several])
