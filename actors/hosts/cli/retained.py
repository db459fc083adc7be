"""`session-query retained`: the logs that were kept byte for byte, and getting them back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....protocol.json_value import JSON
from . import show
from .errors import EXIT_REFUSED, CommandError
from .options import common, settings

if TYPE_CHECKING:
    from ....storage.journal import Original, Originals


@click.group()
@common
def retained() -> None:
    """Logs that `serve --retain` kept: list them, or get them back byte for byte."""


@retained.command("list")
@common
@click.pass_context
def list_retained(ctx: click.Context) -> None:
    """Show which logs are kept and how long they are."""
    from ....storage.originals_export import open_originals

    connection, originals = open_originals(_data_dir(ctx))
    with closing(connection):
        found = originals.all()
    if settings(ctx).as_json:
        listed: list[JSON] = [_row(original) for original in found]
        show.print_json({"retained": listed})
        return
    for original in found:
        click.echo(f"{original.size:>14,}  {original.source}  {show.one_line(_shown(original.name))}")
    click.echo(f"{len(found)} logs, {sum(original.size for original in found):,} bytes")


@retained.command()
@common
@click.option("--all", "everything", is_flag=True, help="Every log that is kept.")
@click.argument("arguments", nargs=-1, required=True, metavar="[SESSION] DIR")
@click.pass_context
def export(ctx: click.Context, everything: bool, arguments: tuple[str, ...]) -> None:
    """Write kept logs under DIR, byte for byte, as FORMAT/PATH-UNDER-ITS-ROOT.

    Nothing that is there is overwritten. Exit status 3: something could not be written whole.
    """
    from ....storage.originals_export import export as write_back
    from ....storage.originals_export import open_originals

    if len(arguments) != (1 if everything else 2):
        raise CommandError("Give a session and a folder, or --all and a folder.")
    folder = Path(arguments[-1]).expanduser().absolute()
    connection, originals = open_originals(_data_dir(ctx))
    with closing(connection):
        wanted = originals.all() if everything else _of_session(originals, arguments[0])
        if not wanted and not everything:
            raise CommandError(
                "No log of this session was kept.", code="NOT_RETAINED", exit_code=EXIT_REFUSED
            )
        done = list(write_back(originals, wanted, folder))
    if settings(ctx).as_json:
        written: list[JSON] = [
            {
                **_row(one.original),
                "path": _shown(str(one.path)),
                "written_bytes": one.bytes,
                "problem": one.problem,
            }
            for one in done
        ]
        show.print_json({"exported": written})
    else:
        for one in done:
            said = one.problem or f"{one.bytes:,} bytes"
            click.echo(f"{show.one_line(_shown(str(one.path)), 2000)}: {said}")
    if any(one.problem for one in done):
        raise SystemExit(EXIT_REFUSED)


def _of_session(originals: Originals, named: str) -> list[Original]:
    """The logs of a session by its id, or by the longer names of SPEC 16.6.1."""
    found = [original for source in originals.sources_of(named) for original in originals.of(source, named)]
    prefix, mark, session_id = named.partition(":")
    if found or not mark:
        return found
    source, _, place = prefix.partition("/")
    return [original for original in originals.of(source, session_id) if not place or original.place == place]


def _row(original: Original) -> dict[str, JSON]:
    return {"source": original.source, "name": _shown(original.name), "bytes": original.size}


def _shown(name: str) -> str:
    from ....storage.readers.discovery import printable

    return printable(name)


def _data_dir(ctx: click.Context) -> Path:
    return settings(ctx).data_dir.expanduser().absolute()


COMMANDS: dict[str, click.Command] = {"retained": retained}
