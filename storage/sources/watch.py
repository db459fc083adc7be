"""Watching roots for changes, so that a search with nothing changed costs no ``stat``.

``watchfiles`` tells what changed; this task turns it into marks. While it cannot (too many folders for
the system's limit, a network file system that fails, a root that is not there yet) ``Freshness.watched``
is False and searches look at most once a second. The watch is a hint, never the truth: everything is
marked again every few minutes, because queues of the system overflow in silence.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs
import trio
from watchfiles import awatch

from .freshness import Freshness
from .spec import SourceSpec

logger = logging.getLogger(__name__)

STEP_MS: Final = 50
DEBOUNCE_MS: Final = 400
"""A change is told after 50 ms without another, at the latest after 400 ms."""
LOOK_AT_ROOTS_MS: Final = 1000
"""How often roots are looked for: those that are not there yet, those that were replaced or unmounted."""
MARK_ALL_EVERY_S: Final = 300.0
RETRY_S: Final = 30.0


@attrs.frozen
class _Present:
    """A root that is there. ``inode`` tells it from another folder put in its place."""

    root: Path
    folder: bool
    inode: tuple[int, int]


async def watch_sources(freshness: Freshness, specs: Sequence[SourceSpec]) -> None:
    """Mark what changes under the roots of ``specs``; ends only by cancellation.

    Cancellation: within one step of the watching threads (50 ms); ``watched`` is False afterwards.
    """
    roots = list(dict.fromkeys(spec.root for spec in specs))
    try:
        while True:
            present = await trio.to_thread.run_sync(_look_for, roots)
            try:
                await _watch_until_roots_change(freshness, roots, present)
                pause_s = LOOK_AT_ROOTS_MS / 1000 if not present else 0.0
            except* (OSError, RuntimeError) as group:
                logger.warning("watching the sources failed, looking once a second: %s", _first(group))
                pause_s = RETRY_S
            freshness.watched = False
            freshness.mark_everything()
            await trio.sleep(pause_s)
    finally:
        freshness.watched = False


async def _watch_until_roots_change(
    freshness: Freshness, roots: Sequence[Path], present: frozenset[_Present]
) -> None:
    """Watch what is there; returns as soon as roots appeared, vanished or were replaced."""
    if not present:
        return
    folders = [one.root for one in present if one.folder]
    files = [one.root for one in present if not one.folder]
    waiting = {kind for kind, some in (("folders", folders), ("files", files)) if some}

    def established(kind: str) -> None:
        waiting.discard(kind)
        if not waiting and not freshness.watched:
            freshness.watched = True
            freshness.mark_everything()  # what changed before the watch stood

    async with trio.open_nursery() as nursery:
        if folders:
            nursery.start_soon(_watch, freshness, folders, frozenset[str](), lambda: established("folders"))
        if files:
            parents = list(dict.fromkeys(file.parent for file in files))
            names = frozenset(map(str, files))
            nursery.start_soon(_watch, freshness, parents, names, lambda: established("files"))
        marked_s = trio.current_time()
        while await trio.to_thread.run_sync(_look_for, roots) == present:
            await trio.sleep(LOOK_AT_ROOTS_MS / 1000)
            if trio.current_time() - marked_s > MARK_ALL_EVERY_S:
                marked_s = trio.current_time()
                freshness.mark_everything()
        nursery.cancel_scope.cancel()


async def _watch(
    freshness: Freshness,
    paths: Sequence[Path],
    only: frozenset[str],
    established: Callable[[], None],
) -> None:
    """Watch folders with all that is in them, or (``only``) single files through their folders."""
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set_when_cancelled, stop)
        async for changes in awatch(
            *paths,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            rust_timeout=LOOK_AT_ROOTS_MS,
            yield_on_timeout=True,
            recursive=not only,
            stop_event=stop,
        ):
            established()
            changed = [path for _, path in changes if not only or _belongs(path, only)]
            if changed:
                freshness.mark_paths(changed)


async def _set_when_cancelled(stop: trio.Event) -> None:
    """The watching thread hears of a cancellation through its event only, and then within a step."""
    try:
        await trio.sleep_forever()
    finally:
        stop.set()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """One of the errors in a group, however deep."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _belongs(path: str, only: Iterable[str]) -> bool:
    """A file that is watched, or one beside it that is part of it (``log.db-wal``)."""
    return any(path.startswith(name) for name in only)


def _look_for(roots: Sequence[Path]) -> frozenset[_Present]:
    found = []
    for root in roots:
        try:
            seen = os.stat(root)
        except OSError:
            continue
        found.append(_Present(root, root.is_dir(), (seen.st_dev, seen.st_ino)))
    return frozenset(found)
