"""Where a command's answers come from: the data directory's running service, or one in this process.

Both speak the same query methods, so that a command never needs to know which it has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import attrs
import click

from ....protocol.errors import Code, QueryError
from ....protocol.json_value import JSON
from .errors import EXIT_STORE, CommandError
from .options import parse_sources, settings

if TYPE_CHECKING:  # a command's module is imported for `--help`, which should not load a database
    from ....storage.lock import Holder
    from ...config import Source
    from ...service import Service

Progress: TypeAlias = Callable[[int, int | None, str], None]

IN_USE_S: Final = 10.0
"""So long a command waits for another one that has the data directory; most take a second."""
IN_USE_AGAIN_S: Final = 0.1


class Backend(Protocol):
    """One operator's door to the query service of a data directory."""

    async def query(self, method: str, params: dict[str, JSON], progress: Progress | None = None) -> JSON:
        """Ask one query method as the operator. Raises what the service raises, typed."""
        ...


def run(
    ctx: click.Context,
    sources: tuple[str, ...],
    ask: Callable[[Backend], Awaitable[JSON]],
    *,
    fresh: bool = True,
) -> JSON:
    """Ask the right backend and return its answer; printing it is the command's, when all is closed again.

    ``fresh``: look at the sources before asking (a first index shows its progress).
    Raises: what the service raises, typed; CommandError.
    """
    import trio

    chosen = parse_sources(sources)
    data_dir = settings(ctx).data_dir.expanduser().absolute()

    async def main() -> JSON:
        async with open_backend(data_dir, chosen) as backend:
            if fresh:
                await refresh(backend, quiet=settings(ctx).as_json)
            return await ask(backend)

    return trio.run(main)


async def refresh(backend: Backend, *, quiet: bool, full: bool = False) -> JSON:
    """Bring the index up to date with a progress bar on a terminal, silently when piped."""
    from .progress import shown_progress

    with shown_progress(quiet=quiet) as progress:
        return await backend.query("index", {"full": full}, progress)


@attrs.frozen
class _Local:
    service: Service

    async def query(self, method: str, params: dict[str, JSON], progress: Progress | None = None) -> JSON:
        from ....protocol.signal import Signal
        from ....protocol.wire.identity import EVERYTHING
        from ...queries import run_method

        return await run_method(
            self.service, method, params, reach=EVERYTHING, lane="cli", signal=Signal(), progress=progress
        )


@asynccontextmanager
async def open_backend(data_dir: Path, sources: tuple[Source, ...]) -> AsyncIterator[Backend]:
    """Connect to the running service of ``data_dir``, else open one here for the length of a command.

    ``sources`` of the command line are read from now on, and remembered.
    """
    async with AsyncExitStack() as stack:
        yield await _opened(stack, data_dir, sources)


async def _opened(stack: AsyncExitStack, data_dir: Path, sources: tuple[Source, ...]) -> Backend:
    """Another command may have the directory for a moment, or a service be starting: wait a little for it.

    Raises: CommandError, DataDirectoryLocked: it is still in use after ``IN_USE_S``.
    """
    import trio

    from ....storage.lock import DataDirectoryLocked
    from ....storage.store import find_running
    from ...service import open_service
    from ..assembly import host_config, remember_sources

    until = trio.current_time() + IN_USE_S
    while True:
        owner = find_running(data_dir)
        if owner is not None and (owner.url is not None or trio.current_time() >= until):
            backend = await stack.enter_async_context(_connected(owner, data_dir))
            for source in sources:
                await backend.query("add_source", {"format": source.format, "path": str(source.root)})
            if sources:
                remember_sources(data_dir, sources)
            return backend
        if owner is None:
            config = host_config(data_dir, sources, watch=False)
            try:
                return _Local(await stack.enter_async_context(open_service(config)))
            except DataDirectoryLocked:
                if trio.current_time() >= until:
                    raise
        await trio.sleep(IN_USE_AGAIN_S)


@asynccontextmanager
async def _connected(owner: Holder, data_dir: Path) -> AsyncIterator[Backend]:
    from ...clients import open_client
    from ..assembly import operator_token

    if owner.url is None:
        raise CommandError(
            f"{data_dir} is in use by process {owner.pid}, which offers no service; wait for it to end or "
            "choose another --data-dir",
            code=Code.INDEX_FAILED.value,
            exit_code=EXIT_STORE,
        )
    token = operator_token(data_dir)
    if token is None:
        raise QueryError(
            Code.INDEX_FAILED, f"a service runs on {data_dir}, but its token file is not readable"
        )
    async with open_client(owner.url, token=token) as client:
        yield _Remote(client.query)


@attrs.frozen
class _Remote:
    ask: Callable[..., Awaitable[JSON]]

    async def query(self, method: str, params: dict[str, JSON], progress: Progress | None = None) -> JSON:
        return await self.ask(method, params, on_progress=progress)
