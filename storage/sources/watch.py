"""Watching roots for changes, so that a search with nothing changed costs no ``stat``.

On Linux the kernel's own queue is read (``inotify.py``): by a task that waits for it, and by every search
just before it looks, so that what was written before the search began is known. Elsewhere ``watchfiles``
tells what changed, 50 to 400 ms late. While neither can (too many folders for the system's limit, a root
that is not there yet) ``Freshness.watched`` is False and searches look at most once a second. The watch is
a hint, never the truth: everything is marked again every few minutes, because network file systems tell
nothing of what other machines write.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import attrs
import trio
from watchfiles import awatch

from .freshness import Freshness
from .inotify import Heard, Inotify, open_inotify
from .spec import SourceSpec

T = TypeVar("T")
logger = logging.getLogger(__name__)

STEP_MS: Final = 50
DEBOUNCE_MS: Final = 400
"""Elsewhere a change is told after 50 ms without another, at the latest after 400 ms."""
PAUSE_S: Final = 0.05
"""Between two looks into the queue while logs are written; searches look for themselves."""
LOOK_AT_ROOTS_MS: Final = 1000
"""How often roots are looked for: those that are not there yet, those that were replaced or unmounted."""
MARK_ALL_EVERY_S: Final = 300.0
RETRY_S: Final = 30.0


@attrs.frozen
class _Present:
    """A root that is there, or the name whose coming may bring one that is not (``there`` False).

    ``inode`` tells a root from another folder put in its place.
    """

    root: Path
    folder: bool
    inode: tuple[int, int]
    there: bool = True


async def watch_sources(freshness: Freshness, specs: Sequence[SourceSpec]) -> None:
    """Mark what changes under the roots of ``specs``; ends only by cancellation.

    Cancellation: within one step of the watching threads (50 ms); ``watched`` is False afterwards.
    """
    roots = list(dict.fromkeys(spec.root for spec in specs))
    try:
        while True:
            present = await trio.to_thread.run_sync(_look_for, roots)
            there = any(one.there for one in present)
            try:
                queue = open_inotify()
                if queue is not None:
                    await _listen_until_roots_change(freshness, roots, present, queue)
                else:
                    await _watch_until_roots_change(freshness, roots, present)
                pause_s = LOOK_AT_ROOTS_MS / 1000 if queue is None and not there else 0.0
            except* (OSError, RuntimeError) as group:
                logger.warning("watching the sources failed, looking once a second: %s", _first(group))
                pause_s = RETRY_S
            freshness.watched = False
            freshness.mark_everything()
            await trio.sleep(pause_s)
    finally:
        freshness.watched = False


async def _listen_until_roots_change(
    freshness: Freshness, roots: Sequence[Path], present: frozenset[_Present], queue: Inotify
) -> None:
    """Read the kernel's queue until roots appear, vanish or are replaced.

    Raises: OSError: not everything can be watched.
    """
    ear = _Ear(freshness, queue, frozenset(str(one.root) for one in present if not one.there))
    try:
        folders = [one.root for one in present if one.folder and one.there]
        names = [one.root for one in present if not one.folder or not one.there]
        await _in_thread(lambda stopped: queue.watch(folders, names, stopped))
        freshness.listen = ear.hear
        freshness.watched = True
        freshness.mark_everything()  # what changed before the watch stood
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ear.run)
            marked_s = trio.current_time()
            while not ear.lost and await trio.to_thread.run_sync(_look_for, roots) == present:
                with trio.move_on_after(LOOK_AT_ROOTS_MS / 1000):
                    await ear.stirred()
                if trio.current_time() - marked_s > MARK_ALL_EVERY_S:
                    marked_s = trio.current_time()
                    freshness.mark_everything()
            nursery.cancel_scope.cancel()
    finally:
        freshness.listen = None
        freshness.watched = False
        queue.close()


@attrs.define(eq=False)
class _Ear:
    """Turns the queue's news into marks. ``names``: what may bring a root. Used on the loop alone.

    ``lost``: a root is not what it was, so that the watch has to be set anew.
    """

    freshness: Freshness
    queue: Inotify
    names: frozenset[str]
    lost: bool = False
    _stirred: trio.Event = attrs.field(factory=trio.Event)

    def hear(self) -> None:
        """Mark everything that changed until now."""
        try:
            heard = self.queue.hear()
        except OSError as exc:
            logger.warning("a new folder cannot be watched: %s", exc)
            heard = Heard(lost=True)
        self.lost |= heard.lost
        if heard.lost:
            self.freshness.watched = False
        if heard.overflow or heard.behind or heard.lost:
            self.freshness.mark_everything()
        elif heard.paths:
            self.freshness.mark_paths(heard.paths)
        if heard.lost or not self.names.isdisjoint(heard.paths):
            self._stirred.set()

    async def stirred(self) -> None:
        """Wait until something happened to a root itself, or may have."""
        await self._stirred.wait()
        self._stirred = trio.Event()

    async def run(self) -> None:
        """Hear whenever there is something to hear; ends only by cancellation."""
        while True:
            await trio.lowlevel.wait_readable(self.queue.descriptor)
            self.hear()
            await trio.sleep(PAUSE_S)


async def _in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run ``work`` in a thread; it is told by its argument when it should end early."""
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set_when_cancelled, stop)
        result = await trio.to_thread.run_sync(work, stop.is_set)
        nursery.cancel_scope.cancel()
    return result


async def _watch_until_roots_change(
    freshness: Freshness, roots: Sequence[Path], present: frozenset[_Present]
) -> None:
    """Watch what is there; returns as soon as roots appeared, vanished or were replaced."""
    folders = [one.root for one in present if one.folder and one.there]
    files = [one.root for one in present if not one.folder and one.there]
    if not folders and not files:
        return
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
            found.append(_Present(_first_missing(root), folder=False, inode=(0, 0), there=False))
            continue
        found.append(_Present(root, stat.S_ISDIR(seen.st_mode), (seen.st_dev, seen.st_ino)))
    return frozenset(found)


def _first_missing(root: Path) -> Path:
    """Of a root that is not there, the topmost part that is missing: it comes into a folder that is there."""
    missing = root
    while not os.path.isdir(missing.parent) and missing.parent != missing:  # never raises, as Path's does
        missing = missing.parent
    return missing
