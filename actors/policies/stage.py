"""A stage: a tool call goes in, a result comes out. Policies wrap one stage in another (SPEC 12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs

from ...protocol.collected import Caller
from ...protocol.signal import Signal
from ..tools.registry import ToolResult


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call on its way. ``deadline_ms`` is the asker's own; ``owner`` keeps what spills (SPEC 16.11)."""

    tool: str
    arguments: object
    caller: Caller | None
    signal: Signal
    call_id: str | None = None
    deadline_ms: int | None = None
    owner: str | None = None


Stage: TypeAlias = Callable[[ToolCall], Awaitable[ToolResult]]
