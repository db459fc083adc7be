"""SPEC 0: the whitespace set, exactly."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.whitespace import WS, WS_CLASS, collapse, excess, is_blank, split, trim

SPACES = [
    *range(0x09, 0x0E),
    0x20,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
    0xFEFF,
]


def test_the_set_is_exactly_the_list() -> None:
    found = [code for code in range(sys.maxunicode + 1) if not trim(chr(code))]
    assert found == SPACES
    assert "".join(map(chr, SPACES)) == WS


def test_every_function_agrees_on_every_character() -> None:
    for code in range(0x10000):
        char = chr(code)
        text = f"{char}a{char}{char}b{char}"
        if code in SPACES:
            assert (trim(text), collapse(text), split(text)) == (f"a{char}{char}b", "a b", ["a", "b"])
            assert excess(text) == 1
        else:
            assert (trim(text), collapse(text), split(text), excess(text)) == (text, text, [text], 0)


@pytest.mark.parametrize("text", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u200b", "\u180e", "\u2060"])
def test_these_are_text_although_others_think_not(text: str) -> None:
    assert trim(text) == text
    assert not is_blank(text)


def test_blank_text() -> None:
    assert is_blank("")
    assert is_blank(WS)
    assert split(WS) == []
    assert collapse(WS) == ""


@given(st.text(st.sampled_from([*WS, " ", " ", "a", "b", "é", "\x1c", "\x85"]), max_size=30))
def test_runs_become_one_space_each(text: str) -> None:
    assert collapse(text) == re.sub(f"{WS_CLASS}+", " ", text.strip(WS))
    assert excess(text) == len(text) - len(re.sub(f"{WS_CLASS}+", " ", text))
