"""Query methods for the operator alone: what the command line and people need beside the contract's.

Rows are flat, keys in snake_case. None of these is open to a confined token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from ..protocol.collected import Caller, EventSearch, SessionSearch
from ..protocol.errors import Code, QueryError
from ..protocol.filters import parse_event_filters, parse_session_filters
from ..protocol.json_value import JSON
from ..protocol.limits import check_budget, check_match
from ..protocol.query import normalise_query
from ..protocol.rows import (
    collected_events_row,
    collected_sessions_row,
    event_record_row,
    event_trace_row,
    event_window_row,
    lineage_row,
    record_row,
)
from ..protocol.tools.receipts_text import receipt_line
from ..protocol.wire.codes import WireCode, WireError
from .family import confined_lineage
from .metrics import prometheus_text

if TYPE_CHECKING:
    from .queries import Asked

LIMIT_MAX: Final = 1000


async def _workspaces(asked: Asked) -> JSON:
    """Every workspace that has sessions, with how many, busiest first."""
    records = await asked.service.filter_sessions(asked.caller, (), signal=asked.signal)
    counted = Counter(record.header.cwd for record in records)
    return [{"workspace": cwd, "sessions": number} for cwd, number in counted.most_common()]


async def _sessions(asked: Asked) -> JSON:
    """Sessions of some workspaces, newest first, with title and size: ``{sessions, total}``."""
    house = await asked.service.house()
    caller = await _caller(asked)
    entries = await house.corpus.entries(caller, (), asked.signal)
    shown = entries[: _limit(asked, 50)]
    sids = [one.entry.stored.sid for one in shown if one.entry.stored is not None]
    paths = await house.storage.read(lambda reader: {sid: reader.index.log_path(sid) for sid in sids})
    rows: list[JSON] = []
    for one in shown:
        entry = one.entry
        stored = entry.stored
        state = None if stored is None else stored.state
        title = entry.live.title if entry.live is not None else None if state is None else state.title
        rows.append(
            record_row(one.record)
            | {
                "title": None if title is None else title.title,
                "events": entry.live.length
                if entry.live is not None
                else None
                if state is None
                else state.length,
                "path": None if stored is None else paths[stored.sid],
                "source_gone": state is not None and state.source_gone,
            }
        )
    return {"sessions": rows, "total": len(entries)}


async def _find_sessions(asked: Asked) -> JSON:
    """The tools' search, for an operator: hits with titles, sub-agents rolled up, and a receipt."""
    params = asked.params
    session_clauses = parse_session_filters(params.get("session_filters"))
    event_clauses = parse_event_filters(params.get("event_filters"), allow_text=False)
    match = "auto" if params.get("match") is None else check_match(params.get("match"))
    search = SessionSearch(
        caller=await _caller(asked),
        query=normalise_query(params.get("query")),
        match=match,
        session_clauses=session_clauses,
        event_clauses=event_clauses,
        cap=_limit(asked, 20),
    )
    check_budget((*session_clauses, *event_clauses))
    found = await asked.service.collect_sessions(search, signal=asked.signal)
    row = collected_sessions_row(found)
    row["receipt"] = _receipt(row["receipt"], receipt_line(found.receipt))
    return row


async def _find_events(asked: Asked) -> JSON:
    """The tools' search inside one session, for an operator."""
    params = asked.params
    event_clauses = parse_event_filters(params.get("event_filters"), allow_text=False)
    check_budget(event_clauses)
    search = EventSearch(
        caller=await _caller(asked),
        session_id=_text(asked, "session_id"),
        query=normalise_query(params.get("query")),
        match="auto" if params.get("match") is None else check_match(params.get("match")),
        event_clauses=event_clauses,
        cap=_limit(asked, 20),
    )
    found = await asked.service.collect_events(search, signal=asked.signal)
    row = collected_events_row(found)
    row["receipt"] = _receipt(row["receipt"], receipt_line(found.receipt, within_session=True))
    return row


async def _lineage(asked: Asked) -> JSON:
    """``trace_session`` with titles."""
    caller = await _caller(asked)
    found = await asked.service.trace_session(caller, _text(asked, "session_id"), signal=asked.signal)
    lineage = confined_lineage(caller, found)
    ids = [lineage.target.header.id]
    ids += [record.header.id for record in lineage.ancestors]
    ids += [record.header.id for _, record in lineage.descendants]
    items = await asked.service.read_titles(caller, ids, signal=asked.signal)
    titles = {item.session_id: item.title.title for item in items if item.title is not None}
    row = lineage_row(lineage)
    for record in (row["target"], *_rows(row["ancestors"]), *_rows(row["descendants"])):
        if isinstance(record, dict):
            record["title"] = titles.get(str(record["session_id"]))
    return row


