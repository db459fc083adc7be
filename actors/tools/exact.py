"""The three exact tools: ``session_trace``, ``session_event_trace``, ``session_event_read`` (SPEC 10.4)."""

from __future__ import annotations

from typing import Final

import trio

from ...protocol.collected import FoundTitle
from ...protocol.event import Event
from ...protocol.records import EventWindow
from ...protocol.tools.arguments import (
    EventReadArguments,
    EventTraceArguments,
    SessionTraceArguments,
    decode_arguments,
)
from ...protocol.tools.authority import VisibleLineage, prune_lineage, require_caller, require_target
from ...protocol.tools.checks import check_seq
from ...protocol.tools.render_read import render_window
from ...protocol.tools.render_trace import render_event_trace, render_lineage
from .context import Answer, ToolContext, authorize_target, read_title, read_titles

_HEAVY_SESSIONS: Final = 1_000
"""A lineage larger than this is rendered in a thread: about 3 us a session in the loop otherwise."""
_HEAVY_CHARS: Final = 100_000
"""Events above this are rendered in a thread; below, a hop (0.2-0.4 ms) costs more than the work."""


async def session_trace(context: ToolContext, raw: object) -> Answer:
    """Show a session's ancestors and descendants as far as the caller may see them.

    Raises: ToolError, in the order of SPEC 10.4; the signal's exact reason; Busy.
    """
    arguments = decode_arguments("session_trace", SessionTraceArguments, raw)
    caller = require_caller(context.caller)
    target = await authorize_target(context, caller, arguments.session_id)
    lineage = await context.observe(
        "trace_session",
        lambda: context.service.trace_session(caller, target, signal=context.signal),
    )
    require_target(caller, target, lineage.target.header)
    visible = prune_lineage(caller, lineage)
    titles = await read_titles(context, caller, _visible_ids(visible))
    if len(titles) > _HEAVY_SESSIONS:
        return Answer(text=await trio.to_thread.run_sync(render_lineage, visible, titles))
    return Answer(text=render_lineage(visible, titles))


def _visible_ids(lineage: VisibleLineage) -> list[str]:
    records = [lineage.target, *lineage.ancestors]
    records.extend(record for _, record in lineage.descendants if record is not None)
    return [record.header.id for record in records]


async def session_event_trace(context: ToolContext, raw: object) -> Answer:
    """Show the relations of one event.

    Raises: ToolError, in the order of SPEC 10.4; the signal's exact reason; Busy.
    """
    arguments = decode_arguments("session_event_trace", EventTraceArguments, raw)
    seq = check_seq("seq", arguments.seq)
    caller = require_caller(context.caller)
    target = await authorize_target(context, caller, arguments.session_id)
    trace = await context.observe(
        "trace_event",
        lambda: context.service.trace_event(caller, target, seq, signal=context.signal),
    )
    require_target(caller, target, trace.header)
    return Answer(text=render_event_trace(trace, await read_title(context, caller, target)))


async def session_event_read(context: ToolContext, raw: object) -> Answer:
    """Show one event in full and the text of its neighbours.

    Raises: ToolError, in the order of SPEC 10.4; the signal's exact reason; Busy.
    """
    arguments = decode_arguments("session_event_read", EventReadArguments, raw)
    seq = check_seq("seq", arguments.seq)
    before = check_seq("before", arguments.before)
    after = check_seq("after", arguments.after)
    caller = require_caller(context.caller)
    target = await authorize_target(context, caller, arguments.session_id)
    window = await context.observe(
        "read_event",
        lambda: context.service.read_event(
            caller, target, seq, before=before, after=after, signal=context.signal
        ),
    )
    require_target(caller, target, window.header)
    return await _render_read(window, await read_title(context, caller, target))


async def _render_read(window: EventWindow, title: FoundTitle) -> Answer:
    if _is_heavy((window.target, *window.events)):
        return Answer(text=await trio.to_thread.run_sync(render_window, window, title))
    return Answer(text=render_window(window, title))


def _is_heavy(events: tuple[Event, ...]) -> bool:
    """Return whether the events hold more than ``_HEAVY_CHARS``; stops counting there."""
    left = _HEAVY_CHARS
    stack: list[object] = [event.data for event in events]
    while stack and left > 0:
        node = stack.pop()
        if isinstance(node, str):
            left -= len(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        left -= 10
    return left <= 0
