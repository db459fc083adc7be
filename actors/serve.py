"""``serve``: a service and its WebSocket edge, started in somebody else's nursery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio

from .config import ServiceConfig
from .edge.server import WebSocketServer, serve_websocket
from .edge.server_config import ServerConfig
from .scoping import alone
from .service import Service, open_service
from .wire_door import WireDoor


@attrs.frozen
class Serving:
    """A running service with its edge. ``url`` is what local clients connect to."""

    service: Service
    server: WebSocketServer

    @property
    def url(self) -> str:
        return self.server.url

    def stop(self, reason: str = "the service is stopping", *, grace_s: float = 5.0) -> None:
        """Ask for a staged stop: ``goaway``, grace, abort with ``shutdown``, then the service itself."""
        self.server.stop(reason, grace_s=grace_s)


async def serve(
    config: ServiceConfig,
    edge: ServerConfig,
    *,
    task_status: trio.TaskStatus[Serving] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until stopped or cancelled: ``serving = await nursery.start(serve, config, edge)``.

    Reports a ``Serving`` when connections are accepted. Stops from the edge inwards, also when cancelled.
    Raises: QueryError INVALID_CONFIG, INDEX_FAILED, PERSISTENCE_FAILED; OSError: the port cannot be bound.
    """
    async with open_service(config) as service, open_edge(service, edge) as server:
        task_status.started(Serving(service, server))
        await server.stop_asked()


@asynccontextmanager
async def open_edge(service: Service, edge: ServerConfig) -> AsyncIterator[WebSocketServer]:
    """Accept connections for an open service for the length of a block; drains when the block ends.

    A cancelled host still gets the staged stop, without grace.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            server: WebSocketServer = await nursery.start(serve_websocket, WireDoor(service), edge)
        except BaseExceptionGroup as group:
            raise alone(group) from group
        try:
            yield server
        except Exception as exc:  # handed on outside the nursery, so that it stays what it is
            failure = exc
        finally:
            server.stop()  # the nursery waits for the drain, which shields itself when cancelled
    if failure is not None:
        raise failure