async def _events(asked: Asked) -> JSON:
    """One record for each event."""
    exact = await asked.service.exact()
    records = await exact.list_events(await _caller(asked), _text(asked, "session_id"), signal=asked.signal)
    return await asked.told(len(records), lambda: [event_record_row(record) for record in records])


async def _event_trace(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    return event_trace_row(
        await exact.trace_event(
            await _caller(asked), _text(asked, "session_id"), asked.params.get("seq"), signal=asked.signal
        )
    )


async def _event(asked: Asked) -> JSON:
    exact = await asked.service.exact()
    return event_window_row(
        await exact.read_event(
            await _caller(asked),
            _text(asked, "session_id"),
            asked.params.get("seq"),
            before=asked.params.get("before", 0),
            after=asked.params.get("after", 0),
            signal=asked.signal,
        )
    )


async def _index(asked: Asked) -> JSON:
    """Bring the index up to date and tell what there is; ``full`` reads every log again."""
    _require_everything(asked)
    house = await asked.service.house()
    await house.freshness.refresh(
        full=asked.params.get("full") is True, progress=asked.progress, signal=asked.signal
    )
    return await house.freshness.status()


async def _sources(asked: Asked) -> JSON:
    _require_everything(asked)
    house = await asked.service.house()
    return await house.freshness.status()


async def _add_source(asked: Asked) -> JSON:
    _require_everything(asked)
    house = await asked.service.house()
    await house.freshness.add(_text(asked, "format"), _text(asked, "path"))
    return {}


async def _drop_source(asked: Asked) -> JSON:
    _require_everything(asked)
    house = await asked.service.house()
    dropped = await house.freshness.drop(_text(asked, "format"), _text(asked, "path"))
    return {"dropped": dropped}


async def _doctor(asked: Asked) -> JSON:
    _require_everything(asked)
    house = await asked.service.house()
    samples = asked.params.get("samples", 20)
    return await house.freshness.examine(samples if type(samples) is int else 20, asked.signal)


async def _statistics(asked: Asked) -> JSON:
    """As over the wire, where ``connections`` stands beside it; here there are none."""
    return {"service": await asked.service.statistics()}


async def _metrics(asked: Asked) -> JSON:
    return prometheus_text(await _statistics(asked))


async def _forget(asked: Asked) -> JSON:
    await asked.service.forget(await _caller(asked), _text(asked, "session_id"), signal=asked.signal)
    return {}


async def _caller(asked: Asked) -> Caller:
    """The operator, confined to ``workspaces`` when the request names some."""
    named = asked.params.get("workspaces")
    if named is None:
        return asked.caller
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        raise WireError(WireCode.INVALID_ARGS, "`params.workspaces` must be a list of texts")
    reach = asked.caller.workspaces  # a confined token is not widened by what it names
    kept = tuple(str(item) for item in named if reach is None or item in reach)
    return attrs.evolve(asked.caller, workspaces=kept)


def _require_everything(asked: Asked) -> None:
    """What is about the installation, and not about sessions, is for who may see all of them.

    Raises: WireError FORBIDDEN.
    """
    if asked.caller.workspaces is not None:
        raise WireError(WireCode.FORBIDDEN, "this token does not see every workspace")


def _text(asked: Asked, name: str) -> str:
    value = asked.params.get(name)
    if not isinstance(value, str):
        raise WireError(WireCode.INVALID_ARGS, f"`params.{name}` must be text")
    return value


def _limit(asked: Asked, default: int) -> int:
    value = asked.params.get("limit")
    if value is None:
        return default
    if type(value) is not int or not 1 <= value <= LIMIT_MAX:
        raise QueryError(Code.INVALID_LIMIT, f"the limit must be a whole number from 1 to {LIMIT_MAX}")
    return value


def _receipt(receipt: JSON, line: str) -> JSON:
    return receipt | {"text": line} if isinstance(receipt, dict) else receipt


def _rows(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


OPERATOR_METHODS: Final[Mapping[str, Callable[[Asked], Awaitable[JSON]]]] = {
    "workspaces": _workspaces,
    "sessions": _sessions,
    "find_sessions": _find_sessions,
    "find_events": _find_events,
    "lineage": _lineage,
    "events": _events,
    "event_trace": _event_trace,
    "event": _event,
    "index": _index,
    "sources": _sources,
    "add_source": _add_source,
    "drop_source": _drop_source,
    "doctor": _doctor,
    "forget": _forget,
    "statistics": _statistics,
    "metrics": _metrics,
}
