"""The WebSocket edge: listening, admitting, watching, and stopping in stages.

Connections live in a nursery of their own, shielded from the host's cancellation, so that stopping is ours
to order: no new connections; ``goaway``; what runs may finish within the grace; what still runs is aborted
with ``shutdown`` and awaited; then the sockets close with 1001. The query service must outlive this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

import attrs
import trio
from wsproto.utilities import LocalProtocolError

from ...protocol.json_value import JSON
from ...protocol.wire.limits import HELLO_BYTES
from ..counted_stream import CountedStream
from ..wire_service import WireService
from .connection import REFUSED_TOKEN, Connection
from .failures import log_failure
from .link import CLOSE_GOING_AWAY, CLOSE_POLICY, HandshakeRefused, open_link
from .listeners import Listener, open_listeners, port_of
from .server_config import ServerConfig
from .server_state import ServerState
from .tokens import Throttle, TokenBook

logger = logging.getLogger(__name__)

CROWDED_OUT: Final = "crowded out"
"""Why a connection ended that had not said hello when a newer one needed its place."""


@attrs.define(eq=False)
class WebSocketServer:
    """A running edge. ``port`` is the bound one, ``url`` what local clients connect to."""

    service: WireService
    config: ServerConfig
    state: ServerState
    port: int = attrs.field(default=0, init=False)
    connections: dict[str, Connection] = attrs.field(factory=dict, init=False, repr=False)
    _ids: count[int] = attrs.field(factory=lambda: count(1), init=False, repr=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)
    _stop_reason: str = attrs.field(default="the service is stopping", init=False)
    _grace_s: float = attrs.field(default=0.0, init=False)
    _draining: bool = attrs.field(default=False, init=False)
    _left: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)

    @property
    def url(self) -> str:
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{'wss' if self.config.encrypted else 'ws'}://{host}:{self.port}/"

    def stop(self, reason: str = "the service is stopping", *, grace_s: float = 5.0) -> None:
        """Ask for a staged stop; ``serve_websocket`` returns when it is done. Idempotent; does not wait."""
        if not self._stop.is_set():
            self._stop_reason, self._grace_s = reason, grace_s
            self._stop.set()

    def statistics(self) -> dict[str, JSON]:
        return self.state.snapshot()

    async def serve_stream(self, stream: trio.abc.Stream) -> None:
        """Serve one peer on an accepted byte stream. Only cancellation leaves: one peer's trouble is not
        another's, so also a bug of ours ends just this connection; it is logged as an error.
        """
        name = f"connection-{next(self._ids)}"
        try:
            await self._serve(name, stream)
        except* HandshakeRefused as refused:
            for exc in refused.exceptions:
                self.state.refused[str(exc)] += 1
        except* LocalProtocolError:  # the library, on a ping that crossed our close frame
            logger.debug("%s: closed across a control frame", name)
        except* Exception as crash:
            for each in crash.exceptions:
                log_failure(name, None, "CRASHED", each, level=logging.ERROR)
        finally:
            self.connections.pop(name, None)
            self.state.open = len(self.connections)
            self.state.unauthenticated.pop(name, None)
            self._left.unpark_all()

    async def _serve(self, name: str, stream: trio.abc.Stream) -> None:
        """Admit one peer and serve it. Before its hello it may be dropped for a newer one, without a word."""
        counted, admission = CountedStream(stream, budget_bytes=HELLO_BYTES), trio.CancelScope()

        def drop() -> None:
            counted.broken = True  # nobody waits for its side of a closing handshake
            connection = self.connections.pop(name, None)
            if connection is None:
                admission.cancel(reason="a newer peer needs its place")
            else:
                connection.end(CLOSE_POLICY, CROWDED_OUT, deliver=False)

        self._take_place(name, drop)
        with admission:
            await self._serve_admitted(name, stream, counted)

    def _take_place(self, name: str, drop: Callable[[], None]) -> None:
        state, config = self.state, self.config
        crowded = len(state.unauthenticated) >= config.unauthenticated_max
        if crowded or len(self.connections) >= config.connections_max:
            state.make_way()
        state.unauthenticated[name] = drop

    async def _serve_admitted(self, name: str, stream: trio.abc.Stream, counted: CountedStream) -> None:
        state, config = self.state, self.config
        full = self._draining or len(self.connections) >= config.connections_max
        async with open_link(counted, config, refuse_with=503 if full else None) as link:
            connection = Connection(name, link, self.service, config, state, _host_of(stream))
            self.connections[name] = connection
            state.open = len(self.connections)
            if self._draining:  # the stop came during the handshake
                connection.end(CLOSE_GOING_AWAY, self._stop_reason)
            began = trio.current_time()
            await connection.run()
            _log_end(connection, trio.current_time() - began)

    async def watch(self) -> None:
        """Look after silent, stalled and revoked connections, for ever."""
        async with trio.open_nursery() as pings:
            while True:
                await trio.sleep(self.config.watch_s)
                await self.state.tokens.refresh()
                now = trio.current_time()
                for connection in tuple(self.connections.values()):
                    connection.watch(now, pings)

    async def stop_asked(self) -> None:
        await self._stop.wait()

    async def drain(self) -> None:
        """Stop from the edge inwards. Every stage is bounded; new connections have ended before."""
        self._draining = True
        everyone = tuple(self.connections.values())
        for connection in everyone:
            connection.say_goaway(self._stop_reason, round(self._grace_s * 1000))
        with trio.move_on_after(self._grace_s):
            await _all_idle(everyone)
        for connection in everyone:
            connection.abort_requests("shutdown")
        with trio.move_on_after(self.config.settle_s):
            for connection in everyone:
                await connection.handlers_ended()
        for connection in tuple(self.connections.values()):
            connection.end(CLOSE_GOING_AWAY, self._stop_reason)
        with trio.move_on_after(2 * self.config.settle_s + 2 * self.config.close_s) as scope:
            while self.connections:
                await self._left.park()
        if scope.cancelled_caught:
            logger.warning("%d connections did not end in time", len(self.connections))


async def serve_websocket(
    service: WireService,
    config: ServerConfig,
    *,
    task_status: trio.TaskStatus[WebSocketServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``stop`` is called on the reported server, or until cancelled (then without grace).

    Reports the server, its port bound, when connections are being accepted. Returns or leaves when every
    connection has ended and its sessions are detached; ``service`` must live that long.
    Raises: QueryError INVALID_CONFIG: token file, then TLS files, then an address that is not allowed;
        OSError: the port cannot be bound.
    """
    tokens = TokenBook(config.token_file, config.tokens)
    await tokens.load()
    state = ServerState(
        tokens=tokens,
        throttle=Throttle(config.auth_delay_s, config.auth_delay_max_s),
        tools={tool.name: tool for tool in service.tool_list()},
    )
    server = WebSocketServer(service, config, state)
    listeners = await open_listeners(config)
    try:
        server.port = port_of(listeners[0])
        async with trio.open_nursery() as outer:
            with trio.CancelScope(shield=True):  # a start that is cancelled would wait for it for ever
                connections: trio.Nursery = await outer.start(_shielded_nursery)
            try:
                await _accept(server, listeners, connections, task_status)
            finally:
                with trio.CancelScope(shield=True):  # every stage inside has its own bound
                    await server.drain()
                connections.cancel_scope.cancel(reason="drained")
    finally:
        with trio.CancelScope(shield=True):  # forceful: does not wait
            for listener in listeners:
                await trio.aclose_forcefully(listener)


