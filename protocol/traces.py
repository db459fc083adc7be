"""Traces (SPEC 7): where a session stands among sessions, and what an event replaced and came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import attrs
from msgspec import UNSET

from .errors import Code, QueryError
from .event import Event, Surface
from .header import SessionHeader
from .json_value import whole
from .records import EventRecord, EventTrace, Lineage, SessionRecord
from .surface import Foldable, SurfaceFold


def trace_lineage(target_id: str, records: Iterable[SessionRecord]) -> Lineage:
    """Ancestors and descendants of one session among ``records``, by ``parentSession``.

    Of records with the same id the first counts. Iterative: 10,000 generations are fine, and a cycle that
    does not pass through the target's ancestors is never walked (SPEC 7.1.5).

    Raises: QueryError: SESSION_NOT_FOUND, then INVALID_LINEAGE for a cycle among the ancestors.
    Source: SPEC 7.1.
    """
    by_id: dict[str, SessionRecord] = {}
    for record in records:
        by_id.setdefault(record.header.id, record)
    target = by_id.get(target_id)
    if target is None:
        raise QueryError(Code.SESSION_NOT_FOUND)
    ancestors, unresolved = _ancestors(target, by_id)
    complete = unresolved is None
    return Lineage(
        target=target,
        ancestors=tuple(ancestors),
        complete=complete,
        unresolved_parent_id=unresolved,
        root=(ancestors[-1] if ancestors else target) if complete else None,
        descendants=tuple(_descendants(target, by_id)),
    )


def _ancestors(
    target: SessionRecord, by_id: dict[str, SessionRecord]
) -> tuple[list[SessionRecord], str | None]:
    """(ancestors, nearest first; the parent id that does not resolve)."""
    found: list[SessionRecord] = []
    seen = {target.header.id}
    parent = target.header.parent_session
    while parent is not None:
        if parent in seen:
            raise QueryError(Code.INVALID_LINEAGE, "the ancestors form a cycle")
        record = by_id.get(parent)
        if record is None:
            return found, parent
        seen.add(parent)
        found.append(record)
        parent = record.header.parent_session
    return found, None


def _descendants(
    target: SessionRecord, by_id: dict[str, SessionRecord]
) -> Iterable[tuple[int, SessionRecord]]:
    """Preorder with depth from 1; siblings by creation, then id (SPEC 7.1.3)."""
    children: defaultdict[str, list[SessionRecord]] = defaultdict(list)
    for record in by_id.values():
        if record.header.parent_session is not None:
            children[record.header.parent_session].append(record)
    for siblings in children.values():
        siblings.sort(key=lambda record: (record.header.created_at, record.header.id), reverse=True)
    stack = [(1, child) for child in children[target.header.id]]
    while stack:
        depth, record = stack.pop()
        yield depth, record
        stack.extend((depth + 1, child) for child in children.get(record.header.id, ()))


class Traceable(Foldable, Protocol):
    """What an event trace looks at; an ``Event`` and a ``Skeleton`` both are."""

    @property
    def time(self) -> int: ...


@attrs.frozen(slots=True, kw_only=True)
class Skeleton:
    """An event without its payload, as an index keeps it. Absent fields are ``UNSET``."""

    seq: int
    type: str
    time: int
    surface_op: object = UNSET
    source_event_seqs: object = UNSET


def trace_event(header: SessionHeader, events: Sequence[Event], seq: object) -> EventTrace:
    """What one event replaced, was replaced by, cites and is cited by.

    Raises: QueryError: EVENT_NOT_FOUND before the log is folded, then INVALID_SURFACE.
    Source: SPEC 7.2.
    """
    target = _target(events, seq)
    trace = _Trace(target.seq)
    fold = SurfaceFold(compact=False)
    for event in events:
        step = fold.append(event)
        trace.take(event.seq, step.surface, step.shadowed, step.sources)
    return trace.result(header, target)


def trace_skeleton(header: SessionHeader, skeletons: Sequence[Traceable], seq: object) -> EventTrace:
    """The same from an index's skeleton of a log that was folded before, whose payloads are not at hand."""
    target = _target(skeletons, seq)
    trace = _Trace(target.seq)
    fold = SurfaceFold()
    for skeleton in skeletons:
        step = fold.append_skeleton(skeleton)
        trace.take(skeleton.seq, step.surface, step.shadowed, step.sources)
    return trace.result(header, target)


def _target(events: Sequence[Traceable], seq: object) -> Traceable:
    """The event at place ``seq`` if it carries that seq; never counts from the end (SPEC 7.2.1, 8.4)."""
    index = whole(seq)
    if type(index) is int and 0 <= index < len(events) and events[index].seq == index:
        return events[index]
    raise QueryError(Code.EVENT_NOT_FOUND)


_NONE: Final[tuple[int, ...]] = ()


class _Trace:
    """Gathers what concerns one seq while a log is folded."""

    def __init__(self, seq: int) -> None:
        self._seq = seq
        self._surface: Surface = "log-only"
        self._chain: list[int] = []
        self._replaced = _NONE
        self._sources = _NONE
        self._derived: list[int] = []

    def take(self, seq: int, surface: Surface, shadowed: tuple[int, ...], sources: tuple[int, ...]) -> None:
        if seq == self._seq:
            self._surface, self._replaced, self._sources = surface, shadowed, sources
        elif self._seq in sources:
            self._derived.append(seq)
        if shadowed and (self._chain[-1] if self._chain else self._seq) in shadowed:
            self._chain.append(seq)

    def result(self, header: SessionHeader, target: Traceable) -> EventTrace:
        surface: Surface = "shadowed" if self._chain else self._surface
        return EventTrace(
            header=header,
            target=EventRecord(
                session_id=header.id, seq=self._seq, type=target.type, time=target.time, surface=surface
            ),
            replaced_by=self._chain[0] if self._chain else None,
            replacement_chain=tuple(self._chain),
            replaced_event_seqs=self._replaced,
            source_event_seqs=self._sources,
            derived_event_seqs=tuple(self._derived),
        )
