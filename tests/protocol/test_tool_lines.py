"""SPEC 14 L23, 16.9, 13, 16.3: nothing from a log can forge, hide or turn a line of ours."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.errors import Code, ToolCode
from session_query.protocol.records import Receipt, UnreadSession, WorkspaceReceipt
from session_query.protocol.tools.lines import (
    clean_title,
    fence_for,
    indented,
    one_line,
    quoted_line,
    shown_id,
)
from session_query.protocol.tools.receipts_text import receipt_line
from session_query.protocol.tools.wording import GENERIC_TEXT, SERVICE_TEXTS, model_code_and_text

HOSTILE = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("\n\r\x1b\x9b\x85\u2028\u2029\u202e\u2066\u200b\u200d\ufeff\ud800`>[];m\x07"),
    ),
    max_size=60,
)


def is_one_visible_line(text: str) -> bool:
    return len(text.splitlines()) <= 1 and not any(
        unicodedata.category(char) in {"Cc", "Cs"}
        or char in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200e"
        for char in text
    )


@settings(max_examples=200)
@given(HOSTILE)
def test_whatever_a_log_holds_stays_in_its_line(text: str) -> None:
    assert is_one_visible_line(clean_title(text))
    assert is_one_visible_line(one_line(text))
    assert is_one_visible_line(quoted_line(text))
    assert is_one_visible_line(shown_id(text))


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Fix  the\tbuild", "Fix the build"),
        ("a\n2. forged: hit", "a 2. forged: hit"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;window\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\u202egnp.exe", "gnp.exe"),
        ("a\u200bb\u2060c", "abc"),
        (" \u0000\u0007 ", ""),
        ("naïve 修复 🙂", "naïve 修复 🙂"),
        ("x" * 500, "x" * 119 + "…"),
        ("x" * 10_000_000, "x" * 119 + "…"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_14_L23_titles(title: str, shown: str) -> None:
    assert clean_title(title) == shown


@pytest.mark.parametrize(
    ("session_id", "shown"),
    [
        ("5b6c-1f0e", "5b6c-1f0e"),
        ("codex/place:5b6c", "codex/place:5b6c"),
        ("a b", "a b"),
        ("", '""'),
        (" a", '" a"'),
        ("a\nb", '"a\\nb"'),
        ("a\u202eb", '"a\\u202eb"'),
        ("a\ud800", '"a\\ud800"'),
    ],
)
def test_an_id_is_shown_so_that_it_can_be_called_back(session_id: str, shown: str) -> None:
    assert shown_id(session_id) == shown
    assert shown == session_id or json.loads(shown) == session_id


@given(HOSTILE)
def test_indentation_loses_nothing_and_reaches_every_line(text: str) -> None:
    shown = indented(text, "    ")
    assert all(line.startswith("    ") for line in shown.splitlines())
    assert len(shown.replace("    ", "")) == len(text.replace("    ", ""))


@given(st.text(alphabet="`a\n", max_size=40))
def test_no_text_closes_its_fence(text: str) -> None:
    assert fence_for(text) not in text
    assert len(fence_for(text)) >= 3


# ---- SPEC 13 ----

TO_MODEL = {code for code in Code if code not in (Code.SOURCE_CONFLICT, Code.INVALID_CONFIG)}


@pytest.mark.parametrize("code", sorted(Code))
def test_13_what_reaches_the_model(code: Code) -> None:
    shown, text = model_code_and_text(code)
    if code in TO_MODEL:
        assert (shown, text) == (code, SERVICE_TEXTS[code])
    else:
        assert (shown, text) == (ToolCode.TOOL_FAILED, GENERIC_TEXT)
    assert model_code_and_text(code.value) == (shown, text)


class Sly(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "code",
    [
        None,
        7,
        "__class__",
        "keys",
        "SESSION_QUERY_UNKNOWN",
        "session_query_aborted",
        "SESSION_QUERY_ABORTED ",
        Sly("SESSION_QUERY_ABORTED"),
        ["SESSION_QUERY_ABORTED"],
        ToolCode.UNAUTHORIZED,
        ToolCode.TOOL_TIMEOUT,
    ],
)
def test_11_4_the_table_is_closed(code: object) -> None:
    assert model_code_and_text(code) == (ToolCode.TOOL_FAILED, GENERIC_TEXT)


def test_every_text_is_one_plain_sentence_or_two() -> None:
    texts = [*SERVICE_TEXTS.values(), GENERIC_TEXT]
    assert len(set(texts)) == len(texts) == 16
    assert all(is_one_visible_line(text) and text.endswith(".") and len(text) < 120 for text in texts)


# ---- SPEC 16.3 ----


@pytest.mark.parametrize(
    ("receipt", "line"),
    [
        (Receipt(sessions_in_reach=0), "Looked in 0 sessions, current."),
        (
            Receipt(sessions_in_reach=1, tiers=("exact", "words"), checked_ago_s=3.4),
            "Looked in 1 session, checked 3 s ago. Tiers used: exact, words.",
        ),
        (
            Receipt(sessions_in_reach=2, filters_excluded_everything=True),
            "Looked in 2 sessions, current. The filters left nothing to search.",
        ),
        (
            Receipt(sessions_in_reach=2, only_common_words=True),
            "Looked in 2 sessions, current. Only common words were given, so only the exact phrase was "
            "looked for. Add a rarer word.",
        ),
        (
            Receipt(sessions_in_reach=2, too_broad=True),
            "Looked in 2 sessions, current. Could not look everywhere: this query of symbols alone is too "
            "broad. Add a word.",
        ),
        (
            Receipt(sessions_in_reach=2, indexing=(10, 40)),
            "Looked in 2 sessions, those indexed so far. "
            "Could not look everywhere yet: the first index is 25 % built. "
            "Ask again soon.",
        ),
        (
            Receipt(sessions_in_reach=2, indexing=(40, 40)),
            "Looked in 2 sessions, those indexed so far. "
            "Could not look everywhere yet: the first index is 99 % built. "
            "Ask again soon.",
        ),
        (
            Receipt(
                sessions_in_reach=2,
                lost_records=1,
                unread=tuple(UnreadSession(session_id=f"s{n}", code="C") for n in range(7)),
            ),
            "Looked in 2 sessions, current. Could not look in 7 sessions: s0 (C), s1 (C), s2 (C), s3 (C), "
            "s4 (C), 2 more. Could not read 1 damaged record.",
        ),
    ],
)
def test_16_3_receipts(receipt: Receipt, line: str) -> None:
    assert receipt_line(receipt) == line


def test_16_3_inside_one_session_no_other_is_counted() -> None:
    assert (
        receipt_line(Receipt(sessions_in_reach=9), within_session=True) == "Looked in this session, current."
    )


def test_16_3_an_operator_gets_totals_and_one_line_each() -> None:
    shares = (
        WorkspaceReceipt(workspace="/a", sessions_in_reach=1, unread=1),
        WorkspaceReceipt(workspace=None, sessions_in_reach=2, lost_records=3),
    )
    assert receipt_line(Receipt(sessions_in_reach=3, by_workspace=shares)).splitlines() == [
        "Looked in 3 sessions, current.",
        "- /a: 1 session, could not look in 1 more",
        "- without a workspace: 2 sessions, 3 damaged records",
    ]
