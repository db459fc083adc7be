"""SPEC 10.6: timestamps, against rational numbers and a calendar walked by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.timestamp_model import instant_ms, month_days
from session_query.protocol.timestamps import (
    InvalidTimestamp,
    parse_timestamp,
    render_time,
    timestamp_bounds,
)

TINY = 5e-324


def above(value: float) -> float:
    return math.nextafter(value, math.inf)


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("2031-03-05T06:07:08Z", 1930457228000, 1930457228000),
        ("2031-03-05T06:07Z", 1930457220000, 1930457220000),
        ("2031-03-05T06:07:08+05:30", 1930437428000, 1930437428000),
        ("2031-03-05T06:07:08.25Z", 1930457228250, 1930457228250),
        ("2031-03-05T06:07:08.2500Z", 1930457228250, 1930457228250),
        ("2031-03-05T06:07:08.25000001Z", above(1930457228250), below(1930457228251)),
        ("1970-01-01T00:00:00.0000001Z", TINY, below(1)),
        ("1969-12-31T23:59:59.9999999Z", above(-1), -TINY),
        ("1969-12-31T23:59:59.87600001Z", above(-124), below(-123)),
        ("0000-01-01T00:00+23:59", -62167305540000, -62167305540000),
        ("9999-12-31T23:59:59.999-23:59", 253402387139999, 253402387139999),
        ("0000-02-29T00:00Z", -62162121600000, -62162121600000),
    ],
)
def test_10_6_worked_examples(text: str, lower: float, upper: float) -> None:
    assert timestamp_bounds(text, text) == (lower, upper)
    assert timestamp_bounds(text, None) == (lower, None)
    assert timestamp_bounds(None, text) == (None, upper)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2031-03-05",
        "2031-03-05T06:07",
        "2031-03-05T06:07:08",
        "2031-03-05t06:07:08Z",
        "2031-03-05T06:07:08z",
        "2031-03-05 06:07:08Z",
        "2031-03-05T06:07:08Z\n",
        " 2031-03-05T06:07:08Z",
        "2031-03-05T06:07.5Z",
        "2031-03-05T06:07:08.Z",
        "2031-03-05T06:07:08,5Z",
        "2031-03-05T06:07:08+0530",
        "2031-03-05T06:07:08+05",
        "2031-03-05T06:07:08+24:00",
        "2031-03-05T06:07:08+05:60",
        "2031-03-05T06:07:08+05:30Z",
        "2031-3-5T06:07:08Z",
        "12031-03-05T06:07:08Z",
        "-2031-03-05T06:07:08Z",
        "+002031-03-05T06:07:08Z",
        "٢٠٣١-03-05T06:07:08Z",
        "2031-00-05T06:07:08Z",
        "2031-13-05T06:07:08Z",
        "2031-03-00T06:07:08Z",
        "2031-04-31T06:07:08Z",
        "2031-02-29T06:07:08Z",
        "2100-02-29T06:07:08Z",
        "2031-03-05T24:00:00Z",
        "2031-03-05T06:60:08Z",
        "2031-03-05T06:07:60Z",
    ],
)
def test_10_6_1_and_2_what_is_no_timestamp(text: str) -> None:
    with pytest.raises(InvalidTimestamp):
        parse_timestamp(text)


@pytest.mark.parametrize("text", ["2028-02-29T00:00Z", "2000-02-29T00:00Z", "0000-02-29T00:00Z"])
def test_10_6_2_leap_days(text: str) -> None:
    parse_timestamp(text)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2031-03-05T06:07:08.0000002Z", "2031-03-05T06:07:08.0000001Z"),
        ("2031-03-05T06:07:08.00000011Z", "2031-03-05T06:07:08.0000001Z"),
        ("2031-03-05T06:07:08Z", "2031-03-05T06:07:08+00:01"),
        ("2031-03-05T06:07:08.001Z", "2031-03-05T06:07:08Z"),
    ],
)
def test_10_6_5_a_reversed_pair(first: str, last: str) -> None:
    with pytest.raises(InvalidTimestamp):
        timestamp_bounds(first, last)
    timestamp_bounds(last, first)


def test_10_6_5_a_pair_inside_one_millisecond_is_legal_and_empty() -> None:
    lower, upper = timestamp_bounds("2031-03-05T06:07:08.0001Z", "2031-03-05T06:07:08.0009Z")
    assert lower is not None
    assert upper is not None
    assert 1930457228000 < lower < upper < 1930457228001


def test_a_fraction_may_have_any_number_of_digits() -> None:
    instant = parse_timestamp("1970-01-01T00:00:00." + "0" * 200_000 + "1Z")
    assert instant.lower_bound() == TINY
    assert parse_timestamp("1970-01-01T00:00:00." + "0" * 200_000 + "Z").lower_bound() == 0


@st.composite
def stamps(draw: st.DrawFn) -> tuple[str, Fraction]:
    year = draw(st.one_of(st.integers(0, 9999), st.sampled_from([0, 1969, 1970, 2000, 2100, 9999])))
    month = draw(st.integers(1, 12))
    day = draw(st.integers(1, month_days(year, month)))
    hour, minute, second = draw(st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59)))
    fraction = draw(st.text(alphabet="0019", max_size=12))
    offset = draw(st.integers(-(23 * 60 + 59), 23 * 60 + 59))
    sign = "-" if offset < 0 else "+"
    zone = (
        f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
        if offset
        else draw(st.sampled_from(["Z", "+00:00", "-00:00"]))
    )
    text = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    text += f".{fraction}" if fraction else ""
    return text + zone, instant_ms(year, month, day, hour, minute, second, fraction, offset)


@settings(max_examples=200)
@given(stamps())
def test_10_6_4_bounds_agree_with_rational_numbers(stamp: tuple[str, Fraction]) -> None:
    text, exact = stamp
    lower, upper = timestamp_bounds(text, text)
    assert lower is not None
    assert upper is not None
    floor = math.floor(exact)
    for ms in range(floor - 2, floor + 4):
        assert (ms >= lower) == (Fraction(ms) >= exact)
        assert (ms <= upper) == (Fraction(ms) <= exact)
    if exact == floor:
        assert (lower, upper) == (floor, floor)
    else:
        assert (lower, upper) == (above(floor), below(floor + 1))


@settings(max_examples=200)
@given(stamps(), stamps())
def test_10_6_5_order_agrees_with_rational_numbers(
    one: tuple[str, Fraction], two: tuple[str, Fraction]
) -> None:
    if one[1] > two[1]:
        with pytest.raises(InvalidTimestamp):
            timestamp_bounds(one[0], two[0])
    else:
        lower, upper = timestamp_bounds(one[0], two[0])
        assert lower is not None
        assert upper is not None
        assert lower <= upper


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1930457228250, "2031-03-05T06:07:08.250Z"),
        (-62167219200000, "0000-01-01T00:00:00.000Z"),
        (-62167219200001, "-000001-12-31T23:59:59.999Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "+010000-01-01T00:00:00.000Z"),
        (8_640_000_000_000_000, "+275760-09-13T00:00:00.000Z"),
        (-8_640_000_000_000_000, "-271821-04-20T00:00:00.000Z"),
        (8_640_000_000_000_001, "8640000000000001"),
        (-8_640_000_000_000_001, "-8640000000000001"),
    ],
)
def test_10_6_6_rendered_times(ms: int, shown: str) -> None:
    assert render_time(ms) == shown


@settings(max_examples=200)
@given(stamps())
def test_a_rendered_time_reads_back(stamp: tuple[str, Fraction]) -> None:
    ms = math.floor(stamp[1])
    shown = render_time(ms)
    if len(shown) == 24:
        assert parse_timestamp(shown).ms == ms
