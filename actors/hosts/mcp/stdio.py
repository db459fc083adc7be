"""Serving one MCP client over standard input and output, until it closes them."""

from __future__ import annotations

from pathlib import Path

import attrs
import trio
from mcp.server.stdio import stdio_server

from .callers import CallerSource
from .cancelling import WatchedStream
from .launching import IDLE_EXIT_S, ServiceStarter
from .link import ServiceLink
from .server import McpHost


@attrs.frozen(kw_only=True)
class McpOptions:
    """What the command line can say. ``idle_exit_s`` is for a service that is started here."""

    data_dir: Path
    callers: CallerSource
    search_timeout_ms: int | None = None
    idle_exit_s: float = IDLE_EXIT_S


async def run_stdio(options: McpOptions, version: str) -> None:
    """Serve until the client closes its end. Standard output carries protocol messages and nothing else.

    The service is connected to (and started, if there is none) in the background from the first moment on,
    while the client is still introducing itself.
    Raises: nothing expected; a missing service is told call by call.
    """
    starter = ServiceStarter(options.data_dir, options.idle_exit_s)
    async with trio.open_nursery() as nursery:
        link = ServiceLink(starter)
        await nursery.start(link.run)
        link.want()
        host = McpHost(link, options.callers, options.search_timeout_ms)
        server = host.server(version)
        async with stdio_server() as (incoming, outgoing):
            watched = WatchedStream(incoming, host.cancellations)
            await server.run(watched, outgoing, server.create_initialization_options())
        nursery.cancel_scope.cancel(reason="the client has gone")
