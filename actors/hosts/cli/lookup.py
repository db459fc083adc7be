"""Commands that find and read: sessions, search, events, trace, event-trace, read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import click

from ....protocol.json_value import JSON
from . import show
from .backend import Backend, run
from .errors import CommandError
from .options import common, match_option, settings, source_option, workspace_options

Params = dict[str, JSON]


def _print_json(value: JSON) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace").decode("utf-8"))


def _named(workspace: str) -> str:
    """A workspace as a person names it: a folder here by any path, else the exact text (it may be gone)."""
    path = Path(workspace).expanduser()
    return str(path.absolute()) if path.exists() else workspace


async def _workspaces(backend: Backend, everywhere: bool, workspace: str | None) -> list[JSON] | None:
    """The workspaces a command looks in: all (None), the one named, or the nearest ancestor's."""
    if everywhere:
        return None
    if workspace is not None:
        return [_named(workspace)]
    known = {show.row(item).get("workspace") for item in show.rows(await backend.query("workspaces", {}))}
    here = Path.cwd()
    for folder in (here, *here.parents):
        if str(folder) in known:
            return [str(folder)]
    raise CommandError(
        f"no sessions are known for {here} or any folder above it; use --all or --workspace DIR "
        "(`session-query sources` shows what was found)",
        code="NO_WORKSPACE",
        exit_code=3,
    )


def _say_where(ctx: click.Context, where: list[JSON] | None, chosen: bool) -> None:
    if not settings(ctx).as_json and not chosen:
        click.echo(f"workspace: {show.one_line(where[0]) if where else 'all'}", err=True)


@click.command()
@common
@source_option
@workspace_options
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Newest sessions shown.")
@click.pass_context
def sessions(
    ctx: click.Context, sources: tuple[str, ...], workspace: str | None, everywhere: bool, limit: int
) -> None:
    """List sessions, newest first."""

    async def work(backend: Backend) -> None:
        where = await _workspaces(backend, everywhere, workspace)
        _say_where(ctx, where, everywhere or workspace is not None)
        answer = show.row(await backend.query("sessions", {"workspaces": where, "limit": limit}))
        if settings(ctx).as_json:
            _print_json(answer)
            return
        console = show.console()
        show.show_sessions(console, show.rows(answer.get("sessions")))
        total = answer.get("total")
        if isinstance(total, int) and total > limit:
            console.print(f"[dim]{limit} of {total} sessions; --limit shows more[/dim]")

    run(ctx, sources, work)


@click.command()
@common
@source_option
@workspace_options
@match_option
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Sessions shown.")
@click.option("--type", "types", multiple=True, help="Only events of this type, e.g. user/message.")
@click.option("--since", help="Only sessions created at or after this time (2031-03-05T06:07Z).")
@click.option("--until", help="Only sessions created at or before this time.")
@click.pass_context
def search(
    ctx: click.Context,
    sources: tuple[str, ...],
    workspace: str | None,
    everywhere: bool,
    match: str,
    query: tuple[str, ...],
    limit: int,
    types: tuple[str, ...],
    since: str | None,
    until: str | None,
) -> None:
    """Find the sessions where something was said or done.

    \b
    session-query search "checkout times out"
    session-query search --all 时区
    session-query search --match exact "ERR_POOL_EXHAUSTED"
    """
    from ....protocol.timestamps import timestamp_bounds

    async def work(backend: Backend) -> None:
        where = await _workspaces(backend, everywhere, workspace)
        _say_where(ctx, where, everywhere or workspace is not None)
        params: Params = {"query": " ".join(query), "match": match, "workspaces": where, "limit": limit}
        if types:
            params["event_filters"] = [{"kind": "type", "values": cast("list[JSON]", list(types))}]
        if since is not None or until is not None:
            lower, upper = timestamp_bounds(since, until)
            params["session_filters"] = [{"kind": "created-at", "from": lower, "to": upper}]
        answer = show.row(await backend.query("find_sessions", params))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_hits(show.console(), answer)

    run(ctx, sources, work)


@click.command()
@common
@source_option
@match_option
@click.argument("session_id")
@click.argument("query", nargs=-1)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Events shown.")
@click.option("--type", "types", multiple=True, help="Only events of this type.")
@click.pass_context
def events(
    ctx: click.Context,
    sources: tuple[str, ...],
    match: str,
    session_id: str,
    query: tuple[str, ...],
    limit: int,
    types: tuple[str, ...],
) -> None:
    """Find events in one session; without QUERY, list all its events."""

    async def work(backend: Backend) -> None:
        if not query:
            listed = await backend.query("events", {"session_id": session_id})
            chosen = [item for item in show.rows(listed) if not types or item.get("type") in types]
            if settings(ctx).as_json:
                _print_json(cast(JSON, chosen))
            else:
                show.show_event_list(show.console(), chosen)
            return
        params: Params = {"session_id": session_id, "query": " ".join(query), "match": match, "limit": limit}
        if types:
            params["event_filters"] = [{"kind": "type", "values": cast("list[JSON]", list(types))}]
        answer = show.row(await backend.query("find_events", params))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_event_hits(show.console(), answer)

    run(ctx, sources, work)


@click.command()
@common
@source_option
@click.argument("session_id")
@click.pass_context
def trace(ctx: click.Context, sources: tuple[str, ...], session_id: str) -> None:
    """Show where a session came from and what came of it: ancestors, forks, sub-agents."""

    async def work(backend: Backend) -> None:
        answer = show.row(await backend.query("lineage", {"session_id": session_id}))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_lineage(show.console(), answer)

    run(ctx, sources, work)


@click.command("event-trace")
@common
@source_option
@click.argument("session_id")
@click.argument("seq", type=int)
@click.pass_context
def event_trace(ctx: click.Context, sources: tuple[str, ...], session_id: str, seq: int) -> None:
    """Show what replaced an event, what it replaced, and what it was made from."""

    async def work(backend: Backend) -> None:
        answer = show.row(await backend.query("event_trace", {"session_id": session_id, "seq": seq}))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_event_trace(show.console(), answer)

    run(ctx, sources, work)


@click.command()
@common
@source_option
@click.argument("session_id")
@click.argument("seq", type=int)
@click.option("--before", type=int, default=0, show_default=True, help="Events to add before it.")
@click.option("--after", type=int, default=0, show_default=True, help="Events to add after it.")
@click.pass_context
def read(
    ctx: click.Context, sources: tuple[str, ...], session_id: str, seq: int, before: int, after: int
) -> None:
    """Read one event unabridged, with its neighbours."""

    async def work(backend: Backend) -> None:
        params: Params = {"session_id": session_id, "seq": seq, "before": before, "after": after}
        answer = show.row(await backend.query("event", params))
        if settings(ctx).as_json:
            _print_json(answer)
        else:
            show.show_window(show.console(), answer)

    run(ctx, sources, work)


COMMANDS = {
    "sessions": sessions,
    "search": search,
    "events": events,
    "trace": trace,
    "event-trace": event_trace,
    "read": read,
}
