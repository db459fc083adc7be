"""Timestamps of tool arguments and of rendered results, in exact integer arithmetic (SPEC 10.6).

``datetime`` knows neither year 0 nor an instant that its offset pushes beyond year 9999, and stops at
microseconds; doubles lose digits. So days are counted by hand and fractions stay digit strings.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, TypeAlias

import attrs

Number: TypeAlias = int | float

_GRAMMAR: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:\.([0-9]+))?)?(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))"
)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY_MS: Final = 86_400_000
_CALENDAR_MS: Final = 8_640_000_000_000_000  # the range of a calendar date in hosts that print them


class InvalidTimestamp(ValueError):
    """The text is no timestamp of SPEC 10.6.1-10.6.2, or a pair of them is reversed."""


@attrs.frozen
class Instant:
    """``ms`` whole milliseconds since the epoch (floored) and a remainder below one millisecond.

    ``rest`` holds the decimal digits after the milliseconds, trailing zeros dropped; as text, they
    compare as numbers do.
    """

    ms: int
    rest: str

    def lower_bound(self) -> Number:
        """Return the least number that is not before the instant and keeps whole milliseconds apart."""
        return self.ms if not self.rest else math.nextafter(self.ms, math.inf)

    def upper_bound(self) -> Number:
        """Return the greatest number that is not after the instant, in the same sense."""
        return self.ms if not self.rest else math.nextafter(self.ms + 1, -math.inf)

    def is_after(self, other: Instant) -> bool:
        return (self.ms, self.rest) > (other.ms, other.rest)


def parse_timestamp(text: str) -> Instant:
    """Return the exact instant of ``YYYY-MM-DDTHH:MM[:SS[.F...]](Z|+HH:MM|-HH:MM)``.

    Raises: InvalidTimestamp: another form, or a field out of its range (no 24:00, no leap second).
    """
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise InvalidTimestamp("a timestamp looks like 2031-03-05T06:07:08Z or 2031-03-05T06:07+05:30")
    year, month, day, hour, minute = (int(match[group]) for group in range(1, 6))
    second = int(match[6] or 0)
    offset_hour, offset_minute = int(match[10] or 0), int(match[11] or 0)
    if not 1 <= month <= 12 or not 1 <= day <= _days_in_month(year, month):
        raise InvalidTimestamp("the timestamp names a day that does not exist")
    if hour > 23 or minute > 59 or second > 59 or offset_hour > 23 or offset_minute > 59:
        raise InvalidTimestamp("the timestamp names a time of day that does not exist")
    offset = offset_hour * 60 + offset_minute
    minutes = hour * 60 + minute - (-offset if match[9] == "-" else offset)
    fraction = match[7] or ""
    whole_ms = (minutes * 60 + second) * 1000 + int(fraction[:3].ljust(3, "0"))
    return Instant(_days(year, month, day) * _DAY_MS + whole_ms, fraction[3:].rstrip("0"))


def timestamp_bounds(lower: str | None, upper: str | None) -> tuple[Number | None, Number | None]:
    """Return inclusive numeric bounds for a range over whole milliseconds (SPEC 10.6.4).

    Raises: InvalidTimestamp: a defect of either text, the lower one first, or a reversed pair. Order
    is judged on the exact instants: a pair inside one millisecond is legal and matches nothing.
    """
    first = None if lower is None else parse_timestamp(lower)
    last = None if upper is None else parse_timestamp(upper)
    if first is not None and last is not None and first.is_after(last):
        raise InvalidTimestamp("the range ends before it begins")
    return (None if first is None else first.lower_bound()), (None if last is None else last.upper_bound())


def render_time(ms: int) -> str:
    """Return the time in UTC, ``YYYY-MM-DDTHH:MM:SS.mmmZ``; a signed six-digit year outside 0000-9999.

    A time outside the calendar range (8.64e15 ms either way) is given as its number (SPEC 10.6.6).
    """
    if not -_CALENDAR_MS <= ms <= _CALENDAR_MS:
        return str(ms)
    days, rest = divmod(ms, _DAY_MS)
    seconds, millis = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{_day_text(days)}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"


@lru_cache(maxsize=1024)  # the days of a corpus are few: 1.9 us become 0.9
def _day_text(days: int) -> str:
    year, month, day = _civil(days)
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+07}"
    return f"{shown}-{month:02}-{day:02}"


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in_month(year: int, month: int) -> int:
    return 29 if month == 2 and _is_leap(year) else _MONTH_DAYS[month - 1]


def _days(year: int, month: int, day: int) -> int:
    """Count days from 1970-01-01 in the proleptic Gregorian calendar.

    Years begin in March here, so that the leap day is the last day of its year; 719,468 days lie
    between 0000-03-01 and the epoch, 146,097 in each 400 years.
    """
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """Invert ``_days``."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = (month_from_march + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day
