"""The text of both searches (SPEC 10.11, 16.3, 16.9). Order is normative, wording is ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ..collected import FoundSession, FoundTitle
from ..records import EventHit, Receipt
from ..timestamps import render_time
from .lines import one_line, quoted_line, shown_id
from .receipts_text import receipt_line
from .render_parts import (
    CAPPED_LINE,
    DATA_NOTE,
    availability_text,
    match_text,
    session_line,
)

NO_SESSION_MATCH: Final = "No match in earlier sessions. Try other or fewer words, or drop filters."
NO_EVENT_MATCH: Final = "No match in this session. Try other or fewer words, or drop filters."
ROOT: Final = "root session"
OUTSIDE: Final = "outside this workspace or unknown"


@attrs.frozen(kw_only=True)
class ShownSession:
    """One hit with the decisions made: ``parent`` is an id, ``ROOT`` or ``OUTSIDE``.

    ``workspace`` and ``path`` are shown to an operator only; ``sub_agents`` is flat, with depths from 1.
    """

    found: FoundSession
    parent: str
    sub_agents: tuple[tuple[int, FoundSession], ...] = ()
    workspace: str | None = None
    path: str | None = None


def render_sessions(hits: Sequence[ShownSession], capped: bool, receipt: Receipt) -> str:
    """Return the text of ``session_search``; with no hits one fixed line, then the receipt."""
    if not hits:
        return f"{NO_SESSION_MATCH}\n\n{receipt_line(receipt)}\n"
    heading = "1 session found." if len(hits) == 1 else f"{len(hits)} sessions found."
    blocks = [f"{heading} {DATA_NOTE}"]
    blocks.extend(_session_block(number, hit) for number, hit in enumerate(hits, 1))
    return _closed(blocks, capped, receipt_line(receipt))


def _session_block(number: int, hit: ShownSession) -> str:
    found = hit.found
    lines = [
        f"{number}. {session_line(found.outward_id, found.title)}",
        f"   created: {render_time(found.header.created_at)}",
        f"   parent: {hit.parent}",
        f"   availability: {availability_text(found.live, found.persisted, found.source_gone)}",
    ]
    if hit.workspace is not None:
        lines.append(f"   workspace: {one_line(hit.workspace)}")
    if hit.path is not None:
        lines.append(f"   log: {one_line(hit.path)}")
    lines.extend(_best_match(found, "   "))
    if hit.sub_agents:
        lines.append("   sub-agents that match:")
        for depth, sub in hit.sub_agents:
            indent = "   " + "  " * min(depth, 32)
            lines.append(f"{indent}- {session_line(sub.outward_id, sub.title)}")
            lines.append(f"{indent}  created: {render_time(sub.header.created_at)}")
            lines.extend(_best_match(sub, indent + "  "))
    return "\n".join(lines)


def _best_match(found: FoundSession, indent: str) -> list[str]:
    best = found.best_match
    return [
        f"{indent}best match: {match_text(best.seq, best.type, best.surface, best.time, found.tier)}",
        f"{indent}{quoted_line(best.snippet)}",
    ]


def render_events(
    session_id: str, title: FoundTitle, hits: Sequence[EventHit], capped: bool, receipt: Receipt
) -> str:
    """Return the text of ``session_event_search``: the target first, also when nothing matched."""
    target = f"session {session_line(session_id, title)}"
    closing = receipt_line(receipt, within_session=True)
    if not hits:
        return f"{target}\n{NO_EVENT_MATCH}\n\n{closing}\n"
    heading = "1 matching event." if len(hits) == 1 else f"{len(hits)} matching events."
    blocks = [f"{target}\n{heading} {DATA_NOTE}"]
    for number, hit in enumerate(hits, 1):
        match = match_text(hit.seq, hit.type, hit.surface, hit.time, hit.tier)
        blocks.append(f"{number}. {match}\n   {quoted_line(hit.snippet)}")
    return _closed(blocks, capped, closing)


def parent_text(parent_id: str | None) -> str:
    """Return how a parent is shown when it may be; None means that it may not."""
    return OUTSIDE if parent_id is None else shown_id(parent_id)


def _closed(blocks: list[str], capped: bool, closing: str) -> str:
    if capped:
        blocks.append(CAPPED_LINE)
    return "\n\n".join([*blocks, closing]) + "\n"
