"""Simple (one-to-one) Unicode case folding (SPEC 5.6, 6.3).

``str.casefold`` is full folding (``ß`` becomes ``ss``) and ``str.lower`` is no folding at all (it keeps
``ſ`` and ``ς``). Simple folding never changes the number of code points, so offsets stay valid.
"""

from __future__ import annotations

from typing import Final


def fold_char(char: str) -> str:
    """Return the simple folding of one character; always one character.

    Where full folding yields several characters, Unicode defines the simple folding as the single
    lower-case letter if there is one (``ẞ`` to ``ß``, ``ᾈ`` to ``ᾀ``) and as the character itself otherwise
    (``ß``, ``İ``, ligatures).
    """
    full = char.casefold()
    if len(full) == 1:
        return full
    lower = char.lower()
    return lower if len(lower) == 1 else char


class _Table(dict[int, str]):
    """Filled as characters are met: a table of all of Unicode would cost 0.3 s at import."""

    def __missing__(self, code: int) -> str:
        folded = fold_char(chr(code))
        self[code] = folded
        return folded


_TABLE: Final = _Table()


def fold(text: str) -> str:
    """Return ``text`` with every character folded; the length is unchanged."""
    return text.lower() if text.isascii() else text.translate(_TABLE)
