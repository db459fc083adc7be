"""Commands for whoever operates a service: health, statistics."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ....protocol.json_value import JSON
from . import show
from .backend import Backend, run
from .errors import EXIT_REFUSED, CommandError
from .options import common, settings


@click.command()
@common
@click.pass_context
def health(ctx: click.Context) -> None:
    """Ask the running service of the data directory whether it answers.

    Exit status 0: it does; 3: no service runs there; 4: it does not let us in.
    """
    from ....storage.store import find_running

    data_dir = settings(ctx).data_dir.expanduser().absolute()
    if find_running(data_dir) is None:
        raise CommandError(f"no service runs on {data_dir}", code="NO_SERVICE", exit_code=EXIT_REFUSED)
    answer = run(ctx, (), lambda backend: backend.query("health", {}), fresh=False)
    _print(ctx, answer)


@click.command()
@common
@click.option("--prometheus", is_flag=True, help="Print Prometheus text.")
@click.pass_context
def statistics(ctx: click.Context, prometheus: bool) -> None:
    """Show queues, counters, index, sources and memory of the running service.

    Without one the data directory is opened for a moment: what is stored is told, counters stand at zero.
    """

    async def ask(backend: Backend) -> JSON:
        return await backend.query("metrics" if prometheus else "statistics", {})

    answer = run(ctx, (), ask, fresh=False)
    if prometheus:
        click.echo(answer, nl=False)
    else:
        _print(ctx, answer)


def _print(ctx: click.Context, answer: JSON) -> None:
    if settings(ctx).as_json:
        show.print_json(answer)
        return
    for name, value in _flat("", answer):
        click.echo(f"{name}  {show.one_line(value)}")


def _flat(prefix: str, value: JSON) -> Iterator[tuple[str, JSON]]:
    """``a.b.0.c`` and its value, for every leaf. The answers are a few levels deep."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = False
    for key, member in members:
        found = True
        yield from _flat(f"{prefix}.{key}" if prefix else str(key), member)
    if not found and not isinstance(value, (dict, list)):
        yield prefix, value


COMMANDS: dict[str, click.Command] = {"health": health, "statistics": statistics}
