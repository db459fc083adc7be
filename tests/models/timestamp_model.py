"""SPEC 10.6 with rational numbers and a calendar walked day by day."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

_EPOCH_YEAR = 1970


def is_leap(year: int) -> bool:
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0


@cache
def days_before_year(year: int) -> int:
    """Days from 1970-01-01 to January 1st of ``year``, year by year."""
    if year >= _EPOCH_YEAR:
        return sum(366 if is_leap(y) else 365 for y in range(_EPOCH_YEAR, year))
    return -sum(366 if is_leap(y) else 365 for y in range(year, _EPOCH_YEAR))


def month_days(year: int, month: int) -> int:
    return {2: 29 if is_leap(year) else 28, 4: 30, 6: 30, 9: 30, 11: 30}.get(month, 31)


def instant_ms(
    year: int, month: int, day: int, hour: int, minute: int, second: int, fraction: str, offset_minutes: int
) -> Fraction:
    """The instant in milliseconds, exact."""
    days = days_before_year(year) + sum(month_days(year, m) for m in range(1, month)) + day - 1
    seconds = Fraction(days * 86_400 + hour * 3_600 + minute * 60 + second - offset_minutes * 60)
    if fraction:
        seconds += Fraction(int(fraction), 10 ** len(fraction))
    return seconds * 1000
