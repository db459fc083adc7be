"""A service, or a bare echo on the same library, as a process of its own: the bench is its client.

    python -m session_query.bench.service.child serve DATA_DIR [LOG_ROOT]
    python -m session_query.bench.service.child echo ANSWER_BYTES

Prints one line of JSON with its address when it accepts connections; ends when its standard input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio
import trio_websocket as ws

from ...actors.config import ServiceConfig, Source
from ...actors.edge.server_config import ServerConfig
from ...actors.hosts.allocating import give_back_regularly, share_heaps
from ...actors.hosts.collecting import calm_collector
from ...actors.serve import Serving, serve
from ...storage.tokens import StoredToken, hash_token

TOKEN: Final = "bench"
_OPERATOR: Final = StoredToken(
    id="bench", name="bench", role="operator", workspaces="*", hash=hash_token(TOKEN), created_at=0
)


@attrs.frozen
class Child:
    """A running child. ``url`` is where it listens."""

    pid: int
    url: str


@asynccontextmanager
async def child(*arguments: str) -> AsyncIterator[Child]:
    """Run a child for the length of a block."""
    command = [sys.executable, "-m", __name__, *arguments]
    async with trio.open_nursery() as nursery:
        start = partial(trio.run_process, command, stdin=_PIPE, stdout=_PIPE, check=False)
        process: trio.Process = await nursery.start(start)
        assert process.stdin is not None
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            more = await process.stdout.receive_some(4096)
            if not more:
                raise RuntimeError("the child did not start")
            line += more
        try:
            yield Child(process.pid, json.loads(line)["url"])
        finally:
            with trio.CancelScope(shield=True):  # bounded by its own staged stop
                await process.stdin.aclose()
                await process.wait()


_PIPE: Final = -1


async def _serve(data_dir: str, log_root: str | None = None) -> None:
    sources = () if log_root is None else (Source(format="dsh", root=Path(log_root)),)
    config = ServiceConfig(data_dir=Path(data_dir), sources=sources)
    edge = ServerConfig(tokens=(_OPERATOR,), connections_max=4096)
    share_heaps()  # as the shipped host does
    async with trio.open_nursery() as nursery:
        serving: Serving = await nursery.start(serve, config, edge)
        calm_collector()  # as the shipped host does
        async with trio.open_nursery() as upkeep:
            upkeep.start_soon(give_back_regularly)  # this, too
            await _until_told(serving.url)
            upkeep.cancel_scope.cancel()
        serving.stop(grace_s=0.5)


async def _echo(answer_bytes: int) -> None:
    """Answer every message with a text of one size: what the library costs, and nothing else."""
    answer = "x" * answer_bytes

    async def handle(request: ws.WebSocketRequest) -> None:
        socket = await request.accept()
        try:
            while True:
                await socket.get_message()
                await socket.send_message(answer)
        except ws.ConnectionClosed:
            return

    config = ServerConfig(tokens=(_OPERATOR,))
    async with trio.open_nursery() as nursery:
        listen = partial(
            ws.serve_websocket, handle, "127.0.0.1", 0, None,
            receive_buffer_size=config.receive_buffer_bytes, max_message_size=config.frame_bytes,
        )  # fmt: skip
        server: ws.WebSocketServer = await nursery.start(listen)
        calm_collector()  # as the service beside it does
        await _until_told(f"ws://127.0.0.1:{server.port}")
        nursery.cancel_scope.cancel()


async def _until_told(url: str) -> None:
    """Say where we are, and wait until our parent closes our standard input, or dies."""
    print(json.dumps({"url": url}), flush=True)
    async with trio.lowlevel.FdStream(sys.stdin.fileno()) as told:
        while await told.receive_some(1024):
            pass


if __name__ == "__main__":
    what, *more = sys.argv[1:]
    if what == "serve":
        trio.run(_serve, more[0], more[1] if more[1:] else None)
    else:
        trio.run(_echo, int(more[0]))
