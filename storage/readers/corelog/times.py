"""Times as foreign writers spell them, as epoch milliseconds.

ISO 8601 with or without a zone (none means UTC: the readers know no better), or a number of seconds,
milliseconds, microseconds or nanoseconds, told apart by size.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from ....protocol.json_value import JSON, SAFE_INTEGER_MAX

_SECONDS_BELOW: Final = 1e11  # as seconds the year 5138, as milliseconds March 1973
_MILLIS_BELOW: Final = 1e14
_MICROS_BELOW: Final = 1e17
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_ms(value: JSON) -> int | None:
    """The moment ``value`` names, or None if it names none. Never raises."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return _from_number(value)
    return _from_text(value) if isinstance(value, str) else None


def _from_number(value: float) -> int | None:
    size = abs(value)
    if not size < float("inf"):
        return None
    if size < _SECONDS_BELOW:
        scaled: float = value * 1000
    elif size < _MILLIS_BELOW:
        scaled = value
    elif size < _MICROS_BELOW:
        scaled = value // 1000
    else:
        scaled = value // 1_000_000
    whole = math.floor(scaled)
    return whole if abs(whole) <= SAFE_INTEGER_MAX else None


def _from_text(text: str) -> int | None:
    # Anything without a date separator ("20260429", "12") is no time a log writer means.
    if len(text) > 64 or text.count("-") < 2:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        delta = moment - _EPOCH
    except (ValueError, OverflowError):
        return None
    return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000
