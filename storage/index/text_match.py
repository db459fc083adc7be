"""The words of a query in one text: how often, and which neighbours stand together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs

from ...protocol.snippet import Span
from ...protocol.tokens import TOKEN_CLASS, Places, parts, prepare, split_tokens
from .query_words import Alternative, Word
from .relevance import PAIR_DISTANCE_MAX

TEXT_CHARS_MAX: Final = 20_000
"""How much of a text is looked at for counts; a word known to be further on counts once."""
SNIPPET_CHARS_MAX: Final = 400_000
"""How much of a text is searched for the best window."""

_TOKEN: Final = re.compile(f"[{TOKEN_CLASS}]+")


@attrs.frozen
class TextMatch:
    """``counts``: word to occurrences, of those that occur. ``pairs``: neighbours found together."""

    counts: dict[int, int]
    pairs: tuple[tuple[int, int], ...]


class TextMatcher:
    """Looks for the same words in many texts."""

    def __init__(self, words: Sequence[Word], pairs: Sequence[tuple[int, int]]) -> None:
        """Args: pairs: neighbouring words of the query, as indices into ``words``."""
        self._starts: dict[str, list[tuple[int, Alternative]]] = {}
        for number, word in enumerate(words):
            for alternative in word.alternatives:
                self._starts.setdefault(alternative[0], []).append((number, alternative))
        self._before: dict[int, list[int]] = {}
        for first, second in dict.fromkeys(pairs):
            self._before.setdefault(second, []).append(first)

    def match(self, text: str) -> TextMatch:
        """Count the words in the first part of ``text``. Parts of identifiers are not looked for."""
        prepared = prepare(text[:TEXT_CHARS_MAX])
        tokens = split_tokens(prepared)
        counts: dict[int, int] = {}
        last: dict[int, int] = {}
        together: dict[tuple[int, int], None] = {}
        starts = self._starts
        for at, token in enumerate(tokens):
            if token not in starts:
                continue
            for number, alternative in starts[token]:
                if len(alternative) > 1 and tuple(tokens[at : at + len(alternative)]) != alternative:
                    continue
                counts[number] = counts.get(number, 0) + 1
                for first in self._before.get(number, ()):
                    if first in last and 0 < at - last[first] <= PAIR_DISTANCE_MAX:
                        together[first, number] = None
                last[number] = at
        return TextMatch(counts, tuple(sorted(together)))

    def spans(self, text: str) -> list[Span]:
        """Every place of a word in ``text``, for choosing a window; parts of identifiers included."""
        places = Places.of(text[:SNIPPET_CHARS_MAX])
        found: list[Span] = []
        tokens = [(match[0], *match.span()) for match in _TOKEN.finditer(places.lower)]
        for at, (token, start, _) in enumerate(tokens):
            for number, alternative in self._starts.get(token, ()):
                words = tokens[at : at + len(alternative)]
                if tuple(word for word, _, _ in words) == alternative:
                    found.append((*places.origin(start, words[-1][2]), number))
        if not found:
            found = self._part_spans(text[:SNIPPET_CHARS_MAX], places, tokens)
        return sorted(found)

    def _part_spans(self, text: str, places: Places, tokens: list[tuple[str, int, int]]) -> list[Span]:
        found = []
        for _, start, end in tokens:
            begin, stop = places.origin(start, end)
            for part in parts(prepare(text[begin:stop])):
                for number, alternative in self._starts.get(part, ()):
                    if len(alternative) == 1:
                        found.append((begin, stop, number))
        return found