async def _accept(
    server: WebSocketServer,
    listeners: list[Listener],
    connections: trio.Nursery,
    task_status: trio.TaskStatus[WebSocketServer],
) -> None:
    """Admit connections until the stop is asked for; ends with no listener open."""
    async with trio.open_nursery() as accepting:
        accepting.start_soon(server.watch)
        serve = partial(trio.serve_listeners, server.serve_stream, listeners, handler_nursery=connections)
        await accepting.start(serve)
        task_status.started(server)
        await server.stop_asked()
        accepting.cancel_scope.cancel(reason="stopping")


async def _shielded_nursery(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            task_status.started(nursery)
            await trio.sleep_forever()


async def _all_idle(connections: tuple[Connection, ...]) -> None:
    """Wait until no request runs; after ``goaway`` none can be added, so one look at each will do."""
    for connection in connections:
        await connection.idle.wait()


def _log_end(connection: Connection, lasted_s: float) -> None:
    """One line for each connection that was: who, from where, why it ended. A refused token is a warning."""
    owner, client = connection.owner, connection.client
    facts = {
        "event": "connection",
        "connection": connection.id,
        "host": connection.host,
        "token": None if owner is None else owner.token_id,
        "role": None if owner is None else owner.role,
        "client": None if client is None else f"{client.name} {client.version}",
        "reason": connection.end_reason,
        "lasted_s": round(lasted_s, 3),
    }
    logger.log(
        logging.WARNING if connection.end_reason == REFUSED_TOKEN else logging.INFO,
        "%s of token %s from %s ended: %s",
        connection.id,
        facts["token"] or "-",
        connection.host,
        connection.end_reason,
        extra={"facts": facts},
    )


def _host_of(stream: trio.abc.Stream) -> str:
    inner = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    if isinstance(inner, trio.SocketStream):
        try:
            return str(inner.socket.getpeername()[0])
        except OSError:
            return "gone"
    return "memory"
