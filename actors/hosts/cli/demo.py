"""`session-query demo`: the whole way once, for a person: serve, connect, search, trace, read."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....protocol.json_value import JSON
from . import show
from .errors import CommandError
from .options import common, parse_sources, source_option

if TYPE_CHECKING:
    from ...clients import Client

READY_S = 60.0
SAMPLES = ("claude-code", "codex", "dsh")


@click.command()
@common
@source_option
@click.argument("query", nargs=-1)
def demo(sources: tuple[str, ...], query: tuple[str, ...]) -> None:
    """Serve sample sessions (or your own, with --source), search them over WebSocket, show what was found.

    Everything happens in a temporary folder on this machine; nothing is kept.
    """
    import trio

    chosen = parse_sources(sources)
    folder = Path(str(files("session_query.storage"))) / "samples"
    arguments = [f"--source={source.format}={source.root}" for source in chosen] or [
        f"--source={name}={folder / name}" for name in SAMPLES
    ]
    words = " ".join(query)
    queries = [words] if words else ["50 items in the cart", "时区", "compute_total"]
    with (
        tempfile.TemporaryDirectory(prefix="session-query-demo-") as data_dir,
        _served(Path(data_dir), arguments) as ready,
    ):
        token = Path(str(ready["token_file"])).read_text("ascii").strip()
        trio.run(_walk, str(ready["url"]), token, queries)


@contextmanager
def _served(data_dir: Path, arguments: list[str]) -> Iterator[show.Row]:
    """A real `serve` process of our own; ended when the block ends."""
    command = [sys.executable, "-m", "session_query.actors.hosts.cli", "--data-dir", str(data_dir), "serve"]
    log = data_dir / "demo.log"  # only of interest when it does not start
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.stderr.write(show.plain(log.read_text("utf-8", "replace")))
            raise CommandError(
                "the service did not start; its error stands above", code="NO_SERVICE", exit_code=4
            )
        yield show.row(json.loads(line))
    finally:
        process.terminate()
        try:
            process.wait(READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _walk(url: str, token: str, queries: list[str]) -> None:
    from ...clients import open_client

    console = show.console()
    async with open_client(url, token=token) as client:
        await client.query("index", {"full": False})
        console.print(f"[bold]connected to {url}[/bold]\n", highlight=False)
        first: show.Row | None = None
        for query in queries:
            found = show.row(
                await client.query("find_sessions", {"query": query, "workspaces": None, "limit": 3})
            )
            console.print(f"[bold cyan]session_search[/bold cyan]  {query}", highlight=False)
            show.show_hits(console, found)
            console.print()
            hits = show.rows(found.get("hits"))
            first = first or (hits[0] if hits else None)
        if first is None:
            console.print("Nothing matched; try `session-query demo WORDS` with words from your sessions.")
            return
        await _look_into(client, first)


async def _look_into(client: Client, hit: show.Row) -> None:
    console = show.console()
    session_id = hit.get("session_id")
    console.print(f"[bold cyan]session_trace[/bold cyan]  {show.one_line(session_id)}", highlight=False)
    lineage: JSON = await client.query("lineage", {"session_id": session_id})
    show.show_lineage(console, show.row(lineage))
    seq = show.row(hit.get("best_match")).get("seq")
    console.print(f"\n[bold cyan]session_event_read[/bold cyan]  #{seq}", highlight=False)
    window = await client.query("event", {"session_id": session_id, "seq": seq, "before": 0, "after": 0})
    show.show_window(console, show.row(window))


COMMANDS: dict[str, click.Command] = {"demo": demo}
