"""The text of both traces (SPEC 10.11). Iterative: a lineage may be thousands of sessions deep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..collected import FoundTitle
from ..records import EventTrace, SessionRecord
from ..timestamps import render_time
from .authority import VisibleLineage
from .lines import one_line
from .render_parts import DATA_NOTE, availability_text, seqs_text, session_line

BOUNDARY: Final = "(it goes on outside this workspace, or with a session that is not known)"
HIDDEN_SUBTREE: Final = "(a subtree outside this workspace)"

_INDENT_BUDGET: Final = 16_000_000
"""Spaces a tree may cost: a chain of 4,000 sessions fits, one of 100,000 would print 10 GB."""
_INDENT_DEPTH: Final = 64
"""Deeper levels carry their depth as a number when the budget is exceeded."""


def render_lineage(lineage: VisibleLineage, titles: Mapping[str, FoundTitle]) -> str:
    """Return the text of ``session_trace``. ``titles`` holds every visible id."""
    header = lineage.target.header
    lines = [
        f"session {session_line(header.id, titles[header.id])}",
        f"created: {render_time(header.created_at)}",
        f"availability: {availability_text(lineage.target.live, lineage.target.persisted)}",
        DATA_NOTE,
        "",
    ]
    if not lineage.ancestors and not lineage.boundary:
        lines.append("ancestors: none, this is a root session")
    else:
        lines.append("ancestors, nearest first:")
        lines.extend(f"- {_record(record, titles)}" for record in lineage.ancestors)
        if lineage.boundary:
            lines.append(f"- {BOUNDARY}")
    lines.append("")
    lines.extend(_descendants(lineage, titles))
    return "\n".join(lines) + "\n"


def _record(record: SessionRecord, titles: Mapping[str, FoundTitle]) -> str:
    header = record.header
    return (
        f"{session_line(header.id, titles[header.id])}, created {render_time(header.created_at)}, "
        f"{availability_text(record.live, record.persisted)}"
    )


def _descendants(lineage: VisibleLineage, titles: Mapping[str, FoundTitle]) -> list[str]:
    if not lineage.descendants:
        return ["descendants: none"]
    base = lineage.descendants[0][0]  # preorder begins with a child of the target
    spaces = sum(2 * (depth - base) for depth, _ in lineage.descendants)
    deepest = _INDENT_DEPTH if spaces > _INDENT_BUDGET else None
    lines = ["descendants, oldest first:"]
    for depth, record in lineage.descendants:
        level = depth - base
        text = HIDDEN_SUBTREE if record is None else _record(record, titles)
        if deepest is not None and level > deepest:
            lines.append(f"{'  ' * deepest}- [depth {level}] {text}")
        else:
            lines.append(f"{'  ' * level}- {text}")
    return lines


def render_event_trace(trace: EventTrace, title: FoundTitle) -> str:
    """Return the text of ``session_event_trace``."""
    target = trace.target
    replaced_by = "none" if trace.replaced_by is None else str(trace.replaced_by)
    return "\n".join(
        [
            f"session {session_line(trace.header.id, title)}",
            f"event: seq {target.seq}, {one_line(target.type)}, {target.surface}, {render_time(target.time)}",
            f"replaced by: {replaced_by}",
            f"replacement chain: {seqs_text(trace.replacement_chain)}",
            f"replaces: {seqs_text(trace.replaced_event_seqs)}",
            f"made from: {seqs_text(trace.source_event_seqs)}",
            f"used by: {seqs_text(trace.derived_event_seqs)}",
            "",
        ]
    )
