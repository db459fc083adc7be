"""A published session as programs handle it, in either loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from ...protocol.wire.client_core import ClientCore
from ...protocol.wire.client_errors import ClientError
from ...protocol.wire.publication import Event, Publication
from .waiter import Waiter


@attrs.define(eq=False)
class ClientPublication:
    """A session this program publishes. Close it, or leave it to the end of the client."""

    _client: ClientCore
    core: Publication
    _waiter: Callable[[], Waiter]

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
        waiter = self._waiter()
        self.core.put(events, waiter.settle)
        self._client.pump(self.core)
        await _committed(waiter)

    async def flush(self) -> None:
        """Wait until everything handed over is committed. Raises: the error that ended this publication."""
        waiter = self._waiter()
        self.core.wait_all(waiter.settle)
        await _committed(waiter)

    async def close(self) -> None:
        """Detach the session; what is not committed by now is given up (``flush`` first)."""
        waiter = self._waiter()
        self._client.unpublish(self.core, waiter.settle)
        await waiter.wait()


async def _committed(waiter: Waiter) -> None:
    answer = await waiter.wait()
    if isinstance(answer, ClientError):
        raise answer
