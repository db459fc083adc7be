"""One request to its answer: authority, deadline, the service's method, and every way it can fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs
import trio

from ...protocol.json_value import JSON
from ...protocol.wire import messages as m
from ...protocol.wire.codes import WireCode, WireError
from ...protocol.wire.identity import Owner
from ...protocol.wire.methods import check_params, find_method
from ..metrics import prometheus_text
from ..wire_service import Progress, ToolAnswer, WireService
from .authority import caller_nowait, check_attach, check_method, query_reach, resolve_caller
from .failures import abort_error, failure_error
from .requests import Follower, RunningRequest, deadline
from .server_config import ServerConfig
from .server_state import ServerState

SendProgress = Callable[[int, int, int | None, str], None]

_WRITES: Final = (m.Attach, m.Append, m.Detach)
"""A write that has happened is told as done, aborted or not: it cannot be taken back."""


@attrs.frozen(eq=False)
class Answers:
    """Answers requests of one connection. ``sessions``: the ids it holds live, changed here alone."""

    service: WireService
    config: ServerConfig
    state: ServerState
    owner: Owner
    sessions: set[str]

    async def answer(self, request: RunningRequest, send_progress: SendProgress) -> m.Answer:
        """Run the request to its end and say what came out. Never raises but for cancellation.

        The deadline counts from here, waiting in line included. When the signal was aborted by the time
        the handler settled, that is the answer, whatever the handler returned or raised (SPEC 11.2).
        """
        message = request.message
        at, deadline_ms = self._deadline(message)
        if at is None:  # most reads: no timer to set up
            outcome = await self._outcome(request, send_progress)
        else:
            async with deadline(request.signal, at, deadline_ms):
                outcome = await self._outcome(request, send_progress)
        reason = request.abort_reason
        if reason is not None and not _is_done_write(message, outcome):
            return abort_error(request.id, reason)
        assert outcome is not None, "only an abort leaves no outcome"
        return outcome

    def answer_nowait(self, message: m.Request) -> m.Result | None:
        """A call's result if the service has it at once; None: ``answer`` tells, also of every failure.

        It is had in one step: no abort and no deadline can come between (SPEC 11.2).
        """
        if not isinstance(message, m.Call) or message.tool not in self.state.tools:
            return None
        try:
            caller = caller_nowait(self.service, self.owner, message)
        except WireError:
            return None
        if caller is None:
            return None
        found = self.service.call_nowait(message.tool, message.arguments, caller)
        return None if found is None else _result(message.id, found)

    def _deadline(self, message: m.Request) -> tuple[float | None, int]:
        """(absolute Trio time, milliseconds): the smaller of the tool's deadline and the caller's."""
        deadline_ms: int | None = getattr(message, "deadline_ms", None)
        if isinstance(message, m.Call) and message.tool in self.state.tools:
            own = self.state.tools[message.tool].deadline_ms
            deadline_ms = own if deadline_ms is None else min(deadline_ms, own or deadline_ms)
        if deadline_ms is None:
            return None, 0
        return trio.current_time() + deadline_ms / 1000, deadline_ms

    async def _outcome(self, request: RunningRequest, send_progress: SendProgress) -> m.Answer | None:
        """The handler's answer; None if it failed after an abort, which then is the answer."""
        message = request.message
        try:
            await request.wait_turn()
            request.signal.raise_if_aborted()
            return await self._handle(request, send_progress)
        except Exception as exc:
            if request.signal.aborted:
                return None
            operation = m.tag_of(type(message))
            return failure_error(request.id, exc, operation, for_model=isinstance(message, m.Call))

    async def _handle(self, request: RunningRequest, send_progress: SendProgress) -> m.Answer:
        match request.message:
            case m.Attach() as message:
                return await self._attach(message, request)
            case m.Append() as message:
                return await self._append(message, request)
            case m.Detach() as message:
                return await self._detach(message)
            case m.ToolsRequest() as message:
                return self._tools(message)
            case m.Call() as message:
                return await self._call(message, request, send_progress)
            case m.Query() as message:
                return await self._query(message, request, send_progress)
            case m.Fetch() as message:
                return await self._fetch(message)

    async def _attach(self, message: m.Attach, request: RunningRequest) -> m.Attached:
        check_attach(self.owner.reach, message.session)
        session_id = message.session.get("id") if isinstance(message.session, dict) else None
        held = session_id in self.sessions
        if isinstance(session_id, str):
            self.sessions.add(session_id)  # before it happens: a lost attach is detached all the same
        try:
            attached = await self.service.attach(message.session, message.events, self.owner, request.signal)
        except WireError:
            if isinstance(session_id, str) and not held:
                self.sessions.discard(session_id)
            raise
        self.sessions.add(attached.session_id)
        return m.Attached(id=message.id, session_id=attached.session_id, next_seq=attached.next_seq)

    async def _append(self, message: m.Append, request: RunningRequest) -> m.Appended:
        self._require_attached(message.session_id)
        try:
            through_seq = await self.service.append(
                message.session_id, message.from_seq, message.events, self.owner, request.signal
            )
        except WireError as error:
            if error.code is WireCode.NOT_ATTACHED:  # a newer connection took it over
                self.sessions.discard(message.session_id)
            raise
        return m.Appended(id=message.id, through_seq=through_seq)

    async def _detach(self, message: m.Detach) -> m.Detached:
        self._require_attached(message.session_id)
        await self.service.detach(message.session_id, self.owner)
        self.sessions.discard(message.session_id)
        return m.Detached(id=message.id)

    def _require_attached(self, session_id: str) -> None:
        if session_id not in self.sessions:
            raise WireError(WireCode.NOT_ATTACHED, "this connection has not attached that session")

    def _tools(self, message: m.ToolsRequest) -> m.Tools:
        tools = [
            m.ToolDescription(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                concurrency=tool.concurrency,
                deadline_ms=tool.deadline_ms,
            )
            for tool in self.state.tools.values()
        ]
        return m.Tools(id=message.id, tools=tools, prompt=self.service.prompt())

    async def _call(self, message: m.Call, request: RunningRequest, send: SendProgress) -> m.Result:
        if message.tool not in self.state.tools:
            raise WireError(WireCode.UNKNOWN_TOOL, "there is no such tool")
        caller = await resolve_caller(self.service, self.owner, message)
        answer = await self.service.call(
            message.tool,
            message.arguments,
            caller,
            owner=self.owner,
            signal=request.signal,
            call_id=message.call_id,
            progress=self._follower(message, send),
        )
        return _result(message.id, answer)

    async def _query(self, message: m.Query, request: RunningRequest, send: SendProgress) -> m.Value:
        method = find_method(message.method)
        check_method(self.owner.role, method)
        params = check_params(method, message.params)
        reach = query_reach(self.owner, message.reach)
        if method.name == "health":
            return m.Value(id=message.id, value=self.service.health())
        if method.name in ("statistics", "metrics"):
            told: JSON = {"service": await self.service.statistics(), "connections": self.state.snapshot()}
            return m.Value(id=message.id, value=prometheus_text(told) if method.name == "metrics" else told)
        value = await self.service.query(
            method.name,
            params,
            reach=reach,
            owner=self.owner,
            signal=request.signal,
            progress=self._follower(message, send),
        )
        return m.Value(id=message.id, value=value)

    async def _fetch(self, message: m.Fetch) -> m.Chunk:
        limit = min(message.limit_bytes or self.config.fetch_bytes, self.config.fetch_bytes)
        piece = await self.service.fetch(message.locator, message.offset_bytes, limit, self.owner)
        return m.Chunk(
            id=message.id,
            offset_bytes=piece.offset_bytes,
            next_offset=piece.next_offset,
            total_bytes=piece.total_bytes,
            last=piece.next_offset >= piece.total_bytes,
            data=piece.data,
        )

    def _follower(self, message: m.Call | m.Query, send: SendProgress) -> Progress | None:
        if not message.follow:
            return None
        return Follower(partial(send, message.id), self.config.progress_every_s)


def _result(request_id: int, answer: ToolAnswer) -> m.Result:
    return m.Result(
        id=request_id, text=answer.text, card=answer.card, receipt=answer.receipt, spilled=answer.spilled
    )


def _is_done_write(message: m.Request, outcome: m.Answer | None) -> bool:
    return isinstance(message, _WRITES) and outcome is not None and not isinstance(outcome, m.Error)
