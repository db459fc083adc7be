"""The deadline policy: a call with a deadline runs under a derived signal (SPEC 12.2).

Expiry only notifies. The call is awaited to its end, however long that takes; if expiry came before
that end, the result is replaced. If the caller's abort came first, its own outcome stands.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import trio

from ...protocol.errors import ToolCode
from ...protocol.signal import Signal
from ...protocol.tools.cards import call_card
from ...protocol.tools.wording import timeout_text
from ..tools.registry import ToolResult
from .stage import Stage, ToolCall


@attrs.frozen
class TimeoutReason:
    """The reason a derived signal carries after its deadline."""

    deadline_ms: int
    code: ToolCode = ToolCode.TOOL_TIMEOUT


def with_deadline(inner: Stage, tool_deadlines_ms: Mapping[str, int | None]) -> Stage:
    """Return a stage that bounds each call by the smaller of its tool's and its own deadline.

    Calls with neither are passed on untouched, with the caller's own signal.
    """

    async def stage(call: ToolCall) -> ToolResult:
        deadline_ms = _smaller(tool_deadlines_ms.get(call.tool), call.deadline_ms)
        return await (inner(call) if deadline_ms is None else _bounded(inner, call, deadline_ms))

    return stage


def _smaller(one: int | None, other: int | None) -> int | None:
    given = [value for value in (one, other) if value is not None]
    return min(given, default=None)


async def _bounded(inner: Stage, call: ToolCall, deadline_ms: int) -> ToolResult:
    """Run one call under its deadline.

    Raises: what the call raised, unless expiry was first.
    Cancellation: passes to the call; the timer is released either way.
    """
    expires_at = trio.current_time() + deadline_ms / 1000
    derived, reason = Signal(), TimeoutReason(deadline_ms)
    forget = call.signal.on_abort(lambda: derived.abort(call.signal.reason))
    result: ToolResult | None = None
    error: Exception | None = None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_expire, derived, expires_at, reason)
            try:
                result = await inner(attrs.evolve(call, signal=derived))
            except Exception as raised:
                error = raised
            # Decided here, in the same step as the call's end: an expiry one tick later changes nothing.
            expired = derived.aborted and derived.reason is reason
            nursery.cancel_scope.cancel()
    finally:
        forget()
    if expired:
        return _timed_out(call, deadline_ms)
    if error is not None:
        raise error
    assert result is not None
    return result


async def _expire(derived: Signal, expires_at: float, reason: TimeoutReason) -> None:
    await trio.sleep_until(expires_at)
    derived.abort(reason)


def _timed_out(call: ToolCall, deadline_ms: int) -> ToolResult:
    return ToolResult(
        text=timeout_text(deadline_ms),
        card=call_card(call.tool, call.arguments),
        is_error=True,
        code=ToolCode.TOOL_TIMEOUT.value,
    )
