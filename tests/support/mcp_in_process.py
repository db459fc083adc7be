"""A real service over the sample sessions and MCP hosts on it, all in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio
from mcp import Client

from session_query.actors.config import ServiceConfig, Source
from session_query.actors.edge.server_config import ServerConfig
from session_query.actors.hosts.mcp.callers import CallerSource
from session_query.actors.hosts.mcp.link import ServiceLink
from session_query.actors.hosts.mcp.server import McpHost
from session_query.actors.serve import Serving, open_edge
from session_query.actors.service import open_service
from session_query.protocol.signal import Signal
from session_query.storage.tokens import TOKEN_FILE, ensure_operator_token
from support.command_line import SAMPLES
from support.mcp_hosts import FixedStarter, connected


@attrs.frozen
class Hosting:
    """A served data directory. ``client`` opens one more host on it with the official client in front."""

    serving: Serving
    data_dir: Path

    @asynccontextmanager
    async def client(self, workspace: str, **more: Any) -> AsyncIterator[Client]:
        async with trio.open_nursery() as nursery:
            link = ServiceLink(FixedStarter(self.data_dir, url=self.serving.url))
            await nursery.start(link.run)
            host = McpHost(link, CallerSource(None, workspace, None, "/home/nobody"), **more)
            async with connected(host) as client:
                yield client
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def hosting(data_dir: Path, **settings: Any) -> AsyncIterator[Hosting]:
    """Serve the sample sessions, read to the end."""
    sources = tuple(Source(format=name, root=SAMPLES / name) for name in ("claude-code", "codex", "dsh"))
    config = ServiceConfig(
        **{"data_dir": data_dir, "sources": sources, "watch": False, "max_inline_bytes": 50_000, **settings}
    )
    async with open_service(config) as service:
        await trio.to_thread.run_sync(ensure_operator_token, data_dir)
        edge = ServerConfig(token_file=data_dir / TOKEN_FILE)
        async with open_edge(service, edge) as server:
            hosting = Hosting(Serving(service, server), data_dir)
            house = await service.house()
            await house.freshness.refresh(full=False, progress=None, signal=Signal())
            yield hosting
