"""What a program can ask of the service: the half of both clients that knows neither loop nor line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import attrs

from ...protocol.json_value import JSON
from ...protocol.signal import Signal
from ...protocol.wire import messages as m
from ...protocol.wire.client_core import ClientCore, OnProgress
from ...protocol.wire.publication import Event
from . import requests
from .publication import ClientPublication
from .waiter import Waiter

A = TypeVar("A", bound=m.Message)


@attrs.define(eq=False)
class Requester(ABC):
    """Requests and publications over one ``ClientCore``. A subclass moves the core's frames.

    ``url``: where the service listens. Every method may be called from any task of the client's own loop.
    """

    url: str
    _core: ClientCore

    @property
    def welcome(self) -> m.Welcome | None:
        """What the server last said of itself; None before the first connection."""
        return self._core.welcome

    async def tools(self) -> m.Tools:
        """The tools and the prompt section. Raises: as ``call``."""
        return await self._ask(requests.tools(), m.Tools)

    async def call(
        self,
        tool: str,
        arguments: JSON,
        *,
        agent: str | None = None,
        workspace: str | None = None,
        reach: list[str] | m.ReachAll | None = None,
        call_id: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
        signal: Signal | None = None,
    ) -> m.Result:
        """Run a tool for one caller: an ``agent`` (session id), a ``workspace``, or an operator's ``reach``.

        Args: signal: aborting it cancels the request with the signal's reason (if that is JSON).
        Raises: ServerError (RequestAborted, ServerBusy, …), ConnectionLost, LocalProtocolError.
        Cancellation: the server is told; nothing is waited for.
        """
        build = requests.call(
            tool,
            arguments,
            agent=agent,
            workspace=workspace,
            reach=reach,
            call_id=call_id,
            deadline_ms=deadline_ms,
            follow=on_progress is not None,
        )
        return await self._ask(build, m.Result, on_progress, signal)

    async def query(
        self,
        method: str,
        params: JSON = None,
        *,
        reach: list[str] | m.ReachAll | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
        signal: Signal | None = None,
    ) -> JSON:
        """Run a service operation; see the wire specification for methods. Raises: as ``call``."""
        follow = on_progress is not None
        build = requests.query(method, params, reach=reach, deadline_ms=deadline_ms, follow=follow)
        return (await self._ask(build, m.Value, on_progress, signal)).value

    async def fetch(self, locator: str, offset_bytes: int = 0, limit_bytes: int | None = None) -> m.Chunk:
        """One piece of a spilled result. Raises: as ``call``."""
        return await self._ask(requests.fetch(locator, offset_bytes, limit_bytes), m.Chunk)

    async def fetch_all(self, locator: str) -> str:
        """A spilled result whole. Raises: as ``call``."""
        pieces, offset, last = list[str](), 0, False
        while not last:
            chunk = await self.fetch(locator, offset)
            last = chunk.last or chunk.next_offset <= offset
            offset = chunk.next_offset
            pieces.append(chunk.data)
        return "".join(pieces)

    async def publish(self, header: JSON, seed: list[Event] | None = None) -> ClientPublication:
        """Attach a session and keep it attached over reconnects. Returns when it is attached first.

        Raises: ServerError (FORBIDDEN, INVALID_HEADER, …), ConnectionLost, LocalProtocolError.
        Cancellation: the session is given up.
        """
        publication = ClientPublication(self._core, self._core.publish(header, seed), self._waiter)
        attached = False
        try:
            await publication.flush()
            attached = True
        finally:
            if not attached:
                self._core.unpublish(publication.core, lambda answer: None)
        return publication

    @abstractmethod
    def _waiter(self) -> Waiter:
        """A new wait, for a task of this client's loop."""

    async def _ask(
        self,
        build: requests.Build,
        kind: type[A],
        on_progress: OnProgress | None = None,
        signal: Signal | None = None,
    ) -> A:
        waiter = self._waiter()
        request_id = self._core.request(build, waiter.settle, on_progress)
        forget: Callable[[], None] | None = None
        if signal is not None:
            forget = signal.on_abort(partial(self._cancel, request_id, signal))
        answered = False
        try:
            answer = await waiter.wait()
            answered = True
        finally:
            if forget is not None:
                forget()
            if not answered:  # cancelled
                self._core.forget(request_id)
        return requests.expect(answer, kind)

    def _cancel(self, request_id: int, signal: Signal) -> None:
        self._core.cancel(request_id, requests.sendable_reason(signal.reason))
