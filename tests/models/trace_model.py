"""Traces as SPEC 7 tells them, recursively and by looking through everything every time."""

from __future__ import annotations

from msgspec import UNSET

from models.surface_model import model_fold
from session_query.protocol.event import Event
from session_query.protocol.records import SessionRecord


class Cycle(Exception):
    """The ancestors form a cycle."""


def model_ancestors(target: str, records: list[SessionRecord]) -> tuple[list[str], str | None]:
    """(ids of the ancestors, the id that does not resolve)."""
    parents = {record.header.id: record.header.parent_session for record in records}
    chain, at = [target], parents[target]
    while at is not None:
        if at in chain:
            raise Cycle
        if at not in parents:
            return chain[1:], at
        chain.append(at)
        at = parents[at]
    return chain[1:], None


def model_descendants(target: str, records: list[SessionRecord], depth: int = 1) -> list[tuple[int, str]]:
    children = [record.header for record in records if record.header.parent_session == target]
    found: list[tuple[int, str]] = []
    for child in sorted(children, key=lambda header: (header.created_at, header.id)):
        found += [(depth, child.id), *model_descendants(child.id, records, depth + 1)]
    return found


def model_trace(events: list[Event], seq: int) -> tuple[str, list[int], list[int], list[int], list[int]]:
    """(surface, replacement chain, replaced, sources, derived)."""
    _, replacements, kinds = model_fold(events)
    replacer = {gone: by for by, removed in replacements for gone in removed}
    chain, at = [], seq
    while at in replacer:
        at = replacer[at]
        chain.append(at)
    cites = [event.source_event_seqs if event.source_event_seqs is not UNSET else [] for event in events]
    derived = [index for index, sources in enumerate(cites) if seq in sources]  # type: ignore[operator]
    return kinds[seq], chain, dict(replacements).get(seq, []), list(cites[seq]), derived  # type: ignore[arg-type]
