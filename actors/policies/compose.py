"""The stages in the one order that works (SPEC 12.1.3, 12.2).

Spill outermost, because it bounds what every other stage produced; deadline directly around the call,
because it must see the call's end. What is between them later (masking) sees the caller's own signal.
"""

from __future__ import annotations

from ..tools.registry import ToolRegistry, ToolResult
from .deadline import with_deadline
from .spill import SpillPolicy, with_spill
from .stage import Stage, ToolCall


def compose(registry: ToolRegistry, spill: SpillPolicy | None) -> Stage:
    """Return the whole way of a call: registry, deadline, spill (none when ``spill`` is None)."""

    async def call_tool(call: ToolCall) -> ToolResult:
        return await registry.call(call.tool, call.arguments, call.caller, call.signal, call.call_id)

    deadlines = {tool.name: tool.deadline_ms for tool in registry.tool_list()}
    bounded = with_deadline(call_tool, deadlines)
    return bounded if spill is None else with_spill(bounded, spill)
