"""SPEC 0 (whitespace) and 5.6 (simple case folding)."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.casefold import fold, fold_char
from session_query.protocol.whitespace import WS, collapse, excess, is_blank, split, trim

CODES = [*range(0x09, 0x0E), 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F]
CODES += [0x3000, 0xFEFF]
TEXTS = st.text(alphabet=st.sampled_from([*WS, "a", "é", "\x1c", "\x85", "\u200b"]), max_size=40)


def test_the_set_is_the_one_of_the_specification() -> None:
    assert sorted(WS) == sorted(chr(code) for code in CODES)
    assert len(WS) == len(set(WS))


@pytest.mark.parametrize("char", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u200b", "\u180e", "\u2060"])
def test_what_other_libraries_call_a_space_is_none_here(char: str) -> None:
    assert not is_blank(char)
    assert trim(f" {char} ") == char
    assert split(f"a{char}b") == [f"a{char}b"]


@given(TEXTS)
def test_collapse_is_split_and_join(text: str) -> None:
    assert collapse(text) == " ".join(split(text))
    assert is_blank(text) == (collapse(text) == "")
    assert len(collapse(f"x{text}y")) == len(text) + 2 - excess(text)


@pytest.mark.parametrize(
    ("char", "folded"),
    [
        ("A", "a"),
        ("Ä", "ä"),
        ("ẞ", "ß"),
        ("ß", "ß"),
        ("İ", "İ"),
        ("ı", "ı"),
        ("I", "i"),
        ("ς", "σ"),
        ("Σ", "σ"),
        ("ſ", "s"),
        ("K", "k"),
        ("ﬁ", "ﬁ"),
        ("ŉ", "ŉ"),
        ("ᾈ", "ᾀ"),
        ("ᾼ", "ᾳ"),
        ("Ǆ", "ǆ"),
        ("Ꭰ", "Ꭰ"),
        ("ꭰ", "Ꭰ"),
        ("𐐀", "𐐨"),
    ],
)
def test_simple_folding_is_one_to_one(char: str, folded: str) -> None:
    assert fold(char) == fold_char(char) == folded


def test_folding_keeps_every_offset_and_settles_at_once() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    folded = fold(every)
    assert len(folded) == len(every)
    assert fold(folded) == folded
