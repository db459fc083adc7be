"""The event envelope (SPEC 1.2). An accepted event never changes."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from .json_value import JSON

Surface: TypeAlias = Literal["current", "shadowed", "log-only"]
SURFACES: tuple[Surface, ...] = ("current", "shadowed", "log-only")


class Event(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
    forbid_unknown_fields=True,
    gc=False,  # JSON makes no cycles; a log read whole is then not walked again and again by the collector
):
    """One event of a log. Field order is the order in which exact reads show the keys.

    ``surface_op`` and ``source_event_seqs`` are kept raw (any JSON, or absent): the surface fold
    judges them, so that a broken log can still be read event by event (SPEC 8.4).
    """

    type: str
    seq: int
    time: int
    data: JSON
    surface_op: JSON | UnsetType = UNSET
    source_event_seqs: JSON | UnsetType = UNSET
    ignorable: bool | UnsetType = UNSET
