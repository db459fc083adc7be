"""What a filter clause means, as tests over records and documents (SPEC 5). Engines must agree with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .casefold import fold
from .filters import (
    AvailabilityClause,
    CreatedAtClause,
    CwdClause,
    EventClause,
    IdClause,
    ParentClause,
    SeqClause,
    SessionClause,
    SurfaceClause,
    TextClause,
    TimeClause,
    TypeClause,
)
from .records import EventDocument, SessionRecord
from .whitespace import collapse

_Range: TypeAlias = CreatedAtClause | SeqClause | TimeClause


def session_predicate(clauses: tuple[SessionClause, ...]) -> Callable[[SessionRecord], bool]:
    """Return the test whether a record matches every clause (SPEC 5)."""
    tests = [_session_test(clause) for clause in clauses]
    return lambda record: all(test(record) for test in tests)


def event_predicate(clauses: tuple[EventClause, ...]) -> Callable[[EventDocument], bool]:
    """Return the test whether a document matches every clause, text scan included (SPEC 5, 5.6)."""
    tests = [_event_test(clause) for clause in clauses]
    return lambda document: all(test(document) for test in tests)


def _session_test(clause: SessionClause) -> Callable[[SessionRecord], bool]:
    match clause:
        case IdClause(values):
            ids = frozenset(values)
            return lambda record: record.header.id in ids
        case CwdClause(values):
            cwds = frozenset(values)
            return lambda record: record.header.cwd in cwds
        case CreatedAtClause():
            return lambda record: _inside(clause, record.header.created_at)
        case ParentClause(values):
            parents = frozenset(values)
            return lambda record: record.header.parent_session in parents
        case AvailabilityClause(values):
            live, persisted = "live" in values, "persisted" in values
            return lambda record: (live and record.live) or (persisted and record.persisted)


def _event_test(clause: EventClause) -> Callable[[EventDocument], bool]:
    match clause:
        case SeqClause():
            return lambda document: _inside(clause, document.seq)
        case TimeClause():
            return lambda document: _inside(clause, document.time)
        case TypeClause(values):
            types = frozenset(values)
            return lambda document: document.type in types
        case SurfaceClause(values):
            surfaces = frozenset(values)
            return lambda document: document.surface in surfaces
        case TextClause(text):
            needle = fold(collapse(text))
            return lambda document: needle in fold(collapse(document.text))


def _inside(clause: _Range, value: int) -> bool:
    # Python compares an integer with a double exactly, so fractional bounds need no care here.
    return (clause.lower is None or value >= clause.lower) and (clause.upper is None or value <= clause.upper)


def text_matches(query: str, text: str) -> bool:
    """Return whether ``text`` holds the pieces of ``query`` in order, whitespace between them (SPEC 5.6).

    Collapsing both sides first is the same as asking for one or more whitespace characters between
    consecutive pieces, and keeps the scan linear in the text whatever the query holds.
    """
    return fold(collapse(query)) in fold(collapse(text))
