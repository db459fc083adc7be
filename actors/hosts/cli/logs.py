"""Commands about the logs themselves: index, sources, doctor, forget."""

from __future__ import annotations

import json

import click

from ....protocol.json_value import JSON
from . import show
from .backend import Backend, refresh, run
from .options import common, settings, source_option


def _print_json(value: JSON) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode("utf-8"))


@click.command()
@common
@source_option
@click.option("--full", is_flag=True, help="Read every log again, also those that did not change.")
@click.pass_context
def index(ctx: click.Context, sources: tuple[str, ...], full: bool) -> None:
    """Read the logs of all sources into the index; what did not change is not read again."""

    async def work(backend: Backend) -> None:
        answer = show.row(await refresh(backend, quiet=settings(ctx).as_json, full=full))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_index(show.console(), answer)

    run(ctx, sources, work, fresh=False)


@click.command("sources")
@common
@source_option
@click.pass_context
def list_sources(ctx: click.Context, sources: tuple[str, ...]) -> None:
    """Show which logs were found where, how much they hold, and what was skipped and why."""

    async def work(backend: Backend) -> None:
        answer = show.row(await backend.query("sources", {}))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_sources(show.console(), answer)

    run(ctx, sources, work)


@click.command()
@common
@source_option
@click.option(
    "--samples", type=click.IntRange(0), default=20, show_default=True, help="Logs read again to compare."
)
@click.option("--rebuild", is_flag=True, help="Build the index anew from the logs (serving goes on).")
@click.pass_context
def doctor(ctx: click.Context, sources: tuple[str, ...], samples: int, rebuild: bool) -> None:
    """Check index and journal against the logs, and list every damaged record with its place and cause."""

    async def work(backend: Backend) -> None:
        if rebuild:
            await refresh(backend, quiet=settings(ctx).as_json, full=True)
        answer = show.row(await backend.query("doctor", {"samples": samples}))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_doctor(show.console(), answer)
        if answer.get("healthy") is not True:
            raise SystemExit(3)

    run(ctx, sources, work)


@click.command()
@common
@click.argument("session_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def forget(ctx: click.Context, session_id: str, yes: bool) -> None:
    """Remove a session for good: index, text copies, journal, retained copies, spilled results.

    The tool's own log is never touched; the session does not come back while its content is the same.
    """
    if not yes:
        click.confirm(f"Forget {show.one_line(session_id)} for good?", abort=True, err=True)

    async def work(backend: Backend) -> None:
        answer = await backend.query("forget", {"session_id": session_id})
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            click.echo(f"forgotten: {show.one_line(session_id)}")

    run(ctx, (), work, fresh=False)


COMMANDS = {"index": index, "sources": list_sources, "doctor": doctor, "forget": forget}
