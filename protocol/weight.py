"""Whether JSON is so large that going through it would hold an event loop up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .json_value import JSON

HEAVY_VALUES: Final = 20_000
"""Checking and copying take about a microsecond a value: 20 ms."""
CHARS_PER_VALUE: Final = 200
"""A text costs by its length: so many characters count as one value."""


def is_heavy(values: Iterable[JSON], limit: int = HEAVY_VALUES) -> bool:
    """Whether ``values`` hold more than ``limit`` values in all; no more of them are looked at."""
    return weigh(values, limit) > limit


def weigh(values: Iterable[JSON], limit: int) -> int:
    """How many values ``values`` hold in all; above ``limit`` counting ends, somewhere above it.

    Iterative. Costs 0.1 us a value, so that an ordinary batch of events is weighed in some 20 us.
    """
    count = 0
    stack: list[Iterable[JSON]] = [values]
    while stack and count <= limit:
        for value in stack.pop():
            count += 1
            if type(value) is dict:
                stack.append(value.values())
            elif type(value) is list:
                stack.append(value)
            elif type(value) is str:
                count += len(value) // CHARS_PER_VALUE
            if count > limit:
                break
    return count
