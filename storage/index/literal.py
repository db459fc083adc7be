"""Symbols in queries: checked against the texts, since tokens know none (SPEC 16.2.3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ...protocol.casefold import fold
from ...protocol.token_chars import compose
from ...protocol.tokens import TOKEN_CLASS
from ...protocol.whitespace import WS_CLASS, collapse, split

_EDGES: Final = "\"'`“”‘’«»()[]{}<>,;:!?…。、，！？"
"""Quotation, brackets and the end of a sentence around a word say nothing about the word."""
_WORD_CHAR: Final = re.compile(f"[{TOKEN_CLASS}]")
_PLAIN: Final = re.compile(r"[^\W_]*")


def literal_pieces(query: str) -> list[str]:
    """Return the pieces of a query that hold symbols which belong to them, as they are looked for.

    ``what is C++?`` gives ``c++``; ``don't``, ``a-b``, ``#1234`` and paths are pieces, ``(see`` is not.
    """
    found = []
    for piece in split(query):
        core = piece.strip(_EDGES).removesuffix(".")
        if core and not _PLAIN.fullmatch(core):
            found.append(folded(core))
    return found


def folded(text: str) -> str:
    """A text as literals are compared: composed, width and case folded, whitespace collapsed."""
    return fold(collapse(compose(text)))


def literal_pattern(query: str) -> Callable[[str], bool]:
    """Return the test whether a text holds the query as it was typed, its outer quotation aside.

    A query that begins or ends with a letter or digit must not begin or end inside a longer word.
    """
    return _finder(folded(query.strip(_EDGES + " ")))


def _finder(needle: str) -> Callable[[str], bool]:
    before = f"(?<![{TOKEN_CLASS}])" if _WORD_CHAR.match(needle[:1]) else ""
    after = f"(?![{TOKEN_CLASS}])" if _WORD_CHAR.match(needle[-1:]) else ""
    pattern = re.compile(before + re.escape(needle) + after)

    def holds(text: str) -> bool:
        ready = folded(text)
        return needle in ready and pattern.search(ready) is not None

    return holds


def find_literal(text: str, query: str) -> list[tuple[int, int]]:
    """Return the places of a query of symbols alone in a text: (start, end), not overlapping.

    Whitespace in the query stands for any whitespace; case is folded one to one, so places are exact.
    """
    return [match.span() for match in _symbols(query).finditer(fold(text))]


@lru_cache(maxsize=16)
def _symbols(query: str) -> re.Pattern[str]:
    """Made once a query and not once a text: of 100,000 characters it takes 2 ms."""
    pieces = [re.escape(fold(piece)) for piece in split(query)]
    return re.compile(f"{WS_CLASS}+".join(pieces))
