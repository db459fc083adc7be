"""A small, honest query service in memory, for the tools: it records calls and can be told to misbehave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import attrs

from session_query.actors.tools.registry import ToolRegistry, ToolResult, ToolSettings
from session_query.protocol.collected import (
    Caller,
    CollectedEvents,
    CollectedSessions,
    EventSearch,
    FoundSession,
    FoundTitle,
    SessionSearch,
)
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.event import Event
from session_query.protocol.filters import SeqClause, SessionClause
from session_query.protocol.header import SessionHeader
from session_query.protocol.predicates import session_predicate
from session_query.protocol.records import (
    BestMatch,
    EventHit,
    EventRecord,
    EventTrace,
    EventWindow,
    Lineage,
    Receipt,
    SessionRecord,
    Title,
    TitleItem,
)
from session_query.protocol.signal import Signal

T0 = 1_930_457_228_000  # 2031-03-05T06:07:08Z
HERE, ELSEWHERE = "/proj/here", "/proj/elsewhere"


def header(
    session_id: str, cwd: str | None = HERE, parent: str | None = None, at: int = T0, **more: Any
) -> SessionHeader:
    return SessionHeader(id=session_id, created_at=at, cwd=cwd, parent_session=parent, **more)


def record(
    session_id: str, cwd: str | None = HERE, parent: str | None = None, *, live: bool = False, at: int = T0
) -> SessionRecord:
    return SessionRecord(header=header(session_id, cwd, parent, at), live=live, persisted=not live)


def agent(session_id: str = "me", cwd: str | None = HERE) -> Caller:
    return Caller(kind="agent", header=header(session_id, cwd), source="live")


def workspace(cwd: str = HERE) -> Caller:
    return Caller(kind="workspace", workspaces=(cwd,))


def operator(*workspaces: str) -> Caller:
    return Caller(kind="operator", workspaces=workspaces or None)


def best(seq: int = 4, snippet: str = "the retry backoff is capped") -> BestMatch:
    return BestMatch(seq=seq, type="tool/result", time=T0 + 60_000, surface="current", snippet=snippet)


def found(rec: SessionRecord, **changes: Any) -> FoundSession:
    values: dict[str, Any] = {
        "header": rec.header,
        "outward_id": rec.header.id,
        "source": rec.source,
        "live": rec.live,
        "persisted": rec.persisted,
        "tier": "exact",
        "best_match": best(),
        "title": FoundTitle(),
    }
    return FoundSession(**(values | changes))


def event_hit(session_id: str, seq: int, **changes: Any) -> EventHit:
    values: dict[str, Any] = {
        "session_id": session_id,
        "seq": seq,
        "type": "user/message",
        "time": T0 + seq,
        "surface": "current",
        "snippet": f"hit at {seq}",
    }
    return EventHit(**(values | changes))


@attrs.define(eq=False)
class FakeToolService:
    """``records`` is the corpus; every session in it matches every query, with its own scripted hit.

    ``instead``: by method name, an async function called in its place. ``calls``: (method, arguments).
    """

    records: list[SessionRecord] = attrs.field(factory=list)
    titles: dict[str, str | BaseException] = attrs.field(factory=dict)
    hits: dict[str, FoundSession] = attrs.field(factory=dict)
    event_hits: dict[str, list[EventHit]] = attrs.field(factory=dict)
    events: dict[str, list[Event]] = attrs.field(factory=dict)
    traces: dict[tuple[str, int], EventTrace] = attrs.field(factory=dict)
    lineages: dict[str, Lineage] = attrs.field(factory=dict)
    cut: int | None = 10
    instead: dict[str, Callable[..., Awaitable[Any]]] = attrs.field(factory=dict)
    calls: list[tuple[str, tuple[Any, ...]]] = attrs.field(factory=list)
    signals: list[Signal] = attrs.field(factory=list)

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    async def _called(self, name: str, signal: Signal, *arguments: Any) -> Any:
        self.calls.append((name, arguments))
        self.signals.append(signal)
        replacement = self.instead.get(name)
        return None if replacement is None else (await replacement(*arguments), True)

    def by_id(self, session_id: str) -> SessionRecord:
        for rec in self.records:
            if rec.header.id == session_id:
                return rec
        raise QueryError(Code.SESSION_NOT_FOUND, f"secret: {session_id}")

    def in_reach(self, caller: Caller) -> list[SessionRecord]:
        if caller.kind == "operator" or caller.kind == "workspace":
            reach = caller.workspaces
        else:
            assert caller.header is not None
            reach = (caller.header.cwd,) if caller.header.cwd else ()
        own = caller.header.id if caller.header is not None else None
        return [
            rec for rec in self.records if (reach is None or rec.header.cwd in reach) and rec.header.id != own
        ]

    async def filter_sessions(
        self, caller: Caller, clauses: tuple[SessionClause, ...], *, signal: Signal
    ) -> Sequence[SessionRecord]:
        if done := await self._called("filter_sessions", signal, caller, clauses):
            scripted: Sequence[SessionRecord] = done[0]
            return scripted
        return list(filter(session_predicate(clauses), self.records))

    async def collect_sessions(self, search: SessionSearch, *, signal: Signal) -> CollectedSessions:
        if done := await self._called("collect_sessions", signal, search):
            scripted: CollectedSessions = done[0]
            return scripted
        reach = self.in_reach(search.caller)
        passing = list(filter(session_predicate(search.session_clauses), reach))
        hits = [self.hits.get(rec.header.id) or self._hit(rec) for rec in passing]
        receipt = Receipt(
            sessions_in_reach=len(reach),
            tiers=("exact",) if passing else (),
            filters_excluded_everything=bool(reach) and not passing,
        )
        return CollectedSessions(
            hits=tuple(hits[: search.cap]), capped=len(hits) > search.cap, receipt=receipt
        )

    def _hit(self, rec: SessionRecord) -> FoundSession:
        parent = next((p for p in self.records if p.header.id == rec.header.parent_session), None)
        title = self.titles.get(rec.header.id)
        return found(
            rec,
            title=FoundTitle(text=title) if isinstance(title, str) else FoundTitle(),
            parent=None if parent is None else parent.header,
            parent_outward_id=None if parent is None else parent.header.id,
        )

    async def collect_events(self, search: EventSearch, *, signal: Signal) -> CollectedEvents:
        if done := await self._called("collect_events", signal, search):
            scripted: CollectedEvents = done[0]
            return scripted
        rec = self.by_id(search.session_id)
        hits = [
            hit
            for hit in self.event_hits.get(search.session_id, [])
            if all(
                (clause.lower is None or hit.seq >= clause.lower)
                and (clause.upper is None or hit.seq <= clause.upper)
                for clause in search.event_clauses
                if isinstance(clause, SeqClause)
            )
        ]
        title = self.titles.get(search.session_id)
        return CollectedEvents(
            header=rec.header,
            outward_id=rec.header.id,
            title=FoundTitle(text=title) if isinstance(title, str) else FoundTitle(),
            hits=tuple(hits[: search.cap]),
            capped=len(hits) > search.cap,
            receipt=Receipt(sessions_in_reach=1, tiers=("exact",)),
        )

    async def reach_receipt(self, caller: Caller, *, signal: Signal) -> Receipt:
        if done := await self._called("reach_receipt", signal, caller):
            scripted: Receipt = done[0]
            return scripted
        return Receipt(sessions_in_reach=len(self.in_reach(caller)))

    async def own_cut(self, caller: Caller, *, signal: Signal) -> int | None:
        if done := await self._called("own_cut", signal, caller):
            scripted: int | None = done[0]
            return scripted
        return self.cut

    async def trace_session(self, caller: Caller, session_id: str, *, signal: Signal) -> Lineage:
        if done := await self._called("trace_session", signal, caller, session_id):
            scripted: Lineage = done[0]
            return scripted
        if session_id in self.lineages:
            return self.lineages[session_id]
        rec = self.by_id(session_id)
        return Lineage(
            target=rec, ancestors=(), complete=True, unresolved_parent_id=None, root=rec, descendants=()
        )

    async def trace_event(self, caller: Caller, session_id: str, seq: int, *, signal: Signal) -> EventTrace:
        if done := await self._called("trace_event", signal, caller, session_id, seq):
            scripted: EventTrace = done[0]
            return scripted
        rec = self.by_id(session_id)
        if (session_id, seq) in self.traces:
            return self.traces[session_id, seq]
        event = self._event(session_id, seq)
        return EventTrace(
            header=rec.header,
            target=EventRecord(
                session_id=session_id, seq=seq, type=event.type, time=event.time, surface="log-only"
            ),
            replaced_by=None,
            replacement_chain=(),
            replaced_event_seqs=(),
            source_event_seqs=(),
            derived_event_seqs=(),
        )

    def _event(self, session_id: str, seq: int) -> Event:
        events = self.events.get(session_id, [])
        if not 0 <= seq < len(events):
            raise QueryError(Code.EVENT_NOT_FOUND, "secret")
        return events[seq]

    async def read_event(
        self, caller: Caller, session_id: str, seq: int, *, before: int, after: int, signal: Signal
    ) -> EventWindow:
        if done := await self._called("read_event", signal, caller, session_id, seq, before, after):
            scripted: EventWindow = done[0]
            return scripted
        if before > 50 or after > 50:
            raise QueryError(Code.INVALID_WINDOW)
        rec = self.by_id(session_id)
        target = self._event(session_id, seq)
        events = self.events[session_id]
        first, last = max(0, seq - before), min(len(events) - 1, seq + after)
        return EventWindow(
            header=rec.header,
            target=target,
            events=tuple(events[first : last + 1]),
            first_seq=first,
            last_seq=last,
        )

    async def read_titles(
        self, caller: Caller, session_ids: Sequence[str], *, signal: Signal
    ) -> Sequence[TitleItem]:
        if done := await self._called("read_titles", signal, caller, tuple(session_ids)):
            scripted: Sequence[TitleItem] = done[0]
            return scripted
        return [self._title_item(session_id) for session_id in session_ids]

    def _title_item(self, session_id: str) -> TitleItem:
        title = self.titles.get(session_id)
        if isinstance(title, BaseException):
            return TitleItem(session_id=session_id, error=title)
        try:
            rec = self.by_id(session_id)
        except QueryError as error:
            return TitleItem(session_id=session_id, error=error)
        folded = None if title is None else Title(title=title, message_seqs=(), source={}, seq=1, time=T0)
        return TitleItem(session_id=session_id, header=rec.header, title=folded)


def corpus(*extra: SessionRecord) -> FakeToolService:
    """The caller ``me``, a sibling, a child of each kind, and sessions of another workspace."""
    return FakeToolService(
        records=[
            record("me", live=True, at=T0 + 9),
            record("sibling", at=T0 + 1),
            record("child", parent="sibling", at=T0 + 2),
            record("mine", parent="me", at=T0 + 3),
            record("stray", parent="foreign", at=T0 + 4),
            record("orphan", parent="nowhere", at=T0 + 5),
            record("foreign", ELSEWHERE, at=T0 + 6),
            record("homeless", None, at=T0 + 7),
            *extra,
        ],
        titles={"sibling": "Fix the retry loop", "foreign": "TOP SECRET", "me": "My own work"},
        events={
            name: [
                Event(type="turn/start", seq=0, time=T0, data={"turn": 1}),
                Event(
                    type="user/message",
                    seq=1,
                    time=T0 + 1,
                    data={"content": [{"type": "text", "text": f"hello from {name}"}]},
                    surface_op="append",
                ),
                Event(type="turn/end", seq=2, time=T0 + 2, data={"reason": {"kind": "completed"}}),
            ]
            for name in ("me", "sibling", "foreign")
        },
        event_hits={
            name: [event_hit(name, seq) for seq in (1, 8, 12)] for name in ("me", "sibling", "foreign")
        },
    )


async def call(
    service: FakeToolService,
    tool: str,
    arguments: object,
    caller: Caller | None,
    *,
    signal: Signal | None = None,
    max_results: int = 100,
) -> ToolResult:
    registry = ToolRegistry(service=service, settings=ToolSettings(max_search_results=max_results))
    return await registry.call(tool, arguments, caller, signal or Signal(), "call-1")


def clause_names(clauses: Iterable[object]) -> list[str]:
    return [type(clause).__name__ for clause in clauses]
