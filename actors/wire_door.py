"""The wire's door: the query service as connections see it (fills ``WireService``)."""

from __future__ import annotations

from typing import Final

import attrs

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError, ToolCode, ToolError
from ..protocol.json_value import JSON
from ..protocol.outward import named, possible_ids
from ..protocol.rows import receipt_row
from ..protocol.signal import Signal
from ..protocol.tools.cards import call_card
from ..protocol.tools.receipts_text import receipt_line
from ..protocol.wire.codes import WireCode, WireError
from ..protocol.wire.identity import Owner, Reach
from ..storage.spill import SpillNotFound, SpillRangeError
from .house import House
from .queries import run_method
from .quick_reads import READ_TOOL
from .service import Service
from .tools.registry import ToolResult
from .wire_service import AgentFacts, Attached, Fetched, Progress, ToolAnswer, ToolInfo

_TOOL_CODES: Final = frozenset(code.value for code in ToolCode)
_NO_ACCESS: Final = "no such result, or it is not yours"


@attrs.define(eq=False)
class WireDoor:
    """One instance serves all connections. Holds nothing but the tools' descriptions."""

    service: Service
    _tools: tuple[ToolInfo, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._tools = self.service.registry.tool_list()

    async def attach(self, header: JSON, events: list[JSON] | None, owner: Owner, signal: Signal) -> Attached:
        house = await self.service.house()
        return await house.publishing.attach(header, events, owner, signal)

    async def append(
        self, session_id: str, from_seq: int, events: list[JSON], owner: Owner, signal: Signal
    ) -> int:
        house = await self.service.house()
        return await house.publishing.append(session_id, from_seq, events, owner, signal)

    async def detach(self, session_id: str, owner: Owner) -> None:
        house = await self.service.house()
        await house.publishing.detach(session_id, owner)

    def tool_list(self) -> tuple[ToolInfo, ...]:
        return self._tools

    def prompt(self) -> str:
        return self.service.registry.prompt()

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
        """Run one tool. A failed call raises its code and fixed text; the connection owns the deadline."""
        result = await self.service.call_tool(
            tool,
            arguments,
            caller,
            signal=signal,
            call_id=call_id,
            owner=_spill_owner(caller, owner),
            within=owner.reach,
        )
        if result.is_error:
            raise _failure(result)
        return ToolAnswer(
            text=result.text, card=result.card, receipt=_receipt(tool, result), spilled=_spilled(result)
        )

    def call_nowait(self, tool: str, arguments: JSON, caller: Caller) -> ToolAnswer | None:
        """See ``WireService.call_nowait``: small exact reads."""
        if tool != READ_TOOL:
            return None
        text = self.service.read_nowait(caller, arguments)
        return None if text is None else ToolAnswer(text=text, card=call_card(tool, arguments))

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
        return await run_method(
            self.service,
            method,
            params,
            reach=reach,
            lane=("connection", owner.connection_id),
            signal=signal,
            progress=progress,
        )

    async def resolve_agent(self, session_id: str, owner: Owner) -> AgentFacts | None:
        """See ``WireService.resolve_agent``: the token's own live session first, else one in its reach."""
        return self._agent(await self.service.house(), session_id, owner)

    def agent_nowait(self, session_id: str, owner: Owner) -> AgentFacts | None:
        """See ``WireService.agent_nowait``."""
        house = self.service.open_house
        return None if house is None else self._agent(house, session_id, owner)

    def _agent(self, house: House, session_id: str, owner: Owner) -> AgentFacts | None:
        own = house.live.of_token(session_id, owner.token_id)
        if len(own) == 1:
            return AgentFacts(header=own[0].header, source=own[0].key.source, live_owner=owner.token_id)
        rows = house.storage.point(
            lambda reader: reader.index.with_ids(possible_ids(session_id), owner.reach.listed)
        )
        inside = {row.key: row for row in rows if owner.reach.holds(row.state.header.cwd)}
        key = named(session_id, inside)
        if key is None:
            return None
        row = inside[key]
        live = house.live.with_sid(row.sid)
        header = attrs.evolve(row.state.header, id=session_id)
        return AgentFacts(
            header=header, source=key.source, live_owner=None if live is None else live.owner.token_id
        )

    async def fetch(self, locator: str, offset_bytes: int, limit_bytes: int, owner: Owner) -> Fetched:
        """See ``WireService.fetch``. What spilled for an agent belongs to its session's token."""
        import trio

        policy = self.service.spill
        store = None if policy is None else policy.store
        if store is None:
            raise WireError(WireCode.FORBIDDEN, _NO_ACCESS)
        for name in await self._spill_owners(owner):
            try:
                piece = await trio.to_thread.run_sync(
                    lambda name=name: store.read_range(locator, offset_bytes, limit_bytes, owner=name)  # type: ignore[misc]
                )
            except SpillNotFound:
                continue
            except SpillRangeError as exc:
                raise WireError(
                    WireCode.INVALID_ARGS, "the offset is beyond the end or inside a character"
                ) from exc
            return Fetched(
                offset_bytes=piece.offset_bytes,
                next_offset=piece.next_offset,
                total_bytes=piece.total_bytes,
                data=piece.data,
            )
        raise WireError(WireCode.FORBIDDEN, _NO_ACCESS)

    async def _spill_owners(self, owner: Owner) -> list[str]:
        return [f"token:{owner.token_id}", f"connection:{owner.connection_id}"]

    def health(self) -> JSON:
        return self.service.health()

    async def statistics(self) -> JSON:
        return await self.service.statistics()


def _spill_owner(caller: Caller, owner: Owner) -> str:
    """Spilled text belongs to the token (its agents' sessions may reconnect), SPEC 16.11."""
    return f"token:{owner.token_id}"


def _failure(result: ToolResult) -> ToolError | QueryError:
    code = result.code or ToolCode.TOOL_FAILED.value
    if code in _TOOL_CODES:
        return ToolError(ToolCode(code), result.text)
    return ToolError(Code(code), result.text)


def _receipt(tool: str, result: ToolResult) -> JSON:
    if result.receipt is None:
        return None
    line = receipt_line(result.receipt, within_session=tool == "session_event_search")
    return receipt_row(result.receipt) | {"text": line}


def _spilled(result: ToolResult) -> JSON:
    if result.spilled is None:
        return None
    return {
        "locator": result.spilled.locator,
        "total_bytes": result.spilled.total_bytes,
        "omitted_bytes": result.spilled.omitted_bytes,
    }
