"""Commands that find and read: sessions, search, events, trace, event-trace, read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....protocol.json_value import JSON
from . import show
from .backend import Backend, run
from .errors import CommandError
from .options import common, match_option, settings, source_option, workspace_options

if TYPE_CHECKING:
    from rich.console import Console

Params = dict[str, JSON]


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


def _print(ctx: click.Context, answer: JSON, render: Callable[[Console, show.Row], None]) -> None:
    if settings(ctx).as_json:
        show.print_json(answer)
    else:
        render(show.console(), show.row(answer))


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

    async def ask(backend: Backend) -> JSON:
        where = await _workspaces(backend, everywhere, workspace)
        _say_where(ctx, where, everywhere or workspace is not None)
        return await backend.query("sessions", {"workspaces": where, "limit": limit})

    _print(ctx, run(ctx, sources, ask), show.show_session_list)


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
    created = _created(since, until)

    async def ask(backend: Backend) -> JSON:
        where = await _workspaces(backend, everywhere, workspace)
        _say_where(ctx, where, everywhere or workspace is not None)
        params: Params = {"query": " ".join(query), "match": match, "workspaces": where, "limit": limit}
        return await backend.query("find_sessions", params | created | _event_types(types))

    _print(ctx, run(ctx, sources, ask), show.show_hits)


def _created(since: str | None, until: str | None) -> Params:
    """The filter on creation times. Raises: CommandError for a time of another form."""
    from ....protocol.timestamps import InvalidTimestamp, timestamp_bounds

    if since is None and until is None:
        return {}
    try:
        lower, upper = timestamp_bounds(since, until)
    except InvalidTimestamp as exc:
        raise CommandError(str(exc)) from exc
    bounds = {key: bound for key, bound in (("from", lower), ("to", upper)) if bound is not None}
    return {"session_filters": [{"kind": "created-at", **bounds}]}


def _event_types(types: tuple[str, ...]) -> Params:
    return {"event_filters": [{"kind": "type", "values": [*types]}]} if types else {}


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

    async def list_all(backend: Backend) -> JSON:
        listed = show.rows(await backend.query("events", {"session_id": session_id}))
        return [item for item in listed if not types or item.get("type") in types]

    async def find(backend: Backend) -> JSON:
        params: Params = {"session_id": session_id, "query": " ".join(query), "match": match, "limit": limit}
        return await backend.query("find_events", params | _event_types(types))

    if query:
        _print(ctx, run(ctx, sources, find), show.show_event_hits)
        return
    listed = run(ctx, sources, list_all)
    if settings(ctx).as_json:
        show.print_json(listed)
    else:
        show.show_event_list(show.console(), show.rows(listed))


@click.command()
@common
@source_option
@click.argument("session_id")
@click.pass_context
def trace(ctx: click.Context, sources: tuple[str, ...], session_id: str) -> None:
    """Show where a session came from and what came of it: ancestors, forks, sub-agents."""
    answer = run(ctx, sources, lambda backend: backend.query("lineage", {"session_id": session_id}))
    _print(ctx, answer, show.show_lineage)


@click.command("event-trace")
@common
@source_option
@click.argument("session_id")
@click.argument("seq", type=int)
@click.pass_context
def event_trace(ctx: click.Context, sources: tuple[str, ...], session_id: str, seq: int) -> None:
    """Show what replaced an event, what it replaced, and what it was made from."""
    params: Params = {"session_id": session_id, "seq": seq}
    answer = run(ctx, sources, lambda backend: backend.query("event_trace", params))
    _print(ctx, answer, show.show_event_trace)


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
    params: Params = {"session_id": session_id, "seq": seq, "before": before, "after": after}
    _print(ctx, run(ctx, sources, lambda backend: backend.query("event", params)), show.show_window)


COMMANDS = {
    "sessions": sessions,
    "search": search,
    "events": events,
    "trace": trace,
    "event-trace": event_trace,
    "read": read,
}
