"""The one whitespace set of the product (SPEC 0): every trim, split and collapse uses it.

Python's own notion of a space differs: it counts U+001C-U+001F and U+0085, which are text here, and
leaves out U+FEFF, which is a space here. So ``str.split()`` and ``\\s`` are never used on log text.
"""

from __future__ import annotations

import re
from typing import Final

WS: Final = (
    "\t\n\x0b\x0c\r \u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Every whitespace character, once each, in code-point order."""

WS_CLASS: Final = f"[{re.escape(WS)}]"
"""The set as a regular-expression character class."""

_RUN: Final = re.compile(f"{WS_CLASS}+")
_ODD: Final = re.compile(f"[{re.escape(WS.replace(' ', ''))}]")
_ODD_ASCII: Final = bytes(0x20 if chr(code) in WS else code for code in range(256))


def trim(text: str) -> str:
    """``text`` without leading and trailing whitespace."""
    return text.strip(WS)


def collapse(text: str) -> str:
    """``text`` trimmed, each inner whitespace run turned into one U+0020."""
    return _single_spaced(text.strip(WS))


def _single_spaced(text: str) -> str:
    """``text`` with every whitespace run turned into one space, 2 us for 480 ASCII characters.

    A pattern over the runs takes 13: most runs are the single space that they become.
    """
    spaced = text.encode().translate(_ODD_ASCII).decode() if text.isascii() else _ODD.sub(" ", text)
    while "  " in spaced:  # halves every run
        spaced = spaced.replace("  ", " ")
    return spaced


def split(text: str) -> list[str]:
    """The pieces between whitespace runs; empty for blank text."""
    stripped = text.strip(WS)
    return _RUN.split(stripped) if stripped else []


def is_blank(text: str) -> bool:
    """True if nothing is left after trimming."""
    return not text.strip(WS)


def excess(text: str) -> int:
    """How many characters of ``text`` are lost when each whitespace run becomes one space (no trim)."""
    return len(text) - len(_single_spaced(text))
