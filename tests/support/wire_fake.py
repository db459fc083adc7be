"""A query service for tests of the edge: sessions in memory, tools and methods that behave on demand."""

from __future__ import annotations

from typing import Any

import attrs
import trio

from session_query.actors.wire_service import (
    AgentFacts,
    Attached,
    Fetched,
    Progress,
    ToolAnswer,
    ToolInfo,
)
from session_query.protocol.collected import Caller
from session_query.protocol.errors import Busy, Code, QueryError, ToolCode, ToolError
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.protocol.signal import Signal
from session_query.protocol.wire.appending import judge, judge_prefix, needs_end_seed, same_event
from session_query.protocol.wire.codes import WireCode, WireError
from session_query.protocol.wire.identity import Owner, Reach

TOOLS = (
    ToolInfo(
        name="find",
        description="a search",
        parameters={"type": "object"},
        concurrency="exclusive",
        deadline_ms=30_000,
    ),
    ToolInfo(name="read", description="a read", parameters={"type": "object"}, concurrency="parallel"),
)


@attrs.define(eq=False)
class Stored:
    header: SessionHeader
    events: list[Any]
    token_id: str | None = None
    connection_id: str | None = None


@attrs.define(eq=False)
class FakeService:
    """``calls`` is what arrived; ``running`` counts handlers inside; ``gate`` holds tools back until set;
    ``entered`` is set when the first handler has begun.
    """

    sessions: dict[str, Stored] = attrs.field(factory=dict)
    calls: list[tuple[str, Any]] = attrs.field(factory=list)
    callers: list[Caller] = attrs.field(factory=list)
    quick: str | None = None
    """What every call is answered with at once."""
    quick_callers: list[Caller] = attrs.field(factory=list)
    signals: list[Signal] = attrs.field(factory=list)
    reaches: list[Reach] = attrs.field(factory=list)
    spilled: dict[str, tuple[str, bytes]] = attrs.field(factory=dict)
    gate: trio.Event = attrs.field(factory=trio.Event)
    entered: trio.Event = attrs.field(factory=trio.Event)
    values: dict[str, Any] = attrs.field(factory=dict)
    running: int = 0
    most_running: int = 0
    settle_s: float = 0.0

    async def attach(self, header: JSON, events: list[JSON] | None, owner: Owner, signal: Signal) -> Attached:
        self.calls.append(("attach", header))
        await trio.lowlevel.checkpoint()
        if not isinstance(header, dict) or not isinstance(header.get("id"), str):
            raise WireError(WireCode.INVALID_HEADER, "`id` must be text")
        session_id = str(header["id"])
        stored = self.sessions.get(session_id)
        if stored is None:
            created = SessionHeader(
                id=session_id, created_at=int(header.get("createdAt", 0)), cwd=header.get("cwd")
            )
            stored = self.sessions[session_id] = Stored(created, [])
            if events is not None:
                stored.events += events
                if needs_end_seed(events):
                    stored.events.append({"type": "session/end-seed", "time": 0, "data": {}})
        else:
            if stored.token_id not in (None, owner.token_id):
                raise WireError(WireCode.BUSY, "the session is live elsewhere", retry_after_ms=1000)
            log = stored.events
            judge_prefix(len(log), events or [], lambda seq, event: same_event(log[seq], event))
        stored.token_id, stored.connection_id = owner.token_id, owner.connection_id
        return Attached(session_id=session_id, next_seq=len(stored.events))

    async def append(
        self, session_id: str, from_seq: int, events: list[JSON], owner: Owner, signal: Signal
    ) -> int:
        self.calls.append(("append", (session_id, from_seq, len(events))))
        await trio.lowlevel.checkpoint()
        stored = self.sessions.get(session_id)
        if stored is None or stored.connection_id != owner.connection_id:
            raise WireError(WireCode.NOT_ATTACHED, "not attached")
        if not all(isinstance(event, dict) and isinstance(event.get("type"), str) for event in events):
            raise WireError(WireCode.INVALID_EVENT, "an event has a text `type`")
        log = stored.events
        verdict = judge(len(log), from_seq, events, lambda seq, event: same_event(log[seq], event))
        log += events[verdict.skip :]
        return verdict.through_seq

    async def detach(self, session_id: str, owner: Owner) -> None:
        self.calls.append(("detach", session_id))
        await trio.lowlevel.checkpoint()
        stored = self.sessions.get(session_id)
        if stored is not None and stored.connection_id == owner.connection_id:
            stored.token_id = stored.connection_id = None

    def tool_list(self) -> tuple[ToolInfo, ...]:
        return TOOLS

    def prompt(self) -> str:
        return "Search earlier sessions first."

    async def call(
        self,
        tool: str,
        arguments: JSON,
        caller: Caller,
        *,
        owner: Owner,
        signal: Signal,
        call_id: str | None = None,
        progress: Progress | None = None,
    ) -> ToolAnswer:
        self.calls.append((tool, arguments))
        self.callers.append(caller)
        return ToolAnswer(
            text=str(await self._do(arguments, signal, progress)), card={"kind": tool}, receipt={"n": 1}
        )

    def call_nowait(self, tool: str, arguments: JSON, caller: Caller) -> ToolAnswer | None:
        if self.quick is None:
            return None
        self.quick_callers.append(caller)
        return ToolAnswer(text=self.quick, card={"kind": tool})

    def agent_nowait(self, session_id: str, owner: Owner) -> AgentFacts | None:
        return None

    async def query(
        self,
        method: str,
        params: JSON,
        *,
        reach: Reach,
        owner: Owner,
        signal: Signal,
        progress: Progress | None = None,
    ) -> JSON:
        self.calls.append((method, params))
        self.reaches.append(reach)
        if method in self.values:
            value: JSON = self.values[method]
            return value
        return await self._do(
            (params or {}).get("query") if isinstance(params, dict) else None, signal, progress
        )

    async def _do(self, wish: Any, signal: Signal, progress: Progress | None) -> JSON:
        """Behave as ``wish["do"]`` says; anything else is answered with itself."""
        self.signals.append(signal)
        self.entered.set()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            match wish.get("do") if isinstance(wish, dict) else None:
                case "wait":
                    await self._until_aborted(signal)
                case "gate":
                    await self.gate.wait()
                case "stubborn":
                    with trio.CancelScope(shield=True):
                        await trio.sleep(wish["s"])
                case "deaf":
                    await trio.sleep_forever()
                case "fail":
                    raise QueryError(Code(wish["code"]), "secret detail")
                case "tool":
                    raise ToolError(ToolCode.NO_CURRENT_STEP, "no step yet")
                case "busy":
                    raise Busy(70)
                case "crash":
                    raise KeyError("secret detail")
                case "count":
                    for done in range(wish["n"]):
                        assert progress is not None
                        progress(done, wish["n"], "events")
                        await trio.sleep(wish.get("s", 0))
                case "big":
                    return "é" * int(wish["n"])
                case _:
                    await trio.lowlevel.checkpoint()
            return wish  # type: ignore[no-any-return]
        finally:
            self.running -= 1

    async def _until_aborted(self, signal: Signal) -> None:
        aborted = trio.Event()
        forget = signal.on_abort(aborted.set)
        try:
            await aborted.wait()
        finally:
            forget()
        if self.settle_s:
            with trio.CancelScope(shield=True):
                await trio.sleep(self.settle_s)
        signal.raise_if_aborted()

    async def resolve_agent(self, session_id: str, owner: Owner) -> AgentFacts | None:
        await trio.lowlevel.checkpoint()
        stored = self.sessions.get(session_id)
        if stored is None or not owner.reach.holds(stored.header.cwd):
            return None
        return AgentFacts(header=stored.header, source="journal", live_owner=stored.token_id)

    async def fetch(self, locator: str, offset_bytes: int, limit_bytes: int, owner: Owner) -> Fetched:
        await trio.lowlevel.checkpoint()
        token_id, data = self.spilled.get(locator, ("", b""))
        if token_id != owner.token_id:
            raise WireError(WireCode.FORBIDDEN, "no such result for this token")
        end = min(offset_bytes + max(limit_bytes, 4), len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        return Fetched(
            offset_bytes=offset_bytes,
            next_offset=end,
            total_bytes=len(data),
            data=data[offset_bytes:end].decode(),
        )

    def health(self) -> JSON:
        return {"ready": True}

    async def statistics(self) -> JSON:
        await trio.lowlevel.checkpoint()
        return {"sessions": len(self.sessions)}
