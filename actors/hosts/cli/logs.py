"""Commands about the logs themselves: index, sources, doctor, forget."""

from __future__ import annotations

import click

from ....protocol.json_value import JSON
from . import show
from .backend import Backend, refresh, run
from .errors import EXIT_REFUSED, CommandError
from .options import common, parse_dropped, settings, source_option


@click.command()
@common
@source_option
@click.option("--full", is_flag=True, help="Read every log again, also those that did not change.")
@click.pass_context
def index(ctx: click.Context, sources: tuple[str, ...], full: bool) -> None:
    """Read the logs of all sources into the index; what did not change is not read again."""
    quiet = settings(ctx).as_json
    answer = run(ctx, sources, lambda backend: refresh(backend, quiet=quiet, full=full), fresh=False)
    if quiet:
        show.print_json(answer)
    else:
        show.show_index(show.console(), show.row(answer))


@click.command("sources")
@common
@source_option
@click.option(
    "--drop",
    "dropped",
    multiple=True,
    metavar="FORMAT=PATH",
    help="Read this source no more, and take its sessions out of the index. Its logs are not touched; "
    "naming it with --source reads it again.",
)
@click.pass_context
def list_sources(ctx: click.Context, sources: tuple[str, ...], dropped: tuple[str, ...]) -> None:
    """Show which logs were found where, how much they hold, and what was skipped and why."""
    from ..assembly import leave_out_source

    leaving = parse_dropped(dropped)
    data_dir = settings(ctx).data_dir.expanduser().absolute()

    async def ask(backend: Backend) -> JSON:
        for source in leaving:
            told = await backend.query("drop_source", {"format": source.format, "path": str(source.root)})
            if show.row(told).get("dropped") is not True:
                name = f"{source.format}={source.root}"
                raise CommandError(
                    f"{name} is no source here; `session-query sources` lists them", code="UNKNOWN_SOURCE"
                )
            leave_out_source(data_dir, source)
        return await backend.query("sources", {})

    answer = run(ctx, sources, ask, fresh=not leaving)
    if settings(ctx).as_json:
        show.print_json(answer)
    else:
        show.show_sources(show.console(), show.row(answer))


@click.command()
@common
@source_option
@click.option(
    "--samples", type=click.IntRange(0), default=20, show_default=True, help="Logs read again to compare."
)
@click.option("--rebuild", is_flag=True, help="Build the index anew from the logs (serving goes on).")
@click.pass_context
def doctor(ctx: click.Context, sources: tuple[str, ...], samples: int, rebuild: bool) -> None:
    """Check index and journal against the logs, and list every damaged record with its place and cause.

    Exit status 0: everything agrees (damaged records may still be listed); 3: something does not.
    """
    quiet = settings(ctx).as_json
    anew = rebuild and _discard_unused_index(ctx)

    async def ask(backend: Backend) -> JSON:
        if rebuild:
            await refresh(backend, quiet=quiet, full=not anew)
        return await backend.query("doctor", {"samples": samples})

    answer = show.row(run(ctx, sources, ask))
    if quiet:
        show.print_json(answer)
    else:
        show.show_doctor(show.console(), answer)
    if answer.get("healthy") is not True:
        raise SystemExit(EXIT_REFUSED)


def _discard_unused_index(ctx: click.Context) -> bool:
    """Delete the index if no service has it open, so that it is built anew whatever is wrong with it."""
    from ....storage.lock import DataDirectoryLocked
    from ....storage.store import StoreSettings, discard_index, find_running

    data_dir = settings(ctx).data_dir.expanduser().absolute()
    if find_running(data_dir) is not None:
        return False
    try:
        discard_index(StoreSettings(data_dir=data_dir))
    except DataDirectoryLocked:
        return False  # somebody came in between: what has it open reads everything again
    return True


@click.command()
@common
@click.argument("session_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def forget(ctx: click.Context, session_id: str, yes: bool) -> None:
    """Remove a session for good: index, text copies, journal, retained copies, spilled results.

    The tool's own log is never touched; the session stays forgotten when that is moved or grows.
    """
    run(ctx, (), lambda backend: backend.query("lineage", {"session_id": session_id}), fresh=False)
    if not yes:
        click.confirm(f"Forget {show.one_line(session_id)} for good?", abort=True, err=True)
    answer = run(ctx, (), lambda backend: backend.query("forget", {"session_id": session_id}), fresh=False)
    if settings(ctx).as_json:
        show.print_json(answer)
    else:
        click.echo(f"forgotten: {show.one_line(session_id)}")


COMMANDS = {"index": index, "sources": list_sources, "doctor": doctor, "forget": forget}
