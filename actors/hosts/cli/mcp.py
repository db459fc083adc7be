"""`session-query mcp`: the server for agents that speak MCP, and putting it into their configuration."""

from __future__ import annotations

import difflib
import importlib.metadata
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import click

from .errors import EXIT_REFUSED, EXIT_STORE, CommandError
from .options import DATA_DIR_VARIABLE, common, settings

P = ParamSpec("P")
R = TypeVar("R")

HOSTS: Final = ("claude-code", "codex", "gemini", "opencode", "zed", "vscode")
SDK: Final = "mcp"
SDK_MAJOR: Final = 2
MISSING_SDK: Final = (
    "the MCP extra is not installed; from the checkout of session-query, install it with: "
    f"{sys.executable} -m pip install '.[mcp]'"
)
"""Told with this very interpreter and a path: a bare name might fetch a stranger's package elsewhere."""


@click.group(invoke_without_command=True)
@common
@click.option(
    "--workspace", metavar="DIR", help="Whose sessions to show [default: the folder it is started in]."
)
@click.option(
    "--agent", metavar="SESSION", help="The session of the agent that calls; it sees its own workspace."
)
@click.option(
    "--search-timeout-ms",
    type=click.IntRange(1, 2_147_483_647),
    help="Deadline of the two searches [default: the service's, 30000].",
)
@click.option(
    "--idle-exit",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="When a service that is started here ends after the last connection.",
)
@click.option("--verbose", is_flag=True, help="Log to standard error at debug level (may show log content).")
@click.pass_context
def mcp(
    ctx: click.Context,
    workspace: str | None,
    agent: str | None,
    search_timeout_ms: int | None,
    idle_exit: float,
    verbose: bool,
) -> None:
    """Serve the five tools to one MCP client over standard input and output.

    All clients share the service of the data directory; the first one starts it, and it ends some minutes
    after the last one has left. `mcp install HOST` puts this command into a host's configuration.
    """
    if ctx.invoked_subcommand is not None:
        return
    problem = sdk_problem()
    if problem is not None:
        raise CommandError(problem, code="MISSING_EXTRA", exit_code=EXIT_STORE)
    import trio

    from ..log_format import configure_logging
    from ..mcp.callers import find_caller
    from ..mcp.stdio import McpOptions, run_stdio

    configure_logging("text", verbose=verbose)
    if not verbose:
        logging.getLogger().setLevel(logging.WARNING)  # many hosts show what stands on standard error
    options = McpOptions(
        data_dir=settings(ctx).data_dir.expanduser().absolute(),
        callers=find_caller(agent, workspace),
        search_timeout_ms=search_timeout_ms,
        idle_exit_s=idle_exit,
    )
    # Nothing here needs an orderly end, and a thread that waits for input could not be told of one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    trio.run(run_stdio, options, importlib.metadata.version("session-query"))


def sdk_problem() -> str | None:
    """Why the MCP SDK cannot be used, for a person; None if it can."""
    try:
        version = importlib.metadata.version(SDK)
    except importlib.metadata.PackageNotFoundError:
        return MISSING_SDK
    if int(version.partition(".")[0]) < SDK_MAJOR:
        return f"the MCP extra is too old ({SDK} {version}); {MISSING_SDK.partition('; ')[2]}"
    return None


def _installing(command: Callable[P, R]) -> Callable[P, R]:
    """What `install` and `uninstall` share."""
    command = click.option(
        "--name", default="session-query", show_default=True, help="What the entry is called."
    )(command)
    command = click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")(command)
    command = click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The configuration file [default: where the host keeps it].",
    )(command)
    return click.argument("host", type=click.Choice(HOSTS))(common(command))


