"""Other forms of an English word: plural and tense, made by rule, checked against a vocabulary by others.

Forms widen a query below ``exact`` only (SPEC 16.1.3). The rules make too many rather than too few:
what no text holds costs a look-up and matches nothing.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile("[a-z]{3,24}")
_VOWEL: Final = re.compile("[aeiouy]")
_SIBILANT: Final = ("s", "x", "z", "ch", "sh", "o")
_BASE_CHARS_MIN: Final = 3


def word_forms(word: str) -> list[str]:
    """Return the other forms of a folded word, sorted, without itself; none unless it is plain a-z."""
    if not _WORD.fullmatch(word):
        return []
    bases = _bases(word)
    found: set[str] = {word, *bases}
    for base in bases if len(word) <= 4 else bases - {word} or bases:
        found.update(_inflected(base))
    found.discard(word)
    return sorted(found)


def _bases(word: str) -> set[str]:
    found = {word}
    if word.endswith(("ies", "ied")):
        found.add(word[:-3] + "y")
    if word.endswith("es") and word[:-2].endswith(_SIBILANT):
        found.add(word[:-2])
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        found.add(word[:-1])
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            stem = word[: -len(ending)]
            if _VOWEL.search(stem):
                found.update((stem, stem + "e"))
            if len(stem) > 2 and stem[-1] == stem[-2] and not _VOWEL.match(stem[-1]):
                found.add(stem[:-1])
    return {base for base in found if len(base) >= _BASE_CHARS_MIN and _VOWEL.search(base)}


def _inflected(base: str) -> set[str]:
    found = {base}
    if base.endswith("y") and not _VOWEL.match(base[-2]):
        found.update((base[:-1] + "ies", base[:-1] + "ied", base + "ing"))
    elif base.endswith("e"):
        found.update((base + "s", base + "d", base[:-1] + "ing"))
    else:
        found.update((base + ("es" if base.endswith(_SIBILANT) else "s"), base + "ed", base + "ing"))
        if _doubles(base):
            found.update((base + base[-1] + "ed", base + base[-1] + "ing"))
    return found


def _doubles(base: str) -> bool:
    """Whether the last consonant may be doubled: one vowel before it (``stop``, ``commit``)."""
    return base[-1] in "bdgklmnprtv" and base[-2] in "aeiou" and not _VOWEL.match(base[-3])
