"""Filter clauses (SPEC 5): ANDed in a list, values inside one clause ORed."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .event import Surface

Availability: TypeAlias = Literal["live", "persisted"]
Number: TypeAlias = int | float


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
