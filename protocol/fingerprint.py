"""The fingerprint that ties a cursor to its request (SPEC 6.9.2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Literal, TypeAlias

from .filters import (
    AvailabilityClause,
    CreatedAtClause,
    CwdClause,
    EventClause,
    IdClause,
    Number,
    ParentClause,
    SeqClause,
    SessionClause,
    SurfaceClause,
    TextClause,
    TimeClause,
    TypeClause,
)
from .json_value import JSON
from .records import Match

Scope: TypeAlias = Literal["sessions", "events"]


def fingerprint(
    *,
    scope: Scope,
    query: str,
    limit: int,
    match: Match = "exact",
    session_clauses: Iterable[SessionClause] = (),
    event_clauses: Iterable[EventClause] = (),
    target: str | None = None,
    reach: tuple[str | None, ...] | None = None,
) -> str:
    """Return 32 hex digits that are equal exactly for requests that mean the same pages.

    Clause order and value order do not matter; duplicate values, the effective limit and ``match`` do.
    Args: query: normalised. reach: the workspaces the asker is confined to, None for all of them.
    """
    canonical: JSON = [
        scope,
        target,
        query,
        match,
        limit,
        _sorted(_clause(clause) for clause in session_clauses),
        _sorted(_clause(clause) for clause in event_clauses),
        None if reach is None else _sorted(reach),
    ]
    return hashlib.sha256(_text(canonical).encode("ascii")).hexdigest()[:32]


def _clause(clause: SessionClause | EventClause) -> JSON:
    match clause:
        case IdClause(values):
            return ["id", _sorted(values)]
        case CwdClause(values):
            return ["cwd", _sorted(values)]
        case ParentClause(values):
            return ["parent", _sorted(values)]
        case AvailabilityClause(values):
            return ["availability", _sorted(values)]
        case TypeClause(values):
            return ["type", _sorted(values)]
        case SurfaceClause(values):
            return ["surface", _sorted(values)]
        case CreatedAtClause(lower, upper):
            return ["created-at", _bound(lower), _bound(upper)]
        case SeqClause(lower, upper):
            return ["seq", _bound(lower), _bound(upper)]
        case TimeClause(lower, upper):
            return ["time", _bound(lower), _bound(upper)]
        case TextClause(text):
            return ["text", text]


def _bound(value: Number | None) -> JSON:
    # 4 and 4.0 are one bound and print alike here; hex keeps neighbouring doubles apart.
    return None if value is None else float(value).hex()


def _sorted(items: Iterable[JSON]) -> list[JSON]:
    return sorted(items, key=_text)


def _text(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
