"""The words of a query in one text: how often, and which neighbours stand together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ...protocol.snippet import Span
from ...protocol.tokens import TOKEN_CLASS, Places, parts, phrase_pattern, prepare, split_tokens
from .query_words import Alternative, Word
from .relevance import PAIR_DISTANCE_MAX

TEXT_CHARS_MAX: Final = 20_000
"""How much of a text is looked at for counts; a word known to be further on counts once."""
SNIPPET_CHARS_MAX: Final = 400_000
"""How much of a text is searched for the best window."""

SPANS_EACH: Final = 20
"""Places of one word that a window is chosen among."""

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
        """Every place of a word in ``text``, for choosing a window; parts of identifiers if there is none."""
        text = text[:SNIPPET_CHARS_MAX]
        places = Places.of(text)
        lower = places.lower
        found: list[Span] = []
        for token, words in self._starts.items():
            for start, end in _occurrences(lower, token):
                for number, alternative in words:
                    stop = end if len(alternative) == 1 else _phrase_end(lower, start, alternative)
                    if stop:
                        found.append((*places.origin(start, stop), number))
        return sorted(found) or self._part_spans(text, places)

    def _part_spans(self, text: str, places: Places) -> list[Span]:
        found = []
        for match in _TOKEN.finditer(places.lower):
            begin, stop = places.origin(*match.span())
            for part in parts(prepare(text[begin:stop])):
                for number, alternative in self._starts.get(part, ()):
                    if len(alternative) == 1:
                        found.append((begin, stop, number))
        return found


def _occurrences(lower: str, token: str) -> Iterator[tuple[int, int]]:
    """Where a token stands in a prepared, lower-cased text; at most the first ``SPANS_EACH``."""
    found, at = 0, lower.find(token)
    while at >= 0 and found < SPANS_EACH:
        end = at + len(token)
        if not _in_word(lower[at - 1 : at]) and not _in_word(lower[end : end + 1]):
            found += 1
            yield at, end
        at = lower.find(token, at + 1)


def _in_word(char: str) -> bool:
    return char.isalnum() or char > "\x7f"


def _phrase_end(lower: str, start: int, alternative: Alternative) -> int:
    found = phrase_pattern(alternative).match(lower, start)
    return 0 if found is None else found.end()
