"""Results of the service operations as JSON: what ``value`` carries for each method.

Keys are snake_case; headers and events keep the spelling of SPEC 1.1 and 1.2. Absent optional values are
left out. Results share their event payloads with the records they are made of; nobody changes either.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET

from ..errors import QueryError
from ..event import Event
from ..header import SessionHeader
from ..json_value import JSON
from ..records import (
    BestMatch,
    EventDocument,
    EventHit,
    EventPage,
    EventRecord,
    EventTrace,
    EventWindow,
    Lineage,
    Receipt,
    SessionHit,
    SessionLog,
    SessionPage,
    SessionRecord,
    SurfaceView,
    Title,
    TitleItem,
)

Object = dict[str, JSON]


def header_value(header: SessionHeader) -> Object:
    """SPEC 1.1, absent fields omitted."""
    fields: Object = {
        "version": header.version,
        "id": header.id,
        "createdAt": header.created_at,
        "cwd": header.cwd,
        "parentSession": header.parent_session,
        "seedLength": header.seed_length,
        "origin": header.origin,
        "delegationDepth": header.delegation_depth,
        "agentPreset": header.agent_preset,
    }
    return _present(fields)


def event_value(event: Event) -> Object:
    """SPEC 1.2, in the order of exact reads."""
    value: Object = {"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}
    if event.surface_op is not UNSET:
        value["surfaceOp"] = event.surface_op
    if event.source_event_seqs is not UNSET:
        value["sourceEventSeqs"] = event.source_event_seqs
    if event.ignorable is not UNSET:
        value["ignorable"] = event.ignorable
    return value


def session_record_value(record: SessionRecord) -> Object:
    value: Object = {
        "header": header_value(record.header),
        "live": record.live,
        "persisted": record.persisted,
        "source": record.source,
    }
    if record.conflicted:
        value["conflicted"] = True
    if record.hides_parent:
        value["hides_parent"] = True
    return value


def session_records_value(records: Iterable[SessionRecord]) -> Object:
    """``list_sessions`` and ``filter_sessions``."""
    return {"sessions": [session_record_value(record) for record in records]}


def event_record_value(record: EventRecord) -> Object:
    return {"seq": record.seq, "type": record.type, "time": record.time, "surface": record.surface}


def event_records_value(session_id: str, records: Iterable[EventRecord]) -> Object:
    """``list_events``."""
    return {"session_id": session_id, "events": [event_record_value(record) for record in records]}


def event_documents_value(session_id: str, documents: Iterable[EventDocument]) -> Object:
    """``filter_events``."""
    return {
        "session_id": session_id,
        "events": [
            {"seq": d.seq, "type": d.type, "time": d.time, "surface": d.surface, "text": d.text}
            for d in documents
        ],
    }


def receipt_value(receipt: Receipt) -> Object:
    """SPEC 16.3. ``checked_ago_s`` absent: current. ``indexing`` is ``{done, total}`` bytes."""
    value: Object = {
        "sessions_in_reach": receipt.sessions_in_reach,
        "tiers": list(receipt.tiers),
        "filters_excluded_everything": receipt.filters_excluded_everything,
        "only_common_words": receipt.only_common_words,
        "too_broad": receipt.too_broad,
        "unread": [{"session_id": item.session_id, "code": item.code} for item in receipt.unread],
        "lost_records": receipt.lost_records,
    }
    if receipt.checked_ago_s is not None:
        value["checked_ago_s"] = receipt.checked_ago_s
    if receipt.unread_logs:
        value["unread_logs"] = receipt.unread_logs
    if receipt.indexing is not None:
        value["indexing"] = {"done": receipt.indexing[0], "total": receipt.indexing[1]}
    if receipt.by_workspace:
        value["by_workspace"] = [
            {
                "workspace": share.workspace,
                "sessions_in_reach": share.sessions_in_reach,
                "unread": share.unread,
                "lost_records": share.lost_records,
            }
            for share in receipt.by_workspace
        ]
    return value


def session_page_value(page: SessionPage) -> Object:
    """``search_sessions``. ``next_cursor`` absent: this was the last page."""
    hits: list[JSON] = [_session_hit(hit) for hit in page.hits]
    return _present({"hits": hits, "next_cursor": page.next_cursor, "receipt": receipt_value(page.receipt)})


def event_page_value(page: EventPage) -> Object:
    """``search_events``."""
    hits: list[JSON] = [_event_hit(hit) for hit in page.hits]
    return _present(
        {
            "header": header_value(page.header),
            "hits": hits,
            "next_cursor": page.next_cursor,
            "receipt": receipt_value(page.receipt),
        }
    )


def lineage_value(lineage: Lineage) -> Object:
    """``trace_session``. Descendants are one flat preorder list with their depth: any depth stays flat."""
    return _present(
        {
            "target": session_record_value(lineage.target),
            "ancestors": [session_record_value(record) for record in lineage.ancestors],
            "complete": lineage.complete,
            "unresolved_parent_id": lineage.unresolved_parent_id,
            "root": None if lineage.root is None else session_record_value(lineage.root),
            "descendants": [
                {"depth": depth, **session_record_value(record)} for depth, record in lineage.descendants
            ],
        }
    )


def event_trace_value(trace: EventTrace) -> Object:
    """``trace_event``. ``replaced_by`` absent: no direct replacer."""
    return _present(
        {
            "header": header_value(trace.header),
            "target": event_record_value(trace.target),
            "replaced_by": trace.replaced_by,
            "replacement_chain": list(trace.replacement_chain),
            "replaced_event_seqs": list(trace.replaced_event_seqs),
            "source_event_seqs": list(trace.source_event_seqs),
            "derived_event_seqs": list(trace.derived_event_seqs),
        }
    )


def event_window_value(window: EventWindow) -> Object:
    """``read_event``. The target is ``events[target_seq - first_seq]``: a big event travels once."""
    return {
        "header": header_value(window.header),
        "target_seq": window.target.seq,
        "events": [event_value(event) for event in window.events],
        "first_seq": window.first_seq,
        "last_seq": window.last_seq,
    }


def surface_value(view: SurfaceView) -> Object:
    """``read_surface``. ``captured_through_seq`` is null for an empty log."""
    return {
        "header": header_value(view.header),
        "captured_through_seq": view.captured_through_seq,
        "events": [event_value(event) for event in view.events],
    }


def session_log_value(log: SessionLog) -> Object:
    """``read_session``."""
    return {"header": header_value(log.header), "events": [event_value(event) for event in log.events]}


def title_value(title: Title | None) -> Object:
    """``read_title``: ``{"title": null}`` for a session without one."""
    if title is None:
        return {"title": None}
    return _present(
        {
            "title": title.title,
            "message_seqs": list(title.message_seqs),
            "source": title.source,
            "seq": title.seq,
            "time": title.time,
        }
    )


def title_items_value(items: Iterable[TitleItem]) -> Object:
    """``read_titles``: in the order asked; an item that failed has an ``error`` code instead of a title."""
    return {"titles": [_title_item(item) for item in items]}


def _title_item(item: TitleItem) -> Object:
    value: Object = {"session_id": item.session_id}
    if item.header is not None:
        value["header"] = header_value(item.header)
    if item.error is not None:
        value["error"] = item.error.code.value if isinstance(item.error, QueryError) else "INTERNAL"
        return value
    return value | title_value(item.title)


def _session_hit(hit: SessionHit) -> Object:
    value: Object = {
        "header": header_value(hit.header),
        "live": hit.live,
        "persisted": hit.persisted,
        "source": hit.source,
        "tier": hit.tier,
        "best_match": _best_match(hit.best_match),
    }
    if hit.hides_parent:
        value["hides_parent"] = True
    return value


def _best_match(match: BestMatch) -> Object:
    return {
        "seq": match.seq,
        "type": match.type,
        "time": match.time,
        "surface": match.surface,
        "snippet": match.snippet,
    }


def _event_hit(hit: EventHit) -> Object:
    return {
        "seq": hit.seq,
        "type": hit.type,
        "time": hit.time,
        "surface": hit.surface,
        "snippet": hit.snippet,
        "tier": hit.tier,
    }


def _present(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
