"""A progress bar for long work: bytes, rate and time left. Silence when nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .backend import Progress


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Progress | None]:
    """Yield a callback that draws on standard error, or None when piped or asked to be quiet.

    The bar appears with the first report: work that needs none (nothing changed) shows nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    bar = Bar(
        TextColumn("reading logs"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("reading logs", total=None, visible=False)
    shown = False

    def report(done: int, total: int | None, unit: str) -> None:
        nonlocal shown
        if unit == "bytes" and total:
            shown = True
            bar.update(task, completed=done, total=total, visible=True)

    with bar:
        yield report
    if shown:
        Console(stderr=True).print("[dim]index is up to date[/dim]")
