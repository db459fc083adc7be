"""Exact reads (SPEC 8) as functions of a header and the events observed with it.

Results are detached: payloads are copied, so that no reader can change what another one sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from .envelope import detach
from .errors import Code, CorruptLog, QueryError
from .event import Event
from .header import SessionHeader
from .json_value import is_safe_integer, whole
from .limits import check_window as _check_sides
from .messages_shape import validate_log
from .records import EventRecord, EventWindow, SessionLog, SurfaceView
from .surface import fold

READ_WINDOW_MAX: Final = 50
"""Default of the setting ``read_window_max`` (SPEC 4.9)."""


@attrs.frozen
class Window:
    """Validated sizes of a read window, in events on each side."""

    before: int = 0
    after: int = 0

    def bounds(self, seq: int, length: int) -> tuple[int, int]:
        """First and last seq of the window around ``seq`` in a log of ``length`` events, inclusive."""
        return max(0, seq - self.before), min(length - 1, seq + self.after)


def check_window(before: object = 0, after: object = 0, *, maximum: int = READ_WINDOW_MAX) -> Window:
    """Validate a window before any source is touched. Null is no window (SPEC 16.8).

    Raises: QueryError: INVALID_WINDOW: a side is no integer in 0..``maximum``.
    Source: SPEC 8.4.
    """
    return Window(*_check_sides(before, after, maximum))


def event_number(seq: object) -> int:
    """``seq`` as the number an event could carry. Raises: QueryError: EVENT_NOT_FOUND for anything else."""
    number = whole(seq)
    if not is_safe_integer(number) or number < 0:
        raise QueryError(Code.EVENT_NOT_FOUND)
    return number


def read_window(header: SessionHeader, events: Sequence[Event], seq: object, window: Window) -> EventWindow:
    """One event and its raw neighbours of every type; the surface is not folded.

    Raises: QueryError: EVENT_NOT_FOUND: no event stands at that place, or it carries another seq.
    Source: SPEC 8.4.
    """
    place = event_number(seq)
    if place >= len(events) or events[place].seq != place:
        raise QueryError(Code.EVENT_NOT_FOUND)
    first, last = window.bounds(place, len(events))
    shown = tuple(detach(event) for event in events[first : last + 1])
    return EventWindow(
        header=header, target=shown[place - first], events=shown, first_seq=first, last_seq=last
    )


def list_events(header: SessionHeader, events: Sequence[Event]) -> tuple[EventRecord, ...]:
    """One record per event, ascending (SPEC 8.1). Raises: QueryError: INVALID_SURFACE."""
    surfaces = fold(events).surfaces
    return tuple(
        EventRecord(session_id=header.id, seq=event.seq, type=event.type, time=event.time, surface=surface)
        for event, surface in zip(events, surfaces, strict=True)
    )


def read_surface(header: SessionHeader, events: Sequence[Event]) -> SurfaceView:
    """The current surface, complete and in surface order (SPEC 8.2). Raises: QueryError: INVALID_SURFACE."""
    nodes = fold(events).nodes
    return SurfaceView(
        header=header,
        captured_through_seq=len(events) - 1 if events else None,
        events=tuple(detach(events[seq]) for seq in nodes),
    )


def read_log(header: SessionHeader, events: Sequence[Event]) -> SessionLog:
    """The complete raw log, after the validation a resume would run (SPEC 8.3).

    Raises: QueryError: CORRUPT_SESSION, the defect kept as its cause.
    """
    try:
        validate_log(events)
    except CorruptLog as exc:
        raise QueryError(Code.CORRUPT_SESSION, str(exc)) from exc
    return SessionLog(header=header, events=tuple(detach(event) for event in events))
