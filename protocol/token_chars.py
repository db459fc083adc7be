"""What each character means to the tokenizer (SPEC 6.3, 16.2): kept, folded, split off, dropped or a gap.

One character at a time, after composition (NFC) and width folding. The tables of the search library
are years older than text people write, so they decide nothing: everything but ASCII is judged here.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

from .casefold import fold_char

GAP: Final = " "
"""What separators become: punctuation, symbols, emoji, format and unassigned characters."""

_UNSPACED: Final = re.compile(
    "["
    "\u3005-\u3007\u3021-\u3029\u3038-\u303c"  # Han: signs and numerals
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
    "\u3041-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # Hiragana, Katakana
    "\u0e00-\u0e7f\u0e80-\u0eff\u1780-\u17ff"  # Thai, Lao, Khmer
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff"  # Hangul
    "]"
)
"""Scripts whose letters are tokens of their own, so that any part of a run is a phrase (SPEC 16.2.2)."""

MARKS_RUN_MAX: Final = 30
"""Composition looks at no more marks of one letter (the Unicode stream-safe limit); normalising a longer
run costs the square of its length: 1.2 s for 40,000 marks."""


class _Table(dict[int, str]):
    """Filled as characters are met: a table of all of Unicode would cost a third of a second."""

    def __missing__(self, code: int) -> str:
        found = _token_text(chr(code))
        self[code] = found
        return found


TABLE: Final = _Table()
"""``str.translate`` table from a character beyond ASCII to its token text."""


def _token_text(char: str) -> str:
    kind = unicodedata.category(char)
    if kind[0] == "M":
        return ""  # drops out of the token; after a separator nothing is left to attach to either
    if kind[0] not in "LN" and kind != "Co":
        return GAP
    if _UNSPACED.match(char):
        return f" {fold_char(char)} "
    return without_single_mark(fold_char(char))


def is_unspaced(token: str) -> bool:
    """Whether a token is one character of a script written without spaces, or of Hangul."""
    return len(token) == 1 and _UNSPACED.match(token) is not None


def without_single_mark(char: str) -> str:
    """Return the bare letter of a Latin letter that carries exactly one mark, else ``char`` (SPEC 6.3)."""
    parts = unicodedata.normalize("NFD", char)
    if len(parts) == 2 and unicodedata.combining(parts[1]) and _is_latin(parts[0]):
        return fold_char(parts[0])
    return char


def _is_latin(char: str) -> bool:
    return char.isascii() or unicodedata.name(char, "").startswith("LATIN")


_WIDTH_FORMS: Final = re.compile("[\uff00-\uffef]+")


def compose(text: str) -> str:
    """Return ``text`` with full- and half-width forms folded, in NFC (SPEC 16.2.1)."""
    folded = _WIDTH_FORMS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    if unicodedata.is_normalized("NFC", folded):
        return folded
    return unicodedata.normalize("NFC", _long_mark_runs().sub(lambda run: run[0][:MARKS_RUN_MAX], folded))


@cache
def _long_mark_runs() -> re.Pattern[str]:
    marks = [chr(code) for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code))]
    return re.compile(f"[{''.join(marks)}]{{{MARKS_RUN_MAX + 1},}}")
