"""The command that runs the service: serve."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import EXIT_STORE, CommandError
from .options import common, parse_sources, settings, source_option

if TYPE_CHECKING:
    from ..log_format import LogFormat


@click.command()
@common
@source_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 picks a free port."
)
@click.option("--tls-cert", type=click.Path(path_type=Path, exists=True), help="Certificate chain (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path, exists=True), help="Private key (PEM).")
@click.option(
    "--allow-plain-remote", is_flag=True, help="Listen beyond loopback without TLS. You were warned."
)
@click.option("--origin", "origins", multiple=True, help="A browser origin that may connect. Repeatable.")
@click.option(
    "--canonical-workspaces",
    is_flag=True,
    help="Take links, trailing slashes and git worktrees of one folder for one workspace.",
)
@click.option("--retain", is_flag=True, help="Keep copies of all logs, so that history outlives its source.")
@click.option("--grace", type=click.FloatRange(0), default=5.0, show_default=True, help="Seconds to drain.")
@click.option(
    "--idle-exit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End when nobody has been connected for so long [default: never].",
)
@click.option("--search-off", is_flag=True, help="Run without search; traces and reads work.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the log on standard error is written.",
)
@click.option("--verbose", is_flag=True, help="Log to standard error at debug level (may show log content).")
@click.pass_context
def serve(
    ctx: click.Context,
    sources: tuple[str, ...],
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    allow_plain_remote: bool,
    origins: tuple[str, ...],
    retain: bool,
    canonical_workspaces: bool,
    grace: float,
    idle_exit: float | None,
    search_off: bool,
    log_format: LogFormat,
    verbose: bool,
) -> None:
    """Serve one data directory over WebSocket until told to stop.

    Prints one line of JSON when ready: {"type":"ready","url":…,"token_file":…,"pid":…}. SIGTERM or Ctrl-C
    drains (goaway, grace, then abort); a second one stops at once.
    """
    import importlib.metadata

    import attrs
    import trio

    from ...edge.server_config import ServerConfig
    from ..assembly import host_config
    from ..log_format import configure_logging
    from ..running import run_server

    chosen = parse_sources(sources)
    configure_logging(log_format, verbose=verbose)
    data_dir = settings(ctx).data_dir.expanduser().absolute()
    config = host_config(data_dir, chosen, retain=retain, watch=True, canonical=canonical_workspaces)
    if search_off:
        config = attrs.evolve(config, open_at="never")

    def edge(token_file: Path) -> ServerConfig:
        return ServerConfig(
            host=host,
            port=port,
            token_file=token_file,
            tls_cert=tls_cert,
            tls_key=tls_key,
            allow_plain_remote=allow_plain_remote,
            allowed_origins=frozenset(origins),
            server_version=importlib.metadata.version("session-query"),
        )

    def ready(url: str, token_file: Path, pid: int) -> None:
        line = {"type": "ready", "url": url, "token_file": str(token_file), "pid": pid}
        print(json.dumps(line), flush=True)

    try:
        trio.run(run_server, config, edge, ready, grace, idle_exit)
    except BaseExceptionGroup as group:
        refused, others = group.split(_is_refused_port)
        if refused is None or others is not None:
            raise
        text = f"cannot listen on {host} port {port}: it is in use, or not ours to use"
        raise CommandError(text, code="PORT_REFUSED", exit_code=EXIT_STORE) from group


def _is_refused_port(error: BaseException) -> bool:
    """Whether an address could not be bound; errors of files name one."""
    taken = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)
    return isinstance(error, OSError) and error.filename is None and error.errno in taken


COMMANDS: dict[str, click.Command] = {"serve": serve}
