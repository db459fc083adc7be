"""Filter clauses (SPEC 5): ANDed in a list, values inside one clause ORed.

Parsing accepts what programs send (lists of ``{"kind": ...}`` objects) and what our own code builds
(the clause types below); both go through the same checks, so no invalid clause reaches an engine. Matching
is in ``predicates``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias, TypeVar, cast

import attrs

from .errors import Code, QueryError
from .event import SURFACES, Surface
from .json_value import SAFE_INTEGER_MAX, whole
from .whitespace import is_blank

Availability: TypeAlias = Literal["live", "persisted"]
Number: TypeAlias = int | float
AVAILABILITIES: Final[tuple[Availability, ...]] = ("live", "persisted")


@attrs.frozen
class IdClause:
    values: tuple[str, ...]


@attrs.frozen
class CwdClause:
    values: tuple[str | None, ...]


@attrs.frozen
class CreatedAtClause:
    lower: Number | None
    upper: Number | None


@attrs.frozen
class ParentClause:
    values: tuple[str | None, ...]


@attrs.frozen
class AvailabilityClause:
    values: tuple[Availability, ...]


@attrs.frozen
class SeqClause:
    lower: Number | None
    upper: Number | None


@attrs.frozen
class TimeClause:
    lower: Number | None
    upper: Number | None


@attrs.frozen
class TypeClause:
    values: tuple[str, ...]


@attrs.frozen
class SurfaceClause:
    values: tuple[Surface, ...]


@attrs.frozen
class TextClause:
    text: str


SessionClause: TypeAlias = IdClause | CwdClause | CreatedAtClause | ParentClause | AvailabilityClause
EventClause: TypeAlias = SeqClause | TimeClause | TypeClause | SurfaceClause | TextClause

_Clause = TypeVar("_Clause")


def parse_session_filters(raw: object) -> tuple[SessionClause, ...]:
    """Return validated session clauses, detached from ``raw``, in the given order.

    Args: raw: None (no filters), or a list of clause objects such as ``{"kind": "id", "values": ["a"]}``
    or ``{"kind": "created-at", "from": 0, "to": 9.5}``; clause instances are accepted too.
    Raises: QueryError: INVALID_FILTER for any defect (SPEC 5.1-5.3, 16.8).
    """
    return _parse_list(raw, _session_clause)


def parse_event_filters(raw: object, *, allow_text: bool) -> tuple[EventClause, ...]:
    """Return validated event clauses, detached from ``raw``, in the given order.

    Args: allow_text: whether a ``text`` clause is legal; it is for filters, not for searches.
    Raises: QueryError: INVALID_FILTER for any defect (SPEC 5.1-5.3, 6.1, 16.8).
    """
    return _parse_list(raw, lambda item: _event_clause(item, allow_text))


def _parse_list(raw: object, parse: Callable[[object], _Clause]) -> tuple[_Clause, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list | tuple):
        raise _invalid("filters must be a list of clauses")
    return tuple([parse(item) for item in tuple(raw)])


def _session_clause(item: object) -> SessionClause:
    match item:
        case IdClause():
            return IdClause(_strings("id", item.values))
        case CwdClause():
            return CwdClause(_strings_or_null("cwd", item.values))
        case CreatedAtClause():
            return CreatedAtClause(*_bounds("created-at", item.lower, item.upper))
        case ParentClause():
            return ParentClause(_strings_or_null("parent", item.values))
        case AvailabilityClause():
            return AvailabilityClause(_availability(item.values))
    clause, kind = _kind_of(item)
    match kind:
        case "id":
            return IdClause(_strings(kind, clause.get("values")))
        case "cwd":
            return CwdClause(_strings_or_null(kind, clause.get("values")))
        case "created-at":
            return CreatedAtClause(*_raw_bounds(kind, clause))
        case "parent":
            return ParentClause(_strings_or_null(kind, clause.get("values")))
        case "availability":
            return AvailabilityClause(_availability(clause.get("values")))
    raise _invalid("a session clause has an unknown kind")


def _event_clause(item: object, allow_text: bool) -> EventClause:
    match item:
        case SeqClause():
            return SeqClause(*_bounds("seq", item.lower, item.upper))
        case TimeClause():
            return TimeClause(*_bounds("time", item.lower, item.upper))
        case TypeClause():
            return TypeClause(_strings("type", item.values))
        case SurfaceClause():
            return SurfaceClause(_surfaces(item.values))
        case TextClause():
            return _text_clause(item.text, allow_text)
    clause, kind = _kind_of(item)
    match kind:
        case "seq":
            return SeqClause(*_raw_bounds(kind, clause))
        case "time":
            return TimeClause(*_raw_bounds(kind, clause))
        case "type":
            return TypeClause(_strings(kind, clause.get("values")))
        case "surface":
            return SurfaceClause(_surfaces(clause.get("values")))
        case "text":
            return _text_clause(clause.get("text"), allow_text)
    raise _invalid("an event clause has an unknown kind")


def _kind_of(item: object) -> tuple[Mapping[str, object], str]:
    if not isinstance(item, dict):
        raise _invalid("a filter clause must be an object")
    kind = item.get("kind")
    if type(kind) is not str:
        raise _invalid("a filter clause needs a kind")
    return cast("Mapping[str, object]", item), kind


def _values(kind: str, raw: object) -> tuple[object, ...]:
    if not isinstance(raw, list | tuple):
        raise _invalid(f"the values of a {kind} clause must be a list")
    return tuple(raw)


def _strings(kind: str, raw: object) -> tuple[str, ...]:
    values = _values(kind, raw)
    if not all(type(value) is str for value in values):
        raise _invalid(f"the values of a {kind} clause must be strings")
    return cast("tuple[str, ...]", values)


def _strings_or_null(kind: str, raw: object) -> tuple[str | None, ...]:
    values = _values(kind, raw)
    if not all(value is None or type(value) is str for value in values):
        raise _invalid(f"the values of a {kind} clause must be strings or null")
    return cast("tuple[str | None, ...]", values)


def _availability(raw: object) -> tuple[Availability, ...]:
    values = _strings("availability", raw)
    if not all(value in AVAILABILITIES for value in values):
        raise _invalid("an availability value must be live or persisted")
    return cast("tuple[Availability, ...]", values)


def _surfaces(raw: object) -> tuple[Surface, ...]:
    values = _strings("surface", raw)
    if not all(value in SURFACES for value in values):
        raise _invalid("a surface value must be current, shadowed or log-only")
    return cast("tuple[Surface, ...]", values)


def _text_clause(raw: object, allow_text: bool) -> TextClause:
    if not allow_text:
        raise _invalid("a text clause is not accepted by a search")
    if type(raw) is not str or is_blank(raw):
        raise _invalid("the text of a text clause must be a string that is not blank")
    return TextClause(raw)


def _raw_bounds(kind: str, clause: Mapping[str, object]) -> tuple[Number | None, Number | None]:
    for key in ("from", "to"):
        if key in clause and clause[key] is None:
            raise _invalid(f"a bound of a {kind} clause must be a number")
    return _bounds(kind, clause.get("from"), clause.get("to"))


def _bounds(kind: str, lower: object, upper: object) -> tuple[Number | None, Number | None]:
    low, high = _bound(kind, lower), _bound(kind, upper)
    if low is not None and high is not None and low > high:
        raise _invalid(f"the bounds of a {kind} clause are reversed")
    return low, high


def _bound(kind: str, raw: object) -> Number | None:
    """Return the bound as an engine can hold it: a safe integer, or a finite double.

    A wider integer becomes the nearest double. That keeps its order against every safe integer, and
    no stored time or seq is anything else.
    """
    if raw is None:
        return None
    if type(raw) is int and -SAFE_INTEGER_MAX <= raw <= SAFE_INTEGER_MAX:
        return raw
    if type(raw) is int or type(raw) is float:
        try:
            value = float(raw)
        except OverflowError:
            value = math.inf
        if math.isfinite(value):
            return cast("Number", whole(value))
    raise _invalid(f"a bound of a {kind} clause must be a finite number")


def _invalid(message: str) -> QueryError:
    return QueryError(Code.INVALID_FILTER, message)
