"""A service as a process of its own: signals, the ready line, the lock's announcement."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from ...storage.tokens import OPERATOR_FILE, TOKEN_FILE, ensure_operator_token
from ..config import ServiceConfig
from ..edge.server import WebSocketServer
from ..edge.server_config import ServerConfig
from ..serve import Serving, open_edge
from ..service import open_service
from .allocating import give_back_regularly, share_heaps
from .collecting import calm_collector

logger = logging.getLogger(__name__)

_STOP_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGBREAK") if hasattr(signal, name)
)

IDLE_LOOK_S: Final = 1.0
"""How often it is looked whether anybody is connected."""


async def run_server(
    config: ServiceConfig,
    edge: Callable[[Path], ServerConfig],
    ready: Callable[[str, Path, int], None],
    grace_s: float,
    idle_exit_s: float | None = None,
) -> None:
    """Serve ``config.data_dir`` until a signal; the first drains, a second stops at once.

    Args: edge: makes the edge's settings from the token file's path. ready: told url, the operator's token
        file and pid when connections are accepted. idle_exit_s: end as well once nobody has been connected
        for so long.
    Raises: as ``open_service`` and ``serve_websocket`` do.
    """
    data_dir = config.data_dir
    assert data_dir is not None, "a shipped host keeps its data somewhere"
    share_heaps()
    async with open_service(config) as service:
        await trio.to_thread.run_sync(ensure_operator_token, data_dir)
        async with open_edge(service, edge(data_dir / TOKEN_FILE)) as server:
            serving = Serving(service, server)
            await service.announce(serving.url)
            calm_collector()
            ready(serving.url, data_dir / OPERATOR_FILE, os.getpid())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_obey_signals, serving, grace_s)
                nursery.start_soon(give_back_regularly)
                if idle_exit_s is not None:
                    nursery.start_soon(stop_when_idle, serving.server, idle_exit_s)
                await server.stop_asked()
                nursery.cancel_scope.cancel()
            _let_signals_kill()  # while the edge and the store are closed below


async def _obey_signals(serving: Serving, grace_s: float) -> None:
    with trio.open_signal_receiver(*_STOP_SIGNALS) as signals:
        async for number in signals:
            name = signal.Signals(number).name
            logger.info("stopping: %s", name)
            serving.stop(f"received {name}", grace_s=grace_s)


def _let_signals_kill() -> None:
    """From here on the system itself obeys a stop signal, at once.

    Python's own way would not do: what drains is shielded, and a thread that does not end is waited for. What
    was acknowledged is on the disk; the next start finds everything, as after a crash.
    """
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


async def stop_when_idle(server: WebSocketServer, idle_s: float) -> None:
    """Ask for the stop once nobody has been connected for ``idle_s`` seconds; then return.

    A connection that came and went between two looks counts, too.
    """
    idle_since, opened = trio.current_time(), server.state.opened
    while True:
        await trio.sleep(min(IDLE_LOOK_S, idle_s))
        now = trio.current_time()
        if server.connections or server.state.opened != opened:
            idle_since, opened = now, server.state.opened
        elif now - idle_since >= idle_s:
            server.stop("nobody is connected", grace_s=0.0)
            return
