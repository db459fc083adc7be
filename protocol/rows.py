"""Results of the service as plain JSON for programs, keys in snake_case (SPEC 17)."""

from __future__ import annotations

from .collected import CollectedEvents, CollectedSessions, FoundSession
from .envelope import event_to_json
from .event import Event
from .header import SessionHeader
from .json_value import JSON
from .records import (
    BestMatch,
    EventHit,
    EventRecord,
    EventTrace,
    EventWindow,
    Lineage,
    Receipt,
    SessionRecord,
)

Row = dict[str, JSON]


def header_row(header: SessionHeader) -> Row:
    """A header; absent fields are null, so that every row has the same keys."""
    return {
        "session_id": header.id,
        "created_at": header.created_at,
        "workspace": header.cwd,
        "parent_session": header.parent_session,
        "seed_length": header.seed_length,
        "origin": header.origin,
        "delegation_depth": header.delegation_depth or 0,
        "agent_preset": header.agent_preset,
    }


def record_row(record: SessionRecord) -> Row:
    return header_row(record.header) | {
        "source": record.source,
        "live": record.live,
        "persisted": record.persisted,
        "conflicted": record.conflicted,
    }


def event_row(event: Event) -> Row:
    """An event as on disk: its own keys, camelCase, in their order."""
    return event_to_json(event)


def best_match_row(best: BestMatch) -> Row:
    return {
        "seq": best.seq,
        "type": best.type,
        "surface": best.surface,
        "time": best.time,
        "snippet": best.snippet,
    }


def event_hit_row(hit: EventHit) -> Row:
    return {
        "session_id": hit.session_id,
        "seq": hit.seq,
        "type": hit.type,
        "time": hit.time,
        "surface": hit.surface,
        "snippet": hit.snippet,
        "tier": hit.tier,
    }


def receipt_row(receipt: Receipt) -> Row:
    """A receipt; ``by_workspace`` is there when an operator looked at several."""
    row: Row = {
        "sessions_in_reach": receipt.sessions_in_reach,
        "checked_ago_s": receipt.checked_ago_s,
        "tiers": list(receipt.tiers),
        "filters_excluded_everything": receipt.filters_excluded_everything,
        "only_common_words": receipt.only_common_words,
        "too_broad": receipt.too_broad,
        "unread": [{"session_id": item.session_id, "code": item.code} for item in receipt.unread],
        "lost_records": receipt.lost_records,
        "unread_logs": receipt.unread_logs,
        "indexing": None if receipt.indexing is None else list(receipt.indexing),
    }
    if receipt.by_workspace:
        row["by_workspace"] = [
            {
                "workspace": share.workspace,
                "sessions_in_reach": share.sessions_in_reach,
                "unread": share.unread,
                "lost_records": share.lost_records,
            }
            for share in receipt.by_workspace
        ]
    return row


def found_session_row(hit: FoundSession) -> Row:
    """One hit of a tool-like search, as the command line prints it."""
    return {
        "session_id": hit.outward_id,
        "source": hit.source,
        "path": hit.path,
        "title": hit.title.text,
        "title_error": hit.title.error,
        "workspace": hit.header.cwd,
        "created_at": hit.header.created_at,
        "parent_session": hit.header.parent_session,
        "live": hit.live,
        "persisted": hit.persisted,
        "source_gone": hit.source_gone,
        "tier": hit.tier,
        "best_match": best_match_row(hit.best_match),
        "sub_agents": [found_session_row(child) for child in hit.sub_agents],
    }


def collected_sessions_row(found: CollectedSessions) -> Row:
    return {
        "hits": [found_session_row(hit) for hit in found.hits],
        "capped": found.capped,
        "receipt": receipt_row(found.receipt),
    }


def collected_events_row(found: CollectedEvents) -> Row:
    return {
        "session_id": found.outward_id,
        "title": found.title.text,
        "title_error": found.title.error,
        "hits": [event_hit_row(hit) for hit in found.hits],
        "capped": found.capped,
        "receipt": receipt_row(found.receipt),
    }


def lineage_row(lineage: Lineage) -> Row:
    """Descendants stay flat, in preorder with their depth: trees may be 10,000 deep."""
    return {
        "target": record_row(lineage.target),
        "ancestors": [record_row(record) for record in lineage.ancestors],
        "complete": lineage.complete,
        "unresolved_parent_id": lineage.unresolved_parent_id,
        "root": None if lineage.root is None else record_row(lineage.root),
        "descendants": [record_row(record) | {"depth": depth} for depth, record in lineage.descendants],
    }


def event_record_row(record: EventRecord) -> Row:
    return {
        "session_id": record.session_id,
        "seq": record.seq,
        "type": record.type,
        "time": record.time,
        "surface": record.surface,
    }


def event_trace_row(trace: EventTrace) -> Row:
    return {
        "header": header_row(trace.header),
        "target": event_record_row(trace.target),
        "replaced_by": trace.replaced_by,
        "replacement_chain": list(trace.replacement_chain),
        "replaced_event_seqs": list(trace.replaced_event_seqs),
        "source_event_seqs": list(trace.source_event_seqs),
        "derived_event_seqs": list(trace.derived_event_seqs),
    }


def event_window_row(window: EventWindow) -> Row:
    return {
        "header": header_row(window.header),
        "target": event_row(window.target),
        "events": [event_row(event) for event in window.events],
        "first_seq": window.first_seq,
        "last_seq": window.last_seq,
    }
