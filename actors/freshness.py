"""Freshness: the index follows the sources, so that a change is seen by the next search (SPEC 6.10, 16.3).

One background task reads what changed, step by step through the writer's lane, so that appends get their
turn between steps. A search asks for a look and waits for it a bounded time; then it answers from what
is there and its receipt says how old that is. A first index is never waited for long.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, cast

import attrs
import trio

from ..protocol.errors import Code, QueryError
from ..protocol.json_value import JSON
from ..protocol.signal import Signal
from ..storage import sqlite
from ..storage.doctor import examine
from ..storage.readers.registry import READERS
from ..storage.sources.freshness import Freshness as Marks
from ..storage.sources.ingest import Progress
from ..storage.sources.report import count_unread, is_built, report_sources
from ..storage.sources.spec import SourceSpec, merged, without
from ..storage.store import Store
from .config import Source
from .reconcile import Reconciler
from .storage import StorageActor

logger = logging.getLogger(__name__)

WAIT_S: Final = 2.0
"""How long a search waits for changed logs to be read before it answers from what is there."""
FIRST_WAIT_S: Final = 0.25
RETRY_S: Final = 5.0

Report = Callable[[int, int | None, str], None]


@attrs.define(eq=False)
class _Round:
    """One run over the sources: who waits for it, and who wants to hear how far it is."""

    full: bool = False
    done: trio.Event = attrs.field(factory=trio.Event)
    reports: list[Report] = attrs.field(factory=list)
    error: Exception | None = None


@attrs.define(eq=False)
class _Dropping:
    """A source that is to be read no more: who waits for that, and what came of it."""

    spec: SourceSpec
    done: trio.Event = attrs.field(factory=trio.Event)
    known: bool = False
    error: Exception | None = None


@attrs.define(eq=False)
class Freshness:
    """Owner task: ``run``. ``ensure`` and ``refresh`` may be called from any task of the loop.

    ``retain``: sources added later are kept copies of, too.
    """

    storage: StorageActor
    reconciler: Reconciler
    sources: tuple[Source, ...]
    watch: bool
    retain: bool = False
    _next: _Round = attrs.field(factory=_Round, init=False)
    _running: _Round | None = attrs.field(default=None, init=False)
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    _dropping: list[_Dropping] = attrs.field(factory=list, init=False)
    _first: bool = attrs.field(default=True, init=False)
    _progress: Progress | None = attrs.field(default=None, init=False)
    unread_logs: int = attrs.field(default=0, init=False)
    """Logs that could not be read at all, as of the last look: no workspace can be given for them."""
    _asked_ms: int = attrs.field(default=0, init=False)
    _behind_s: float = attrs.field(default=math.inf, init=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Use the configured sources and keep up with them; ends only by cancellation."""
        specs = merged(map(_spec, self.sources))
        marks, built = await self.storage.write(lambda store: _use(store, specs))
        self._first = not built
        async with trio.open_nursery() as nursery:
            if self.watch and specs:
                from ..storage.sources.watch import watch_sources

                nursery.start_soon(watch_sources, marks, specs)
            if specs:
                self._wanted.set()
            task_status.started()
            while True:
                await self._wanted.wait()
                self._wanted = trio.Event()
                while self._dropping:
                    await self._drop(self._dropping.pop())
                current, self._next = self._next, _Round()
                self._running = current
                try:
                    await self._read(current)
                except Exception as exc:  # a full disk: searches go on with what is there
                    logger.exception("the sources could not be read")
                    self.storage.suspect(exc)
                    current.error = exc
                finally:
                    self._running = None
                    current.done.set()

    async def ensure(self, signal: Signal) -> None:
        """Bring the index up to date before a search, waiting for logs no longer than ``WAIT_S``.

        Raises: QueryError PERSISTENCE_FAILED in strict mode; the signal's reason between providers.
        """
        await self.storage.take_in()
        if self.storage.is_behind():
            await self._catch_up(signal)
        await self.reconciler.run(signal)
        if not self.sources:
            return
        marks = self.storage.marks()
        marks.hear()
        if not marks.look_is_due():
            return
        asked = self._ask()
        with trio.move_on_after(FIRST_WAIT_S if self._first else WAIT_S):
            await asked.done.wait()

    async def _catch_up(self, signal: Signal) -> None:
        """Index what the journal has. While that fails (disk full), receipts say how old the index is."""
        self._behind_s = min(self._behind_s, time.monotonic())
        try:
            await self.storage.write(lambda store: store.catch_up(), signal)
        except sqlite.Error as exc:
            logger.warning(
                "the index could not catch up with the journal, the next search tries again: %s", exc
            )
        else:
            self._behind_s = math.inf

    async def refresh(self, *, full: bool, progress: Report | None, signal: Signal) -> None:
        """Look at every source and read what changed, to the end. ``full``: everything, from the start.

        Raises: QueryError INDEX_FAILED when the index cannot be written. Cancellation: the reading goes on.
        """
        self._asked_ms = time.time_ns() // 1_000_000
        await self.reconciler.run(signal)
        if not self.sources:
            return
        self.storage.marks().hear()
        if not full and not self._first and not self.storage.marks().look_is_due():
            return
        asked = self._ask(full=full)
        if progress is not None:
            asked.reports.append(progress)
        await asked.done.wait()
        if asked.error is not None:
            raise QueryError(Code.INDEX_FAILED, "the index could not be written") from asked.error

    async def add(self, format_name: str, path: str) -> None:
        """Read one more source from now on. Raises: QueryError INVALID_CONFIG: no such format."""
        if format_name not in READERS:
            raise QueryError(Code.INVALID_CONFIG, f"no reader for the format {format_name!r}")
        source = Source(format=format_name, root=Path(path), retain=self.retain)
        if source not in self.sources:
            self.sources = (*self.sources, source)
        specs = merged(map(_spec, self.sources))
        await self.storage.write(lambda store: _use(store, specs))
        self._ask()

    async def drop(self, format_name: str, path: str) -> bool:
        """Read a source no more, and take its sessions out of the index; False if it was not read.

        Its logs are not touched. What was forgotten stays forgotten, copies that were kept are kept.
        Cancellation: it happens all the same, between two rounds of reading.
        """
        spec = SourceSpec(format=format_name, root=Path(path))
        dropping = _Dropping(spec)
        self._dropping.append(dropping)
        self._wanted.set()
        await dropping.done.wait()
        if dropping.error is not None:
            raise QueryError(Code.INDEX_FAILED, "the index could not be written") from dropping.error
        return dropping.known

    async def _drop(self, dropping: _Dropping) -> None:
        spec = dropping.spec
        try:
            dropping.known = await self.storage.write(lambda store: store.sources.drop(spec))
            self.sources = tuple(one for one in self.sources if without([_spec(one)], [spec]))
        except Exception as exc:  # a full disk: it is still read
            logger.exception("a source could not be dropped")
            dropping.error = exc
        finally:
            dropping.done.set()

    async def status(self) -> JSON:
        """What was found where: ``{sources: [...]}`` with counts, and what was skipped and why."""
        since_ms = self._asked_ms
        found = await self.storage.read(lambda reader: report_sources(reader.connection, since_ms))
        return {"sources": [cast("JSON", attrs.asdict(source)) for source in found]}

    async def examine(self, samples: int, signal: Signal) -> JSON:
        """Check the index against the logs: ``{healthy, checks, losses, unread}``; nothing is changed.

        Raises: the signal's exact reason, between two samples.
        """
        found = await self.storage.read(
            lambda reader: examine(reader, READERS, samples, stopped=lambda: signal.aborted)
        )
        signal.raise_if_aborted()
        return {
            "healthy": found.healthy,
            "checks": [cast("JSON", attrs.asdict(check)) for check in found.checks],
            "losses": [cast("JSON", attrs.asdict(loss)) for loss in found.losses],
            "unread": [cast("JSON", attrs.asdict(item)) for item in found.unread],
        }

    def checked_ago_s(self) -> float | None:
        """None: current. Else seconds since sources and providers were last looked at, for receipts."""
        ages = [self.reconciler.stale_s()]
        if self.sources:
            age = self.storage.marks().checked_ago_s()
            ages.append(None if age is None or (self._first and math.isinf(age)) else age)
        if self._behind_s < math.inf and self.storage.is_behind():
            ages.append(time.monotonic() - self._behind_s)
        return max((age for age in ages if age is not None), default=None)

    def first_index(self) -> tuple[int, int] | None:
        """(done, total) bytes while the first index is built, else None."""
        if not self._first:
            return None
        return (self._progress.bytes_done, self._progress.bytes_total) if self._progress else (0, 0)

    def _ask(self, *, full: bool = False) -> _Round:
        """A round that begins after now; the running one may have passed what changed meanwhile."""
        self._next.full |= full
        self._wanted.set()
        if self._running is not None and self._first and not full:
            return self._running
        return self._next

    async def _read(self, current: _Round) -> None:
        stopped = False
        retains = any(source.retain for source in self.sources)
        write = self.storage.write if retains else self.storage.write_index
        steps = await write(
            lambda store: _begin(store, current.full, first=self._first, stopped=lambda: stopped)
        )
        try:
            while (progress := await write(lambda _: next(steps, None))) is not None:
                self._progress = progress
                for report in current.reports:
                    report(progress.bytes_done, progress.bytes_total, "bytes")
        finally:
            stopped = True
            with trio.CancelScope(shield=True):  # one bounded step: what was taken is marked again
                self.unread_logs = await write(lambda store: _end(store, steps))
        self._first = False
        self._progress = None


def _spec(source: Source) -> SourceSpec:
    return SourceSpec(format=source.format, root=source.root, retain=source.retain)


def _use(store: Store, specs: list[SourceSpec]) -> tuple[Marks, bool]:
    """Read these sources from now on; tells whether all of them were read to their end before."""
    store.sources.use(specs)
    return store.sources.freshness, is_built(store.connection)


def _begin(store: Store, full: bool, *, first: bool, stopped: Callable[[], bool]) -> Iterator[Progress]:
    if first:
        store.index.bulk(True)
    return store.sources.rebuild(stopped) if full else store.sources.refresh(stopped)


def _end(store: Store, steps: Iterator[Progress]) -> int:
    """Close a round; returns how many logs could not be read at all."""
    close = getattr(steps, "close", None)
    if close is not None:
        close()
    store.index.bulk(False)
    return count_unread(store.connection)
