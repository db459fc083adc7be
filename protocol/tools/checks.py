"""Local checks of tool arguments: everything that is refused before any I/O (SPEC 10.4, 10.5).

Each check is one function, so that the bodies can run them in the order the specification gives. What
they raise is the tools' own wording: it reaches the model as it is and is not logged as a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import UNSET, UnsetType

from ..errors import Code, QueryError, ToolError
from ..event import Surface
from ..filters import (
    Availability,
    AvailabilityClause,
    CreatedAtClause,
    IdClause,
    SeqClause,
    SurfaceClause,
    TimeClause,
    TypeClause,
)
from ..json_value import SAFE_INTEGER_MAX
from ..query import normalise_query
from ..timestamps import InvalidTimestamp, timestamp_bounds

_QUERY_TEXT: Final = "The query is empty or contains a NUL character. Give at least one word."
_V = TypeVar("_V")


def check_query(raw: str) -> str:
    """Return the normalised query. Raises: ToolError: INVALID_QUERY."""
    try:
        return normalise_query(raw)
    except QueryError:
        refusal = ToolError(Code.INVALID_QUERY, _QUERY_TEXT)
    raise refusal


def check_seq(name: str, value: int) -> int:
    """Return a seq-like integer. Raises: ToolError: INVALID_FILTER if negative or beyond 2^53 - 1."""
    if not 0 <= value <= SAFE_INTEGER_MAX:
        raise _invalid(f"{name} must be between 0 and 9007199254740991.")
    return value


def seq_range(
    names: tuple[str, str], lower: int | UnsetType, upper: int | UnsetType
) -> tuple[int | None, int | None]:
    """Return the bounds of a seq range. Raises: ToolError: INVALID_FILTER (lower, upper, reversed)."""
    low = None if lower is UNSET else check_seq(names[0], lower)
    high = None if upper is UNSET else check_seq(names[1], upper)
    if low is not None and high is not None and low > high:
        raise _invalid(f"{names[0]} must not be greater than {names[1]}.")
    return low, high


def seq_clauses(low: int | None, high: int | None) -> tuple[SeqClause, ...]:
    return () if low is None and high is None else (SeqClause(low, high),)


def time_clauses(
    names: tuple[str, str], lower: str | UnsetType, upper: str | UnsetType
) -> tuple[TimeClause, ...]:
    """Return the clause for an event-time range. Raises: ToolError: INVALID_FILTER (SPEC 10.6)."""
    bounds = _time_bounds(names, lower, upper)
    return () if bounds is None else (TimeClause(*bounds),)


def created_clauses(
    names: tuple[str, str], lower: str | UnsetType, upper: str | UnsetType
) -> tuple[CreatedAtClause, ...]:
    """Return the clause for a creation range. Raises: ToolError: INVALID_FILTER (SPEC 10.6)."""
    bounds = _time_bounds(names, lower, upper)
    return () if bounds is None else (CreatedAtClause(*bounds),)


def id_clauses(values: list[str] | UnsetType) -> tuple[IdClause, ...]:
    return () if values is UNSET else (IdClause(_not_empty("session_ids", values)),)


def availability_clauses(values: list[Availability] | UnsetType) -> tuple[AvailabilityClause, ...]:
    return () if values is UNSET else (AvailabilityClause(_not_empty("availability", values)),)


def type_clauses(values: list[str] | UnsetType) -> tuple[TypeClause, ...]:
    return () if values is UNSET else (TypeClause(_not_empty("event_types", values)),)


def surface_clauses(name: str, values: list[Surface] | UnsetType) -> tuple[SurfaceClause, ...]:
    return () if values is UNSET else (SurfaceClause(_not_empty(name, values)),)


def unique_parents(values: list[str] | UnsetType) -> tuple[str, ...] | None:
    """Return the requested parents, each once, in request order; None when none were asked for."""
    return None if values is UNSET else tuple(dict.fromkeys(_not_empty("parent_session_ids", values)))


def _not_empty(name: str, values: Sequence[_V]) -> tuple[_V, ...]:
    if not values:
        raise _invalid(f"{name} must not be an empty list; leave it out instead.")
    return tuple(values)


def _time_bounds(
    names: tuple[str, str], lower: str | UnsetType, upper: str | UnsetType
) -> tuple[int | float | None, int | float | None] | None:
    if lower is UNSET and upper is UNSET:
        return None
    try:
        return timestamp_bounds(
            None if lower is UNSET else lower,
            None if upper is UNSET else upper,
        )
    except InvalidTimestamp as error:
        defect = str(error)
    raise _invalid(f"{names[0]} / {names[1]}: {defect}.")


def _invalid(message: str) -> ToolError:
    return ToolError(Code.INVALID_FILTER, message)
