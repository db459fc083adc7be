"""SPEC 12.1.5, 12.1.6: previews."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.preview import cut_after, cut_before, make_preview


def notice(omitted: int) -> str:
    return f"[{omitted} bytes more in «x»]"


@settings(max_examples=200)
@given(st.text(alphabet="aé修🙂\n", min_size=1, max_size=300), st.integers(0, 300))
def test_a_preview_fits_and_counts_what_is_absent(text: str, limit: int) -> None:
    data = text.encode()
    if len(data) <= limit:
        return
    preview = make_preview(data, limit, notice)
    reserve = len(notice(len(data)).encode()) + 2
    if preview is None:
        assert reserve > limit
        return
    assert len(preview.text.encode()) <= limit
    shown, closing = preview.text.rsplit("\n\n", 1)
    assert closing == notice(preview.omitted_bytes)
    kept = len(shown.encode())
    assert kept == len(data) - preview.omitted_bytes
    budget = limit - reserve
    assert budget - 6 <= kept <= budget  # at most three bytes are lost at each cut
    heads = [n for n in range(len(shown) + 1) if text.startswith(shown[:n]) and text.endswith(shown[n:])]
    assert any(len(shown[:n].encode()) in range((budget + 1) // 2 - 3, (budget + 1) // 2 + 1) for n in heads)


def test_the_head_gets_the_ceiling_half() -> None:
    data = b"0123456789" * 10
    reserve = len(notice(len(data)).encode()) + 2
    preview = make_preview(data, reserve + 5, notice)
    assert preview is not None
    assert preview.text == "01289\n\n" + notice(95)


def test_an_empty_preview_is_allowed_and_a_notice_that_does_not_fit_is_not() -> None:
    data = b"x" * 100
    reserve = len(notice(100).encode()) + 2
    preview = make_preview(data, reserve, notice)
    assert preview is not None
    assert preview.text == "\n\n" + notice(100)
    assert make_preview(data, reserve - 1, notice) is None


@pytest.mark.parametrize(
    ("at", "before", "after"), [(0, 0, 0), (1, 1, 1), (2, 1, 4), (3, 1, 4), (4, 4, 4), (5, 5, 5)]
)
def test_cuts_fall_between_code_points(at: int, before: int, after: int) -> None:
    data = "a修b".encode()
    assert (cut_before(data, at), cut_after(data, at)) == (before, after)
