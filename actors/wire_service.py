"""What a connection needs of the query service: the seam between the edge and the house.

The connection decodes, authenticates and authorises; whoever implements this decides everything about
sessions. Expected failures are ``QueryError``, ``ToolError``, ``WireError`` and ``Busy``; anything else
is a bug and reaches the peer as ``INTERNAL``, without its text.

Every method that takes a ``signal`` watches it, settles what it started, and then raises (the exact
reason, or anything: the connection looks at the signal first). An argument is never changed later by the
connection, and an answer is not changed later by the service.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import attrs

from ..protocol.collected import Caller
from ..protocol.header import SessionHeader
from ..protocol.json_value import JSON
from ..protocol.signal import Signal
from ..protocol.wire.identity import Owner, Reach

Progress: TypeAlias = Callable[[int, int | None, str], None]
"""``progress(done, total, unit)``: cheap, never blocks, may be called from the event loop only."""


@attrs.frozen(kw_only=True)
class Attached:
    """``next_seq`` is the number of stored events: where the next append starts."""

    session_id: str
    next_seq: int


@attrs.frozen(kw_only=True)
class ToolInfo:
    """One tool as ``tools`` tells it (SPEC 10.1). ``deadline_ms`` None: the tool has no deadline."""

    name: str
    description: str
    parameters: JSON
    concurrency: Literal["exclusive", "parallel"]
    deadline_ms: int | None = None


@attrs.frozen(kw_only=True)
class ToolAnswer:
    """What one call shows. ``receipt`` and ``spilled`` are plain JSON objects, or None.

    ``spilled``: ``{"locator", "total_bytes", "omitted_bytes"}`` when the text is a preview (SPEC 12.1).
    """

    text: str
    card: JSON
    receipt: JSON = None
    spilled: JSON = None


@attrs.frozen(kw_only=True)
class AgentFacts:
    """A session that may be named as the caller of a tool.

    ``live_owner``: the ``token_id`` that has it attached now, None for a stored session.
    """

    header: SessionHeader
    source: str
    live_owner: str | None = None


@attrs.frozen(kw_only=True)
class Fetched:
    """A piece of a spilled result: whole code points from ``offset_bytes`` on.

    ``next_offset == total_bytes`` on the last piece. Offsets and sizes are UTF-8 bytes.
    """

    offset_bytes: int
    next_offset: int
    total_bytes: int
    data: str


class WireService(Protocol):
    """The operations a connection may ask for. One instance serves all connections."""

    async def attach(self, header: JSON, events: list[JSON] | None, owner: Owner, signal: Signal) -> Attached:
        """Make a session live under ``owner``, creating it in the journal if it is new.

        The connection has already checked that the header's ``cwd`` lies in ``owner.reach``. ``events``
        None: no seed; a list (even an empty one): the seed, or, on attaching again, a stored prefix.
        Attaching again with the same token takes the session over from its older connection, whose
        appends answer ``NOT_ATTACHED`` from then on.

        Raises: WireError: INVALID_HEADER, INVALID_EVENT, BUSY (live under another token),
            INVALID_HEADER (incompatible with the stored header), SEQ_CONFLICT (seed differs).
        """
        ...

    async def append(
        self, session_id: str, from_seq: int, events: list[JSON], owner: Owner, signal: Signal
    ) -> int:
        """Commit a batch; return ``through_seq``, the last seq of the batch (``from_seq - 1`` if empty).

        Raises: WireError: NOT_ATTACHED (not by this connection, or taken over), INVALID_EVENT, then
            SEQ_GAP or SEQ_CONFLICT as ``protocol.wire.appending.judge`` says.
        """
        ...

    async def detach(self, session_id: str, owner: Owner) -> None:
        """End the live session if ``owner``'s connection still holds it; else do nothing."""
        ...

    def tool_list(self) -> tuple[ToolInfo, ...]:
        """The tools in their fixed order; the same value for the life of the service."""
        ...

    def prompt(self) -> str:
        """The prompt section (SPEC 10.1.4)."""
        ...

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
        """Run one tool. Spilled text is owned by the caller's session, else by ``owner``'s connection.

        Raises: ToolError, QueryError; the connection has checked that the tool exists.
        """
        ...

    def call_nowait(self, tool: str, arguments: JSON, caller: Caller) -> ToolAnswer | None:
        """What ``call`` would answer, if that takes some tens of microseconds and cannot fail; else None.

        Nothing is awaited, so nothing can be aborted, and the connection's reader may ask.
        """
        ...

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
        """Run one service operation for a program; the answer is pruned to ``reach`` (SPEC 16.11).

        Raises: QueryError; WireError: INVALID_ARGS for malformed ``params``.
        """
        ...

    async def resolve_agent(self, session_id: str, owner: Owner) -> AgentFacts | None:
        """The one session that ``session_id`` names inside ``owner.reach``, or None.

        A session live under ``owner.token_id`` comes first. Sessions outside the reach are not
        considered, so that nothing about them can be learned (SPEC 16.6.1).
        """
        ...

    def agent_nowait(self, session_id: str, owner: Owner) -> AgentFacts | None:
        """As ``resolve_agent``; None as well where that would have to wait."""
        ...

    async def fetch(self, locator: str, offset_bytes: int, limit_bytes: int, owner: Owner) -> Fetched:
        """A piece of a spilled result. At least one code point unless the end is reached.

        Raises: WireError: FORBIDDEN (unknown, or not ``owner``'s: one wording), INVALID_ARGS (an offset
            beyond the end or inside a code point).
        """
        ...

    def health(self) -> JSON:
        """A small JSON object for anyone who is authenticated: ``{"ready": bool, ...}``.

        Says nothing of what the service holds: it is told to every workspace alike.
        """
        ...

    async def statistics(self) -> JSON:
        """Counters for the operator. Raises: QueryError INDEX_FAILED."""
        ...
