"""The sources of one store: which roots, what changed in them, and reading it into the index.

Everything is synchronous and runs in the writer thread, in steps: ``refresh`` is a generator whose every
``next`` is one bounded piece of work (a few hundred ``stat``s, or one transaction), so that whoever
drives it can serve appends in between.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from ...protocol.event import Event
from ..index.door import IndexReader, IndexWriter
from ..journal import Journal, JournalReader
from ..readers.seam import Reader
from ..sqlite import Connection
from .catalog import Catalog
from .catalog_rows import Root, Unit
from .freshness import Freshness, Marks
from .ingest import Ingest, Progress
from .locate import locate, read_first
from .scanner import Changed, Pass, look_again, scan
from .spec import SourceSpec, without
from .standing import Standing

logger = logging.getLogger(__name__)

STORE_NAME: Final = "catalog-store"
HANDOVERS_MAX: Final = 3
"""Rounds of re-reading because logs of one folder contend for a session; what is left waits for a refresh."""


def _never() -> bool:
    return False


@attrs.define(eq=False)
class Sources:
    """Made by ``open_sources``. Owner: the writer thread; only ``freshness`` may be touched by others."""

    catalog: Catalog
    writer: IndexWriter
    readers: Mapping[str, Reader]
    standing: Standing
    ingest: Ingest
    freshness: Freshness = attrs.field(factory=Freshness)
    _active: set[int] = attrs.field(factory=set)

    def use(self, specs: Sequence[SourceSpec]) -> None:
        """Read exactly these sources from now on. Sessions of others stay in the index as they are.

        A format that no reader has is passed over with a warning: the list may be from a newer version.
        """
        known = [spec for spec in specs if spec.format in self.readers]
        for spec in specs:
            if spec.format not in self.readers:
                logger.warning("no reader for the format %s of a source", spec.format)
        with self.writer.transaction():
            self._active = {self.catalog.use_root(spec).root_id for spec in known}
        self.freshness.mark_everything()

    def specs(self) -> list[SourceSpec]:
        """The sources that are read."""
        return [self.catalog.roots[root_id].spec for root_id in sorted(self._active)]

    def drop(self, spec: SourceSpec) -> bool:
        """Stop reading a source and take its sessions out of the index; False if it is not known.

        Its logs are not touched, retained copies are kept, nothing is forgotten: added again, it is
        read again.
        """
        root = next((root for root in self.catalog.roots.values() if not without([root.spec], [spec])), None)
        if root is None:
            return False
        with self.writer.transaction():
            for unit in self.catalog.units_of(root.root_id):
                self.standing.remove_unit(unit)
            self.catalog.drop_root(root.root_id)
        self._active.discard(root.root_id)
        self.ingest.cool()
        return True

    def forget(self, sids: Collection[int]) -> None:
        """Pass over these sessions from now on, inside the index writer's transaction (SPEC 16.10).

        Called while the index still has them.
        What the catalog holds of their words goes: titles, notes, and checkpoints, whose state is the
        mapper's own.
        """
        for unit_id in self.catalog.forget(sids):
            unit = self.catalog.units.get(unit_id)
            if unit is not None:
                self.catalog.put_checkpoint(unit, None)
        self.ingest.cool()

    def first_event(self, sid: int) -> Event | None:
        """The first event of a session, read from its log; None if that cannot be had any more."""
        located = locate(self.catalog.connection, sid)
        if located is None or located.format not in self.readers:
            return None
        try:
            return read_first(self.readers[located.format], located)
        except OSError:
            return None

    def refresh(self, stopped: Callable[[], bool] = _never) -> Iterator[Progress]:
        """Look at what may have changed and read it; yields after each bounded step.

        Nothing marked and a healthy watch: returns without a ``stat``. ``stopped`` ends it early; what
        was not read stays marked, what was read stays.
        Raises: sqlite.Error: the index or journal cannot be written; what was taken is marked again.
        """
        if not self.freshness.look_is_due():
            return
        began_s, marks = self.freshness.clock(), self.freshness.take()
        complete = False
        try:
            yield from self._refresh(marks, stopped)
            complete = not stopped()
        finally:
            if complete:
                self.freshness.done(began_s)
            else:
                self.freshness.put_back(marks)

    def rebuild(self, stopped: Callable[[], bool] = _never) -> Iterator[Progress]:
        """Read every log again from its start, session by session, while searches go on."""
        with self.writer.transaction():
            self.catalog.distrust()
        self.ingest.cool()
        self.ingest.trust_digests = False
        self.freshness.mark_everything()
        try:
            yield from self.refresh(stopped)
        finally:
            self.ingest.trust_digests = True

    def _refresh(self, marks: Marks, stopped: Callable[[], bool]) -> Iterator[Progress]:
        progress = self.ingest.progress = Progress()
        changes: list[Changed] = []
        walk = set(self._active)
        if not marks.everything:
            walk = self._look_at_paths(marks.paths, changes)
        for root_id in sorted(walk):
            yield from self._walk(self.catalog.roots[root_id], changes, progress, stopped)
            if stopped():
                return
        yield from self._read(changes, progress, stopped)

    def _read(
        self, changes: list[Changed], progress: Progress, stopped: Callable[[], bool]
    ) -> Iterator[Progress]:
        for _ in range(HANDOVERS_MAX):
            if not changes:
                return
            # the newest first: what was worked on last is searched for first
            changes.sort(key=lambda change: change.stamp.newest_ns, reverse=True)
            progress.units_total += len(changes)
            progress.bytes_total += sum(self._to_read_bytes(change) for change in changes)
            yield progress
            yield from self.ingest.read(changes, stopped)
            if stopped():
                return
            again, self.ingest.again = self.ingest.again, []
            changes = [change for unit in again if (change := self._look_again(unit)) is not None]
        self.ingest.again = []  # their stamps are gone: the next walk finds them changed

    def _walk(
        self, root: Root, changes: list[Changed], progress: Progress, stopped: Callable[[], bool]
    ) -> Generator[Progress]:
        last: Pass | None = None
        for seen in scan(self.catalog, root, self.readers[root.spec.format]):
            last = seen
            yield progress
            if stopped():
                return
        if last is not None:
            with self.writer.transaction():
                changes += self._note(last)

    def _note(self, seen: Pass) -> list[Changed]:
        """What a whole pass says about units: new, moved, gone; the root itself gone or back."""
        root = seen.root
        if seen.present == root.missing:
            for unit in self.catalog.units_of(root.root_id):
                self.standing.missing(unit, missing=not seen.present)
        self.catalog.walked(root, seen.skipped, time.time_ns() // 1_000_000, missing=not seen.present)
        for unit, found in seen.moved:
            renamed = self.standing.renames(unit, found.path)
            self.catalog.move_unit(unit, root, found)
            if renamed:
                self.catalog.read_anew(unit)
            if self.standing.joins(unit):
                self.ingest.again.append(self.standing.evict(unit))
        for unit in seen.gone:
            self.ingest.again += self.standing.lose(unit)
        noted = []
        for change in seen.changed:
            unit = change.unit or self.catalog.add_unit(root, change.found)
            noted.append(attrs.evolve(change, unit=unit))
        again, self.ingest.again = self.ingest.again, []
        listed = {change.unit.unit_id for change in noted if change.unit is not None}
        for unit in again:
            heir = None if unit.unit_id in listed else self._look_again(unit)
            if heir is not None:
                noted.append(heir)
        return noted

    def _look_at_paths(self, paths: Iterable[str], changes: list[Changed]) -> set[int]:
        """Known logs among changed paths are looked at alone; returns the roots that have to be walked."""
        walk: set[int] = set()
        seen: set[int] = set()
        for path in paths:
            units = [unit for unit in self.catalog.units_with(path) if unit.root_id in self._active]
            for unit in units:
                if unit.unit_id in seen:
                    continue
                seen.add(unit.unit_id)
                if unit.gone or not Path(unit.path).exists():
                    walk.add(unit.root_id)
                elif (change := self._look_again(unit)) is not None:
                    changes.append(change)
            if not units:
                walk |= self._roots_of(path)
        changes[:] = [c for c in changes if c.unit is not None and c.unit.root_id not in walk]
        return walk

    def _roots_of(self, path: str) -> set[int]:
        """The roots a changed path belongs to; all of them if none (a link, another spelling of a root)."""
        active = {root_id: self.catalog.roots[root_id].spec.root for root_id in self._active}
        return {root_id for root_id, root in active.items() if _within(path, root)} or set(active)

    def _look_again(self, unit: Unit) -> Changed | None:
        root = self.catalog.roots[unit.root_id]
        try:
            return look_again(self.catalog, unit, self.readers[root.spec.format])
        except OSError:
            return None  # the next walk says what is wrong with it

    def _to_read_bytes(self, change: Changed) -> int:
        checkpoint = None if change.unit is None else self.catalog.checkpoint(change.unit)
        return max(0, change.stamp.size_bytes - (0 if checkpoint is None else checkpoint.offset))


def open_sources(
    connection: Connection,
    writer: IndexWriter,
    reader: IndexReader,
    journal: Journal | None,
    readers: Mapping[str, Reader],
    ranks: Mapping[str, int],
    copies: JournalReader | None = None,
) -> Sources:
    """The sources of a store; ``connection`` is the index writer's, ``reader`` one that sees commits.

    ``copies`` looks into the journal for retained copies, through a connection of its own: reading logs and
    committing appends may go on at the same time. Retaining itself needs the journal's writer.
    """
    token = writer.get_meta(STORE_NAME)
    if token is None:
        token = secrets.token_hex(4).encode()
        with writer.transaction():
            writer.set_meta(STORE_NAME, token)
    catalog = Catalog(connection)
    standing = Standing(catalog, writer, copies or journal, ranks, token.decode())
    return Sources(
        catalog, writer, readers, standing, Ingest(catalog, writer, reader, readers, journal, standing)
    )


def _within(path: str, root: Path) -> bool:
    """Whether a changed path belongs to a root: inside it, the root itself, or a folder above it."""
    changed = Path(path)
    return changed == root or root in changed.parents or changed in root.parents
