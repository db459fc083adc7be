"""What all connections of one server share: tokens, counters, the tools that stand in line."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import Protocol

import attrs
import trio

from ..protocol.json_value import JSON
from ..protocol.wire import messages as m
from .tokens import Throttle, TokenBook
from .wire_service import ToolInfo


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
    unauthenticated: set[str] = attrs.field(factory=set, init=False)
    requests: Counter[str] = attrs.field(factory=Counter, init=False)
    errors: Counter[str] = attrs.field(factory=Counter, init=False)
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
        self.unauthenticated.discard(connection.id)
        self.opened += 1

    def count_answer(self, answer: m.Answer) -> None:
        if isinstance(answer, m.Error):
            self.errors[answer.code] += 1

    def ended(self, reason: str) -> None:
        self.ends[reason] += 1

    def snapshot(self) -> dict[str, JSON]:
        """Counters since the start, for the operator."""
        return {
            "open": self.open,
            "opened": self.opened,
            "unauthenticated": len(self.unauthenticated),
            "failed_logins": self.throttle.failures,
            "requests": dict(self.requests),
            "errors": dict(self.errors),
            "ends": dict(self.ends),
            "refused": dict(self.refused),
        }
