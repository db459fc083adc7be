"""The methods of ``query``: service operations for programs, pruned to the asker's reach (SPEC 16.11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, TypeAlias

import attrs

from ..protocol.collected import Caller
from ..protocol.filters import parse_event_filters, parse_session_filters
from ..protocol.json_value import JSON
from ..protocol.limits import check_budget
from ..protocol.records import EventSearchRequest, SessionSearchRequest
from ..protocol.signal import Signal
from ..protocol.wire import values
from ..protocol.wire.identity import Reach
from ..protocol.wire.methods import check_params, find_method
from .family import confined_lineage
from .operator import OPERATOR_METHODS
from .service import Service
from .wire_service import Progress

Params: TypeAlias = Mapping[str, JSON]


@attrs.frozen(kw_only=True)
class Asked:
    """One query on its way: the service, its parameters, and for whom."""

    service: Service
    params: Params
    caller: Caller
    lane: Hashable
    signal: Signal
    progress: Progress | None = None

    def text(self, name: str) -> str:
        """A parameter that ``check_params`` has found to be text."""
        return str(self.params[name])

    async def told(self, records: int, work: Callable[[], JSON]) -> JSON:
        """``work()``: so many records as JSON, in a thread if they are many. Cancellation: it is awaited."""
        exact = await self.service.exact()
        return await exact.pool.over_log(records, work)


async def run_method(
    service: Service,
    method: str,
    params: JSON,
    *,
    reach: Reach,
    lane: Hashable,
    signal: Signal,
    progress: Progress | None = None,
) -> JSON:
    """Run one method; the answer is detached JSON.

    Raises: WireError UNKNOWN_MESSAGE, INVALID_ARGS; QueryError as the operation says; the exact reason.
    """
    known = find_method(method)
    given = check_params(known, params)
    asked = Asked(
        service=service,
        params=given,
        caller=caller_of(reach),
        lane=lane,
        signal=signal,
        progress=progress,
    )
    run = METHODS.get(method) or OPERATOR_METHODS[method]
    return await run(asked)


def caller_of(reach: Reach) -> Caller:
    """A program has no session of its own: it sees what its token's reach holds."""
    return Caller(kind="operator", workspaces=reach.listed)


async def _list_sessions(asked: Asked) -> JSON:
    records = await asked.service.filter_sessions(asked.caller, (), signal=asked.signal)
    return await asked.told(len(records), lambda: values.session_records_value(records))


async def _filter_sessions(asked: Asked) -> JSON:
    clauses = parse_session_filters(asked.params["filters"])
    check_budget(clauses)
    records = await asked.service.filter_sessions(asked.caller, clauses, signal=asked.signal)
    return await asked.told(len(records), lambda: values.session_records_value(records))


async def _filter_events(asked: Asked) -> JSON:
    clauses = parse_event_filters(asked.params["filters"], allow_text=True)
    check_budget(clauses)
    exact = await asked.service.exact()
    session_id = asked.text("session_id")
    found = await exact.filter_events(asked.caller, session_id, clauses, signal=asked.signal)
    return await asked.told(len(found), lambda: values.event_documents_value(session_id, found))


async def _search_sessions(asked: Asked) -> JSON:
    params = asked.params
    request = SessionSearchRequest(
        query=params["query"],
        session_filters=params.get("session_filters"),
        event_filters=params.get("event_filters"),
        match=params.get("match"),
        limit=params.get("limit"),
        cursor=params.get("cursor"),
        has_cursor="cursor" in params,
    )
    page = await asked.service.search_sessions(
        request, caller=asked.caller, lane=asked.lane, signal=asked.signal
    )
    return values.session_page_value(page)


async def _search_events(asked: Asked) -> JSON:
    params = asked.params
    request = EventSearchRequest(
        session_id=params["session_id"],
        query=params["query"],
        event_filters=params.get("event_filters"),
        match=params.get("match"),
        limit=params.get("limit"),
        cursor=params.get("cursor"),
        has_cursor="cursor" in params,
    )
    page = await asked.service.search_events(
        request, caller=asked.caller, lane=asked.lane, signal=asked.signal
    )
    return values.event_page_value(page)


async def _trace_session(asked: Asked) -> JSON:
    lineage = await asked.service.trace_session(asked.caller, asked.text("session_id"), signal=asked.signal)
    return values.lineage_value(confined_lineage(asked.caller, lineage))


async def _trace_event(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    return values.event_trace_value(
        await exact.trace_event(
            asked.caller, asked.text("session_id"), asked.params["seq"], signal=asked.signal
        )
    )


async def _list_events(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    session_id = asked.text("session_id")
    found = await exact.list_events(asked.caller, session_id, signal=asked.signal)
    return await asked.told(len(found), lambda: values.event_records_value(session_id, found))


async def _read_surface(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    view = await exact.read_surface(asked.caller, asked.text("session_id"), signal=asked.signal)
    return await asked.told(len(view.events), lambda: values.surface_value(view))


async def _read_session(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    log = await exact.read_session(asked.caller, asked.text("session_id"), signal=asked.signal)
    return await asked.told(len(log.events), lambda: values.session_log_value(log))


async def _read_event(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    window = await exact.read_event(
        asked.caller,
        asked.text("session_id"),
        asked.params["seq"],
        before=asked.params.get("before", 0),
        after=asked.params.get("after", 0),
        signal=asked.signal,
    )
    return values.event_window_value(window)


async def _read_title(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    return values.title_value(
        await exact.read_title(asked.caller, asked.text("session_id"), signal=asked.signal)
    )


async def _health(asked: Asked) -> JSON:
    return asked.service.health()


async def _read_titles(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    ids = [str(item) for item in _list(asked.params["session_ids"])]
    items = await exact.read_titles(asked.caller, ids, signal=asked.signal)
    return await asked.told(len(items), lambda: values.title_items_value(items))


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


METHODS: Final[Mapping[str, Callable[[Asked], Awaitable[JSON]]]] = {
    "list_sessions": _list_sessions,
    "filter_sessions": _filter_sessions,
    "filter_events": _filter_events,
    "search_sessions": _search_sessions,
    "search_events": _search_events,
    "trace_session": _trace_session,
    "trace_event": _trace_event,
    "list_events": _list_events,
    "read_surface": _read_surface,
    "read_session": _read_session,
    "read_event": _read_event,
    "read_title": _read_title,
    "read_titles": _read_titles,
    "health": _health,
}
