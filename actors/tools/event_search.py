"""``session_event_search`` (SPEC 10.4, 10.8, 16.7.6)."""

from __future__ import annotations

import attrs
from msgspec import UNSET

from ...protocol.collected import Caller, EventSearch
from ...protocol.errors import ToolCode, ToolError
from ...protocol.json_value import is_safe_integer
from ...protocol.tools import checks
from ...protocol.tools.arguments import EventSearchArguments, decode_arguments
from ...protocol.tools.authority import own_id, require_caller, require_target
from ...protocol.tools.render_search import render_events
from .context import Answer, ToolContext, authorize_target, checked_title, read_title

NO_CURRENT_STEP_TEXT = (
    "Your session has no step yet, so nothing of it lies before the current one. Name another session."
)


async def session_event_search(context: ToolContext, raw: object) -> Answer:
    """Search one session's events; of the caller's own only what lies before its current step.

    Raises: ToolError, in the order of SPEC 10.4; the signal's exact reason; Busy.
    """
    arguments = decode_arguments("session_event_search", EventSearchArguments, raw)
    caller = require_caller(context.caller)
    target = await authorize_target(context, caller, arguments.session_id)
    query = checks.check_query(arguments.query)
    low, high = checks.seq_range(("seq_from", "seq_to"), arguments.seq_from, arguments.seq_to)
    if target == own_id(caller):
        last = await _last_before_current_step(context, caller)
        high = last if high is None else min(high, last)
        if (low or 0) > high:
            return await _nothing_before(context, caller, target)
    # The title comes with the hits, from the same snapshot (SPEC 16.4), not from a read before them.
    times = checks.time_clauses(("time_from", "time_to"), arguments.time_from, arguments.time_to)
    types = checks.type_clauses(arguments.event_types)
    surfaces = checks.surface_clauses("surfaces", arguments.surfaces)
    search = EventSearch(
        caller=caller,
        session_id=target,
        query=query,
        match="auto" if arguments.match is UNSET else arguments.match,
        event_clauses=(*checks.seq_clauses(low, high), *times, *types, *surfaces),
        cap=context.max_results,
    )
    return await _search(context, search)


async def _search(context: ToolContext, search: EventSearch) -> Answer:
    found = await context.observe(
        "search_events", lambda: context.service.collect_events(search, signal=context.signal)
    )
    require_target(search.caller, search.session_id, found.header)
    title = checked_title(search.caller, found.title)
    capped = found.capped or len(found.hits) > search.cap
    text = render_events(search.session_id, title, found.hits[: search.cap], capped, found.receipt)
    return Answer(text=text, receipt=found.receipt)


async def _last_before_current_step(context: ToolContext, caller: Caller) -> int:
    """Return S - 1 (SPEC 10.8.2); -1 when the session begins with the current step."""
    cut = await context.observe("own_cut", lambda: context.service.own_cut(caller, signal=context.signal))
    if cut is None:
        raise ToolError(ToolCode.NO_CURRENT_STEP, NO_CURRENT_STEP_TEXT)
    if not is_safe_integer(cut) or cut < 0:
        raise TypeError("the cut is no seq")
    return cut - 1


async def _nothing_before(context: ToolContext, caller: Caller, target: str) -> Answer:
    """Return the ordinary empty result without a search (SPEC 10.8.3)."""
    title = await read_title(context, caller, target)
    reach = await context.observe(
        "reach_receipt", lambda: context.service.reach_receipt(caller, signal=context.signal)
    )
    receipt = attrs.evolve(reach, filters_excluded_everything=True)
    return Answer(text=render_events(target, title, (), False, receipt), receipt=receipt)