@mcp.command()
@_installing
@click.option("--workspace", metavar="DIR", help="Always show this folder's sessions.")
@click.option("--print", "print_only", is_flag=True, help="Print the entry and the file's name, no more.")
@click.pass_context
def install(
    ctx: click.Context,
    host: str,
    config: Path | None,
    dry_run: bool,
    name: str,
    workspace: str | None,
    print_only: bool,
) -> None:
    """Put the server into HOST's own user configuration.

    Only the entry is added or brought up to date; everything else in the file keeps its bytes. The file as it
    was stays beside it. Doing it again changes nothing.
    """
    from ..mcp.install.targets import TARGETS, Command

    target = TARGETS[host]
    arguments = ["mcp"]
    explicit = _explicit_data_dir(ctx)
    if explicit is not None:
        arguments += ["--data-dir", str(explicit)]
    if workspace is not None:
        arguments += ["--workspace", os.path.abspath(os.path.expanduser(workspace))]
    program = _program()
    command = Command(program[0], (*program[1:], *arguments))
    path = _path(host, config)
    if print_only:
        click.echo(f"{target.title} reads this from {path}:", err=True)
        click.echo(target.snippet(name, command))
        return
    problem = sdk_problem()
    if problem is not None:
        click.echo(f"note: {problem}", err=True)
    _edit(ctx, path, lambda text: target.with_entry(text, name, command), target.reload, dry_run=dry_run)


@mcp.command()
@_installing
@click.pass_context
def uninstall(ctx: click.Context, host: str, config: Path | None, dry_run: bool, name: str) -> None:
    """Take the server out of HOST's configuration again; everything else in the file keeps its bytes."""
    from ..mcp.install.targets import TARGETS

    target = TARGETS[host]
    path = _path(host, config)
    _edit(ctx, path, lambda text: target.without_entry(text, name), None, dry_run=dry_run)


def _edit(
    ctx: click.Context, path: Path, change: Callable[[str], str], next_step: str | None, *, dry_run: bool
) -> None:
    from ..mcp.install.config_file import read_config, write_config
    from ..mcp.install.edits import EditRefused

    backup: Path | None = None
    try:
        file = read_config(path)
        before = file.text
        after = change(before)
        changed = after != before
        if changed and not dry_run:
            backup = write_config(file, after, datetime.now())
    except EditRefused as exc:
        raise CommandError(
            f"{path} was not changed: {exc}. `session-query mcp install HOST --print` shows the entry for "
            "putting it in by hand",
            code="EDIT_REFUSED",
            exit_code=EXIT_REFUSED,
        ) from exc
    if settings(ctx).as_json:
        click.echo(
            json.dumps(
                {
                    "config": str(path),
                    "changed": changed,
                    "dry_run": dry_run,
                    "backup": None if backup is None else str(backup),
                },
                ensure_ascii=False,
            )
        )
    elif not changed:
        click.echo(f"{path}: nothing to change")
    elif dry_run:
        click.echo(_difference(path, before, after), nl=False)
    else:
        click.echo(f"changed: {path}" + (f" (as it was: {backup})" if backup is not None else ""))
        if next_step is not None:
            click.echo(next_step)


def _difference(path: Path, before: str, after: str) -> str:
    """A unified difference of two texts."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), f"{path} (after)", lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)


def _path(host: str, config: Path | None) -> Path:
    from ..mcp.install.targets import TARGETS

    if config is not None:
        return config.expanduser().absolute()
    return TARGETS[host].place(os.environ, Path.home(), sys.platform)


def _program() -> list[str]:
    """How a host starts this very installation, wherever it starts it from."""
    script = Path(sys.executable).with_name("session-query.exe" if os.name == "nt" else "session-query")
    if script.is_file():
        return [str(script)]
    # -P: a host starts it in a project's folder, which must not be where modules come from.
    return [sys.executable, "-P", "-m", "session_query.actors.hosts.cli"]


def _explicit_data_dir(ctx: click.Context) -> Path | None:
    """The data directory if it was named: a host does not start its servers in this environment."""
    named: Path | None = ctx.ensure_object(dict).get("data_dir")
    if named is None and os.environ.get(DATA_DIR_VARIABLE):
        named = settings(ctx).data_dir
    return None if named is None else named.expanduser().absolute()


COMMANDS: dict[str, click.Command] = {"mcp": mcp}
