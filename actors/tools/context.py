"""What one tool call works with, and what it shares with the other four: targets and titles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import attrs
from msgspec import UNSET, UnsetType

from ...protocol.collected import Caller, FoundTitle
from ...protocol.errors import ToolCode, ToolError
from ...protocol.filters import IdClause, SessionClause
from ...protocol.records import Receipt, TitleItem
from ...protocol.signal import Signal
from ...protocol.tools.authority import (
    MISSING_AGENT_TEXT,
    own_id,
    reach_clauses,
    reach_of,
    require_target,
    unauthorized,
)
from ...protocol.tools.wording import model_code_and_text
from .boundary import observe, sanitize
from .service_protocol import ToolService

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Answer:
    """What a body hands back: the text and, for searches, the receipt as data."""

    text: str
    receipt: Receipt | None = None


@attrs.frozen(kw_only=True)
class ToolContext:
    """One call. ``caller`` is as the runtime told it, not yet judged (see ``require_caller``)."""

    service: ToolService
    caller: Caller | None
    signal: Signal
    max_results: int
    request_id: str | None = None

    async def observe(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        """Ask the service through the boundary (SPEC 11)."""
        return await observe(operation, call, signal=self.signal, request_id=self.request_id)


async def authorize_target(context: ToolContext, caller: Caller, session_id: str | UnsetType) -> str:
    """Return the id of the session to work on: the caller's own, or one in its reach.

    Raises: ToolError: MISSING_AGENT (no id given and no session of its own); ``unauthorized`` for a
    missing and for a hidden session alike (SPEC 10.7.3). The caller's own id costs no I/O.
    """
    own = own_id(caller)
    if session_id is UNSET:
        if own is None:
            raise ToolError(ToolCode.MISSING_AGENT, MISSING_AGENT_TEXT)
        return own
    if session_id == own or reach_of(caller) is None:
        return session_id
    if not reach_of(caller):
        raise unauthorized(caller)
    clauses: tuple[SessionClause, ...] = (IdClause((session_id,)), *reach_clauses(caller))
    records = await context.observe(
        "filter_sessions",
        lambda: context.service.filter_sessions(caller, clauses, signal=context.signal),
    )
    if len(records) != 1:
        raise unauthorized(caller)
    require_target(caller, session_id, records[0].header)
    return session_id


async def read_titles(context: ToolContext, caller: Caller, ids: Iterable[str]) -> dict[str, FoundTitle]:
    """Return the title of every id, in one batch (SPEC 10.10).

    A failed item becomes an annotation. Raises: ToolError: the batch failed, an item was refused for
    lack of authority, or a header observed with a title is not of the asked, authorized session.
    """
    unique = tuple(dict.fromkeys(ids))
    items = await context.observe(
        "read_titles", lambda: context.service.read_titles(caller, unique, signal=context.signal)
    )
    titles = {item.session_id: _item_title(context, caller, item) for item in items}
    return {session_id: titles[session_id] for session_id in unique}


async def read_title(context: ToolContext, caller: Caller, session_id: str) -> FoundTitle:
    """Return one title; as ``read_titles``."""
    return (await read_titles(context, caller, (session_id,)))[session_id]


def _item_title(context: ToolContext, caller: Caller, item: TitleItem) -> FoundTitle:
    if item.error is not None:
        failure = sanitize("read_title", item.error, context.request_id)
        if failure.code is ToolCode.UNAUTHORIZED:
            raise unauthorized(caller)
        return FoundTitle(error=failure.code.value)
    if item.header is None:
        raise TypeError("a title without the header it was observed with")
    require_target(caller, item.session_id, item.header)
    return FoundTitle(text=None if item.title is None else item.title.title)


def checked_title(caller: Caller, title: FoundTitle) -> FoundTitle:
    """Return a title that came with a search, its error reduced to what a model may know.

    Raises: ToolError: ``unauthorized`` if that is why the title is missing (SPEC 10.10).
    """
    if title.error is None:
        return title
    if title.error == ToolCode.UNAUTHORIZED.value:
        raise unauthorized(caller)
    return FoundTitle(error=model_code_and_text(title.error)[0].value)
