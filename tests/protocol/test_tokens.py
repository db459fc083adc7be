"""Tokens of texts and queries (SPEC 6.3, 16.2), against a tokenizer that goes character by character."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from session_query.protocol.casefold import fold_char
from session_query.protocol.tokens import (
    TOKEN_CLASS,
    Places,
    can_overlap,
    count_phrase,
    first_phrase,
    lower_ascii,
    parts,
    phrase_spans,
    prepare,
    tokens,
)

SCRAPS = [
    "a", "B", "é", "e\u0301", "ộ", "o\u0323\u0302", "x\u030c", "ß", "ẞ", "ﬁ", "İ", "ſ", "ς", "Σ", "ά", "й",
    "²", "①", "Ａ", "１", "！", "ｶ", "ﾞ", "ｶﾞ", "ガ", "東", "京", "ー", "か", "ก", "ก็", "가", "각",
    "\u1100\u1161", "\u11a8", "हि", "न्दी", "شَرَّف", "\u200b", "\u00ad", "\u200d", "\ufe0f", "\u20e3", "😀",
    "\U0001fae8",
    "\ue000", "\ud800", "\ufffd", "\0", " ", "\n", "-", "_", "+", "#", "'", "’", "1", "\u0301", "\u3000", "…",
]  # fmt: skip
texts = st.lists(st.sampled_from(SCRAPS) | st.characters(), max_size=12).map("".join)


def slow_tokens(text: str) -> list[str]:
    """SPEC 6.3 and 16.2 word by word, one character at a time."""
    text = re.sub("[\uff00-\uffef]+", lambda run: unicodedata.normalize("NFKC", run[0]), text)
    found: list[str] = []
    open_word = False
    for char in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(char)
        if kind[0] == "M":
            continue
        if not (kind[0] in "LN" or kind == "Co"):
            open_word = False
            continue
        name = unicodedata.name(char, "")
        alone = re.match(
            "CJK UNIFIED|CJK COMPAT|IDEOGRAPHIC (ITER|CLOSING|NUMBER)|HANGZHOU|VERTICAL IDEO|MASU"
            "|HIRAGANA|KATAKANA|THAI|LAO|KHMER (LETTER|VOWEL|DIGIT|IND|SIGN)|MYANMAR|HANGUL",
            name,
        )
        char = fold_char(char)
        apart = unicodedata.normalize("NFD", char)
        if len(apart) == 2 and unicodedata.combining(apart[1]) and unicodedata.name(apart[0])[:5] == "LATIN":
            char = fold_char(apart[0])
        if alone:
            found.append(char)
        elif open_word:
            found[-1] += char
        else:
            found.append(char)
        open_word = not alone
    return found


@given(texts)
@settings(max_examples=200)
def test_tokens_are_those_of_the_slow_tokenizer(text: str) -> None:
    odd = [c for c in text if re.match("[\u3000-\u33ff\u1780-\u19ff\ua9e0-\uabff\U00016fe0-\U0003ffff]", c)]
    if all(char in "".join(SCRAPS) for char in odd):  # block borders are pinned by examples below
        assert tokens(text) == slow_tokens(text)


@given(texts)
@settings(max_examples=200)
def test_preparing_again_changes_no_token(text: str) -> None:
    assert tokens(prepare(text)) == tokens(text)
    assert tokens(lower_ascii(prepare(text))) == tokens(text)


@given(texts)
@example("ก็\u0301")  # three characters in, three out, and not one by one
@settings(max_examples=200)
def test_places_hold_the_same_tokens_and_lead_back_to_them(text: str) -> None:
    places = Places.of(text)
    found = list(re.finditer(f"[{TOKEN_CLASS}]+", places.lower))
    assert [match[0] for match in found] == tokens(text)
    before = 0
    for match in found:
        start, end = places.origin(*match.span())
        assert before <= start < end <= len(text)
        assert tokens(text[start:end]) == [match[0]]
        before = end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAFE cafe\u0301 café", ["cafe", "cafe", "cafe"]),
        ("ñ ộ ά й ǿ", ["n", "ộ", "ά", "й", "ø"]),
        ("straße ẞ ﬁ ² ①", ["straße", "ß", "ﬁ", "²", "①"]),
        ("1,000", ["1", "000"]),
        ("zero\u200bwidth soft\u00adhyphen", ["zero", "width", "soft", "hyphen"]),
        ("foo_bar don't x\ue000y", ["foo", "bar", "don", "t", "x\ue000y"]),
        ("ＡＢＣ１２　ﾊﾝｶｸｶﾞ", ["abc12", "ハ", "ン", "カ", "ク", "ガ"]),
        ("हिन्दी", ["हनद"]),
        ("مُحَمَّد", ["محمد"]),
        ("שָׁלוֹם", ["שלום"]),
        ("東京タワーABC第3章", ["東", "京", "タ", "ワ", "ー", "abc", "第", "3", "章"]),
        ("한국어 각", ["한", "국", "어", "각"]),
        ("ก็กิน ລາວ ខ្មែរ", ["ก", "ก", "น", "ລ", "າ", "ວ", "ខ", "ម", "រ"]),
        ("a\U0001fae8b c😀d 1️⃣", ["a", "b", "c", "d", "1"]),
        ("\ud800a\udc00b", ["a", "b"]),
        ('* " 😀 …', []),
        ("々〆〇", ["々", "〆", "〇"]),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_every_character_is_a_gap_or_part_of_a_token_whatever_stands_around_it() -> None:
    for code in [*range(0x3000), *range(0xA000, 0xB000), *range(0xF000, 0x11000), *range(0x1F000, 0x1FC00)]:
        char = chr(code)
        kind = unicodedata.category(char)
        word = kind[0] in "LN" or kind == "Co"
        found = tokens(f"1 {char} 1")
        assert found[0] == found[-1] == "1"
        assert (len(found) > 2) == word or 0xFF00 <= code <= 0xFFEF, hex(code)


def test_a_long_run_of_marks_costs_no_square() -> None:
    assert tokens("a" + "\u0301\u0323" * 200_000 + "b") == ["ab"] or len(tokens("a\u0301\u0323b")) == 1


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("openNursery", ["nursery", "open"]),
        ("HTTPServer2Go", ["go", "http", "server2"]),
        ("parseHTTPReply2", ["http", "parse", "reply2"]),
        ("utf8Decode", ["decode", "utf8"]),
        ("xAxis naïveValue", ["axis", "naive", "value"]),
        ("open_nursery ERR_CONN plain Word WORD 123", []),
    ],
)
def test_parts_of_identifiers(word: str, expected: list[str]) -> None:
    assert parts(prepare(word)) == expected


def slow_parts(prepared: str) -> list[str]:
    """Every run of ASCII letters and digits, cut at every case border, one character at a time."""
    found: set[str] = set()
    for word in re.findall("[0-9A-Za-z]+", prepared):
        cuts = [0]
        for at in range(1, len(word)):
            before, after = word[at - 1], word[at + 1 : at + 2]
            if word[at].isupper() and (not before.isupper() or after.islower()):
                cuts.append(at)
        if len(cuts) > 1:
            pieces = [word[a:b] for a, b in pairwise([*cuts, len(word)])]
            # digits before a small letter stand alone: ``2go`` is ``2`` and ``go``
            found.update(part for piece in pieces for part in re.findall("[A-Za-z]+[0-9]*|[0-9]+", piece))
    return sorted({part.lower() for part in found if len(part) > 1})


@given(st.lists(st.sampled_from([*"abAZ09_ é東\0\n", "HTTP", "open"]), max_size=20).map("".join))
def test_parts_agree_with_cutting_character_by_character(text: str) -> None:
    assert parts(prepare(text)) == slow_parts(prepare(text))


def test_parts_of_a_very_long_identifier_cost_no_square() -> None:
    assert parts("aB" * 300_000) == ["ba"]
    assert parts("abCd" * 150_000) == ["ab", "cd", "cdab"]


@pytest.mark.parametrize(
    ("phrase", "text", "count"),
    [
        ("echo echo", "echo echo echo", 1),
        ("echo echo", "echo echo stop echo echo", 2),
        ("echo echo", "echo echo echo echo", 1),
        ("quartz", "quartz quartz", 2),
        ("a b a", "a b a b a a b a", 2),
        ("alpha beta", "alpha-beta alpha,\nbeta alphabeta", 2),
        ("AI", "BRAID ai AI.", 2),
        ("東京", "東京タワー 東 京", 2),
        ("café", "Cafe\u0301s café", 1),
    ],
)
def test_spans(phrase: str, text: str, count: int) -> None:
    words = tokens(phrase)
    assert count_phrase(lower_ascii(prepare(text)), words) == count
    spans = phrase_spans(Places.of(text), words)
    assert len(spans) == count
    assert all(tokens(text[start:end])[: len(words)] == words for start, end in spans)
    assert first_phrase(text, words) == spans[0][0]
    assert first_phrase(text, [*words, "absent"]) is None


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_overlapping_occurrences_are_merged(words: list[str], phrase: list[str]) -> None:
    hits = [at for at in range(len(words)) if words[at : at + len(phrase)] == phrase]
    spans = sum(1 for n, at in enumerate(hits) if n == 0 or at >= hits[n - 1] + len(phrase))
    assert count_phrase(" ".join(words), phrase) == spans
    shared = any(b - a < len(phrase) for a, b in pairwise(hits))
    assert can_overlap(phrase) or not shared


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_a_phrase_overlaps_itself_when_a_prefix_is_a_suffix(phrase: list[str]) -> None:
    assert can_overlap(phrase) is any(phrase[:size] == phrase[-size:] for size in range(1, len(phrase)))


def test_overlap_of_a_very_long_phrase() -> None:
    assert not can_overlap([*["a"] * 300_000, "b"])
    assert can_overlap([*["a"] * 300_000, "b", "a"])


PIECES = [
    "a",
    "b",
    "A",
    "\uff21",
    "\u212a",
    "k",
    " ",
    "-",
    "<",
    "\u0338",
    "\u0301",
    "é",
    "東",
    "\0",
    "\ud800",
    "\uff9e",
    "か",
]


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from(["a", "b", "k", "é", "東", "ab"]), min_size=1, max_size=3),
)
@settings(max_examples=200)
def test_the_first_occurrence_is_the_first_of_all(text: str, phrase: list[str]) -> None:
    spans = phrase_spans(Places.of(text), phrase)
    assert first_phrase(text, phrase) == (spans[0][0] if spans else None)
