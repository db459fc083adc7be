"""Weighing JSON before it is gone through."""

from __future__ import annotations

from typing import Any

import pytest

from session_query.protocol.weight import HEAVY_VALUES, is_heavy


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("values", "heavy"),
    [
        ([], False),
        ([None] * 10, False),
        ([None] * 11, True),
        ([[None] * 9], False),
        ([[None] * 10], True),
        ([{"a": {"b": [1, 2, 3]}}], False),
        ([{"a": {"b": [1, 2, 3, 4, 5, 6, 7, 8]}}], True),
        (["x" * 1800], False),
        (["x" * 2000], True),
        ([nested(5)], False),
        ([nested(1_000_000)], True),
        ([{str(key): [] for key in range(1_000_000)}], True),
    ],
    ids=range(12),
)
def test_ten_values_are_enough(values: list[Any], heavy: bool) -> None:
    assert is_heavy(values, 10) is heavy


def test_an_ordinary_event_is_light() -> None:
    event = {
        "type": "user/message",
        "time": 1,
        "data": {"content": [{"type": "text", "text": "x" * 100_000}]},
    }
    assert not is_heavy([event] * 16)
    assert is_heavy([{"data": {"text": "x" * (HEAVY_VALUES * 201)}}])
