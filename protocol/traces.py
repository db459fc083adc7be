"""Traces (SPEC 7): where a session stands among sessions, and what an event replaced and came from."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, MutableSequence, Sequence
from sys import intern
from typing import Final, Protocol

import attrs
from msgspec import UNSET

from .errors import Code, QueryError
from .event import SURFACES, Event
from .header import SessionHeader
from .json_value import whole
from .records import EventRecord, EventTrace, Lineage, SessionRecord
from .surface import Foldable, FoldStep, SurfaceFold


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
    _check_target(events, seq)
    relations = Relations(compact=False)
    relations.extend(events)
    return relations.trace(header, seq)


def trace_skeleton(header: SessionHeader, skeletons: Sequence[Traceable], seq: object) -> EventTrace:
    """The same from an index's skeleton of a log that was folded before, whose payloads are not at hand."""
    _check_target(skeletons, seq)
    relations = Relations()
    relations.extend_skeleton(skeletons)
    return relations.trace(header, seq)


def _check_target(events: Sequence[Traceable], seq: object) -> None:
    """Raise EVENT_NOT_FOUND unless the event at place ``seq`` carries it; never counts from the end."""
    place = event_place(seq, len(events))
    if events[place].seq != place:
        raise QueryError(Code.EVENT_NOT_FOUND)


def event_place(seq: object, length: int) -> int:
    """``seq`` as a place in a log of ``length`` events (SPEC 7.2.1). Raises: QueryError EVENT_NOT_FOUND."""
    place = whole(seq)
    if type(place) is int and 0 <= place < length:
        return place
    raise QueryError(Code.EVENT_NOT_FOUND)


_SURFACE_CODES: Final = {surface: code for code, surface in enumerate(SURFACES)}


class Relations:
    """The relations of all events of one log, folded once and asked often; it grows with its log.

    Costs some 35 bytes an event and 200 for each relation. ``compact``: see ``SurfaceFold``. An event that
    breaks the surface leaves it as it was before that event.
    """

    def __init__(self, *, compact: bool = True) -> None:
        self._fold = SurfaceFold(compact=compact)
        self._types: list[str] = []
        self._times: MutableSequence[int] = array("q") if compact else []  # a provider's may be any number
        self._surfaces = bytearray()
        self._replaced: dict[int, tuple[int, ...]] = {}
        self._replaced_by: dict[int, int] = {}
        self._sources: dict[int, tuple[int, ...]] = {}
        self._derived: dict[int, list[int]] = {}
        self._links = 0

    def __len__(self) -> int:
        """How many events were taken: the seq expected next."""
        return len(self._types)

    @property
    def weight(self) -> int:
        """What is kept, in events: a relation (an event replaced, or cited) counts as six."""
        return len(self) + 6 * self._links

    def extend(self, events: Iterable[Event]) -> None:
        """Take the next events. Raises: SurfaceError: the log breaks SPEC 2."""
        for event in events:
            self._take(event, self._fold.append(event))

    def extend_skeleton(self, skeletons: Iterable[Traceable]) -> None:
        """Take the next events without their payloads; E18 is taken as passed. Raises: SurfaceError."""
        for skeleton in skeletons:
            self._take(skeleton, self._fold.append_skeleton(skeleton))

    def _take(self, event: Traceable, step: FoldStep) -> None:
        seq = event.seq
        self._types.append(intern(event.type))
        self._times.append(event.time)
        self._surfaces.append(_SURFACE_CODES[step.surface])
        self._links += len(step.shadowed) + len(step.sources)
        if step.shadowed:
            self._replaced[seq] = step.shadowed
            self._replaced_by.update(dict.fromkeys(step.shadowed, seq))
        if step.sources:
            self._sources[seq] = step.sources
            for source in dict.fromkeys(step.sources):
                self._derived.setdefault(source, []).append(seq)

    def trace(self, header: SessionHeader, seq: object) -> EventTrace:
        """One event's relations. Raises: QueryError EVENT_NOT_FOUND. Source: SPEC 7.2."""
        place = event_place(seq, len(self))
        chain: list[int] = []
        after = self._replaced_by.get(place)
        while after is not None:
            chain.append(after)
            after = self._replaced_by.get(after)
        return EventTrace(
            header=header,
            target=EventRecord(
                session_id=header.id,
                seq=place,
                type=self._types[place],
                time=self._times[place],
                surface="shadowed" if chain else SURFACES[self._surfaces[place]],
            ),
            replaced_by=chain[0] if chain else None,
            replacement_chain=tuple(chain),
            replaced_event_seqs=self._replaced.get(place, ()),
            source_event_seqs=self._sources.get(place, ()),
            derived_event_seqs=tuple(self._derived.get(place, ())),
        )
