"""A client's cancellations, with the reason they give.

The SDK cancels the request's task and hands the notification on afterwards; by then the reason is too late.
So it is read from the stream first, and aborts the request's signal, which carries it to the service.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Protocol, Self, TypeAlias

import attrs
from mcp import types
from mcp.shared.message import SessionMessage

from ....protocol.signal import Signal

Incoming: TypeAlias = SessionMessage | Exception
_CANCELLED: Final = "notifications/cancelled"


@attrs.define(eq=False)
class Cancellations:
    """The signals of running requests, by request id. Used from one event loop."""

    _signals: dict[str, Signal] = attrs.field(factory=dict, init=False)

    @contextmanager
    def signal(self, request_id: types.RequestId | None) -> Iterator[Signal]:
        """A signal that the client's cancellation of this request aborts, for the length of a block."""
        key, signal = str(request_id), Signal()
        self._signals[key] = signal
        try:
            yield signal
        finally:
            if self._signals.get(key) is signal:
                del self._signals[key]

    def notice(self, message: Incoming) -> None:
        """Look at what the client sent; a cancellation aborts its request's signal with its reason."""
        if not isinstance(message, SessionMessage):
            return
        notification = message.message
        if not isinstance(notification, types.JSONRPCNotification) or notification.method != _CANCELLED:
            return
        params = notification.params or {}
        signal = self._signals.get(str(params.get("requestId")))
        if signal is not None:
            reason = params.get("reason")
            signal.abort(reason if isinstance(reason, str) else None)


class Source(Protocol):
    """The SDK's stream of messages, as far as it is used here."""

    @property
    def last_context(self) -> contextvars.Context | None: ...
    async def receive(self) -> Incoming: ...
    async def __anext__(self) -> Incoming: ...
    async def aclose(self) -> None: ...


@attrs.define(eq=False)
class WatchedStream:
    """The client's messages, each noticed before it is handed on."""

    _inner: Source
    _cancellations: Cancellations

    @property
    def last_context(self) -> contextvars.Context | None:
        return self._inner.last_context

    async def receive(self) -> Incoming:
        message = await self._inner.receive()
        self._cancellations.notice(message)
        return message

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> WatchedStream:
        return self

    async def __anext__(self) -> Incoming:
        message = await self._inner.__anext__()
        self._cancellations.notice(message)
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
