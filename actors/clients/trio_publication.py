"""A published session as Trio programs handle it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from ...protocol.wire import messages as m
from ...protocol.wire.client_core import ClientCore
from ...protocol.wire.client_errors import ClientError
from ...protocol.wire.publication import Event, Publication


@attrs.define(eq=False)
class Waiter:
    """One answer on its way to one task."""

    event: trio.Event = attrs.field(factory=trio.Event)
    answer: m.Answer | ClientError | None = None

    def settle(self, answer: m.Answer | ClientError) -> None:
        self.answer = answer
        self.event.set()

    def acknowledge(self, error: ClientError | None) -> None:
        self.answer = error
        self.event.set()


@attrs.define(eq=False)
class TrioPublication:
    """A session this program publishes. Close it, or leave it to the end of the client."""

    _client: ClientCore
    core: Publication

    @property
    def session_id(self) -> str:
        return self.core.session_id

    @property
    def next_seq(self) -> int:
        """The seq the next event will get; -1 until the session is attached for the first time."""
        return self.core.next_seq

    def append_nowait(self, events: Sequence[Event]) -> None:
        """Hand events over and go on. They are sent in order, again after a reconnect if need be.

        Raises: LocalProtocolError, PublicationFull, or the error that ended this publication.
        """
        self.core.put(events)
        self._client.pump(self.core)

    async def append(self, events: Sequence[Event]) -> None:
        """Hand events over and wait until they are committed.

        Raises: as ``append_nowait``; then the error that ended this publication. Cancellation: the events
        stay handed over.
        """
        waiter = Waiter()
        self.core.put(events, waiter.acknowledge)
        self._client.pump(self.core)
        await _committed(waiter)

    async def flush(self) -> None:
        """Wait until everything handed over is committed. Raises: the error that ended this publication."""
        waiter = Waiter()
        self.core.wait_all(waiter.acknowledge)
        await _committed(waiter)

    async def close(self) -> None:
        """Detach the session; what is not committed by now is given up (``flush`` first)."""
        waiter = Waiter()
        self._client.unpublish(self.core, waiter.settle)
        await waiter.event.wait()


async def _committed(waiter: Waiter) -> None:
    await waiter.event.wait()
    if isinstance(waiter.answer, ClientError):
        raise waiter.answer
