"""What all connections of one server share: tokens, counters, the tools that stand in line."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from typing import Protocol

import attrs
import trio

from ...protocol.json_value import JSON
from ...protocol.wire import messages as m
from ..wire_service import ToolInfo
from .request_times import RequestTimes
from .requests import RunningRequest
from .tokens import Throttle, TokenBook


class Known(Protocol):
    """A connection, as far as the counters care."""

    id: str


@attrs.define(eq=False)
class ServerState:
    """Shared by the server and its connections; changed only in the event loop."""

    tokens: TokenBook
    throttle: Throttle
    tools: dict[str, ToolInfo]
    instance: str = attrs.field(factory=lambda: secrets.token_hex(8))
    exclusive_tools: frozenset[str] = attrs.field(init=False)
    unauthenticated: dict[str, Callable[[], None]] = attrs.field(factory=dict, init=False)
    """Peers before their hello, the oldest first, each with what drops it: see ``make_way``."""
    dropped: int = attrs.field(default=0, init=False)
    requests: Counter[str] = attrs.field(factory=Counter, init=False)
    errors: Counter[str] = attrs.field(factory=Counter, init=False)
    times: RequestTimes = attrs.field(factory=RequestTimes, init=False)
    ends: Counter[str] = attrs.field(factory=Counter, init=False)
    refused: Counter[str] = attrs.field(factory=Counter, init=False)
    open: int = attrs.field(default=0, init=False)
    opened: int = attrs.field(default=0, init=False)
    slow_decoder: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1), init=False)
    """One thread for the frames that need Python to decode: more would only take the loop's turns."""

    def __attrs_post_init__(self) -> None:
        self.exclusive_tools = frozenset(
            name for name, tool in self.tools.items() if tool.concurrency == "exclusive"
        )

    def authenticated(self, connection: Known) -> None:
        self.unauthenticated.pop(connection.id, None)
        self.opened += 1

    def make_way(self) -> None:
        """Drop the oldest peer that has not said hello, if there is one.

        A place before the hello is lent to whoever came last: peers that only sit there cannot keep out one
        that has a token to show, which takes a few milliseconds.
        """
        if self.unauthenticated:
            self.unauthenticated.pop(next(iter(self.unauthenticated)))()
            self.dropped += 1

    def count_answer(self, request: RunningRequest, answer: m.Answer) -> None:
        self.times.note(request.message, trio.current_time() - request.arrived_at)
        if isinstance(answer, m.Error):
            self.errors[answer.code] += 1

    def count_quick(self, message: m.Request, seconds: float) -> None:
        """An answer without a failure that nobody waited for."""
        self.times.note(message, seconds)

    def ended(self, reason: str) -> None:
        self.ends[reason] += 1

    def snapshot(self) -> dict[str, JSON]:
        """Counters since the start, for the operator."""
        return {
            "open": self.open,
            "opened": self.opened,
            "unauthenticated": len(self.unauthenticated),
            "unauthenticated_dropped": self.dropped,
            "failed_logins": self.throttle.failures,
            "requests": dict(self.requests),
            "errors": dict(self.errors),
            "request_times": self.times.told(),
            "ends": dict(self.ends),
            "refused": dict(self.refused),
        }
