"""Drives readers and writes what they tell: batch by batch, each transaction with its checkpoint.

A kill between two transactions costs what was read since the last one. One bad log costs itself: what
its reader or our own rules raise is caught here and nowhere else, recorded with the unit, and logged.
"""

from __future__ import annotations

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from ...protocol.outward import SessionKey
from .. import sqlite
from ..index.door import IndexReader, IndexWriter, Skeleton
from ..journal import Journal
from ..readers.discovery import printable
from ..readers.lines import is_database
from ..readers.seam import Checkpoint, ReadBatch, Reader, Refusal, SessionDelta
from .catalog import Catalog
from .catalog_rows import CatalogSession, Root, SessionNote, Unit
from .reading import Hot, Piece, UnitReading
from .scanner import Changed, version_of
from .standing import Standing

logger = logging.getLogger(__name__)

STEP_EVENTS: Final = 2048
STEP_BYTES: Final = 2 << 20
"""A transaction holds about this much: some 100 ms of writing, then waiting appends get their turn."""
EPOCH_SHIFT: Final = 20
"""A session that went and came back counts on above every serial it ever had, so no revision comes twice."""
HOT_SESSIONS: Final = 64
HOT_EVENTS: Final = 200_000
"""Sessions whose state is kept between reads of their logs; all others are folded again from the index."""


@attrs.define(eq=False)
class Progress:
    """How far a refresh is. Bytes are those that have to be read; ``sessions`` and ``events`` told so far."""

    units_total: int = 0
    units_done: int = 0
    bytes_total: int = 0
    bytes_done: int = 0
    sessions: int = 0
    events: int = 0
    started_s: float = attrs.field(factory=time.monotonic)

    @property
    def events_per_s(self) -> float:
        """Events a second since the start."""
        return self.events / max(time.monotonic() - self.started_s, 1e-9)


@attrs.define(eq=False)
class _Item:
    """Part of a transaction: what one batch changes, or the end of a read."""

    reading: UnitReading
    pieces: list[Piece]
    batch: ReadBatch | None = None
    first: bool = False
    ended: _End | None = None
    evicted: list[Unit] = attrs.field(factory=list)


@attrs.frozen
class _End:
    """How a read ended. ``whole``: to the end of the log, so that what was not told is gone."""

    whole: bool
    problem: str | None = None
    message: str | None = None


@attrs.define(eq=False)
class Ingest:
    """The one that reads logs into the index. Owner: the writer thread; nothing here is for two threads.

    ``reader`` is a connection of its own that sees what is committed.
    """

    catalog: Catalog
    writer: IndexWriter
    reader: IndexReader
    readers: Mapping[str, Reader]
    journal: Journal | None
    standing: Standing
    progress: Progress = attrs.field(factory=Progress)
    again: list[Unit] = attrs.field(factory=list)
    """Units that have to be read from their start because a session is theirs to tell now."""
    trust_digests: bool = True
    """False while everything is built anew: what looks unchanged is written again all the same."""
    _pending: list[_Item] = attrs.field(factory=list)
    _load: int = 0
    """How full the next transaction is: events, and bytes of logs at as many as fill a step."""
    _evicted: list[Unit] = attrs.field(factory=list)
    _hot: OrderedDict[tuple[int, str], Hot] = attrs.field(factory=OrderedDict)
    _begun: dict[SessionKey, int] = attrs.field(factory=dict)

    def read(self, changes: Iterable[Changed], stopped: Callable[[], bool]) -> Iterator[Progress]:
        """Read units that changed; yields after each transaction. ``stopped`` ends it after a batch.

        Raises: sqlite.Error: the index or journal cannot be written; everything since the last
            transaction is undone and read again next time.
        """
        for change in changes:
            yield from self._unit(change, stopped)
            if stopped():
                break
        if self._flush():
            yield self.progress

    def _unit(self, change: Changed, stopped: Callable[[], bool]) -> Iterator[Progress]:
        reading = self._begin(change)
        if reading is None:
            return
        root, reader = self._of(reading.unit)
        fresh = reading.unit.version in {version_of(root, reader), version_of(root, reader) | 1}
        checkpoint = self.catalog.checkpoint(reading.unit) if fresh else None
        ended = _End(whole=True)
        try:
            for batch in _batches(reader, reading, checkpoint, stopped):
                self._take(reading, batch)
                if batch.refusal is not None:
                    ended = _refused(batch.refusal)
                if self._is_full() and self._flush():
                    yield self.progress
            if stopped():
                return
            pieces = reading.finish()
            if ended.problem is None:
                yield from self._keep_originals(reading, stopped)
                if stopped():
                    return
            self._pending.append(_Item(reading, pieces, ended=ended))
        except _ReadFailed as failed:
            self._fail(reading, failed.problem, failed.message)
        except sqlite.Error:
            raise  # our own file: nothing more can be written
        except Exception as exc:
            logger.exception("what a %s log told could not be taken", reader.format)
            self._fail(reading, "bug", type(exc).__name__)
        if self._is_full() and self._flush():
            yield self.progress

    def _keep_originals(self, reading: UnitReading, stopped: Callable[[], bool]) -> Iterator[Progress]:
        """Keep the log's own bytes beside its events, before it counts as read: a kill repeats it.

        A log that tells a forgotten session is not kept: its bytes hold the words. A database is not either:
        it cannot be copied byte by byte while its owner writes; its rows are in the events.
        """
        told = [row.key for row in reading.rows.values() if not row.forgotten]
        if not reading.retain or self.journal is None or not told or len(told) < len(reading.rows):
            return
        unit, root = reading.found, reading.found.root
        try:
            if is_database(unit.path):
                return
            for file in unit.files:
                if not file.exists():
                    continue
                name = os.path.relpath(file, root) if file != root else file.name
                kept = self.journal.originals.keep(
                    unit.format, reading.unit.place, name, file, told, grown=not reading.restart
                )
                for _ in kept:
                    yield self.progress
                    if stopped():
                        return
        except OSError as exc:  # it vanished or may not be read any more: the next look says so
            logger.info("a log could not be kept: %s", type(exc).__name__)

    def _begin(self, change: Changed) -> UnitReading | None:
        unit = None if change.unit is None else self.catalog.units.get(change.unit.unit_id)
        if unit is None:
            return None
        unit.handed = False
        root, reader = self._of(unit)
        found = attrs.evolve(change.found, place=root.reader_place(unit))
        return UnitReading(
            unit=unit,
            found=found,
            stamp=change.stamp,
            rows=self.catalog.sessions_of(unit, reader.format),
            retain=root.spec.retain and self.journal is not None,
            begin_session=lambda delta: self._begin_session(unit, root, delta),
            is_forgotten=self._is_forgotten,
            stored_skeleton=self._stored_skeleton,
            copy_length=self._copy_length,
            take_hot=self._take_hot,
            trust_digests=self.trust_digests,
        )

    def _of(self, unit: Unit) -> tuple[Root, Reader]:
        root = self.catalog.roots[unit.root_id]
        return root, self.readers[root.spec.format]

    def _begin_session(self, unit: Unit, root: Root, delta: SessionDelta) -> CatalogSession:
        """A session's first row; if another log of the folder tells it already, that one goes on doing so."""
        key = SessionKey(root.spec.format, unit.place, delta.header.id)
        teller = self._begun.get(key)
        if teller is None:
            teller = next((row.unit_id for row in self.catalog.tellers(key) if row.owner), None)
        owner = teller is None or teller == unit.unit_id
        if not owner and teller is not None and not unit.has_moved:
            other = self.catalog.units[teller]
            if other.has_moved:
                owner = True
                self._evicted.append(other)
        if owner:
            self._begun[key] = unit.unit_id
            self.progress.sessions += 1
        return CatalogSession(
            unit_id=unit.unit_id,
            key=key,
            note=SessionNote(header=delta.header),
            owner=owner,
            serial=unit.epoch << EPOCH_SHIFT,
        )

    def _is_forgotten(self, delta: SessionDelta) -> bool:
        if self.journal is None:
            return False
        first = delta.events[0] if delta.first_seq == 0 and delta.events else None
        return self.journal.tombstones.forgotten(delta.header, first)

    def _take_hot(self, row: CatalogSession) -> Hot | None:
        hot = self._hot.pop((row.unit_id, row.key.id), None)
        return hot if hot is not None and hot.projection.length == row.length else None

    def cool(self) -> None:
        """Forget the states kept between reads: what is stored was changed by somebody else."""
        self._hot.clear()

    def _cool(self, unit: Unit) -> None:
        for key in [key for key in self._hot if key[0] == unit.unit_id]:
            del self._hot[key]

    def _stored_skeleton(self, sid: int) -> list[Skeleton]:
        self._flush()
        with self.reader.snapshot():
            return self.reader.skeleton(sid)

    def _copy_length(self, row: CatalogSession) -> int:
        stored = None if self.journal is None else self.journal.find(row.key)
        return 0 if stored is None else stored.length

    def _take(self, reading: UnitReading, batch: ReadBatch) -> None:
        first = not reading.begun
        pieces = reading.take(batch)  # it may flush what is pending
        evicted, self._evicted = self._evicted, []
        self._pending.append(_Item(reading, pieces, batch, first, evicted=evicted))
        if evicted:
            self._load += STEP_EVENTS  # written at once: the evicted log may be the next one to be read
        events = sum(len(delta.events) for delta in batch.sessions)
        self._load += events + 1 + batch.bytes_read * STEP_EVENTS // STEP_BYTES
        self.progress.bytes_done += batch.bytes_read
        self.progress.events += events

    def _fail(self, reading: UnitReading, problem: str, message: str) -> None:
        """Nothing more of this read is used; what its earlier batches stored stays, with its checkpoint."""
        self._pending = [item for item in self._pending if item.reading is not reading]
        self._flush()
        unit = self.catalog.reload_unit(reading.unit.unit_id)
        if unit is not None:
            reading.unit, reading.rows = unit, {}
            ended = _End(whole=False, problem=problem, message=message)
            self._pending.append(_Item(reading, [], ended=ended))

    def _is_full(self) -> bool:
        return self._load >= STEP_EVENTS

    def _flush(self) -> bool:
        """Write what is pending; False if nothing was. A unit whose writing fails is written off alone."""
        items, self._pending, self._load = self._pending, [], 0
        if not items:
            return False
        try:
            self._write(items)
        except sqlite.Error:
            self._undone()
            raise
        except Exception:
            logger.exception("writing what logs told failed; once more, one log at a time")
            self._undone()
            self._one_by_one(items)
        self._begun.clear()  # the catalog knows them now
        return True

    def _undone(self) -> None:
        self._hot.clear()
        self._begun.clear()
        self._evicted.clear()
        self.catalog.reload()

    def _one_by_one(self, items: list[_Item]) -> None:
        for reading in dict.fromkeys(item.reading for item in items):
            unit = self.catalog.units.get(reading.unit.unit_id)
            if unit is None:
                continue
            unit.epoch, reading.unit = reading.unit.epoch, unit
            try:
                self._write([item for item in items if item.reading is reading])
            except sqlite.Error:
                self._undone()
                raise
            except Exception as exc:
                logger.exception("a log could not be written")
                self._undone()
                self._fail(reading, "bug", type(exc).__name__)
                self._write_last()

    def _write_last(self) -> None:
        items, self._pending = self._pending, []
        self._write(items)

    def _write(self, items: list[_Item]) -> None:
        copies = [copy for item in items for piece in item.pieces for copy in piece.copies]
        if copies and self.journal is not None:
            self.journal.retain(copies)  # before the index: a checkpoint never runs ahead of the copy
        with self.writer.transaction():
            for item in items:
                self._write_item(item)
        for item in items:
            if item.ended is not None:
                self.progress.units_done += 1
                self._keep_hot(item.reading)

    def _write_item(self, item: _Item) -> None:
        reading, batch = item.reading, item.batch
        unit = reading.unit
        for other in item.evicted:
            if other.has_moved:
                self.again.append(self.standing.evict(other))
                self._cool(other)
        if batch is not None:
            if item.first:
                self.catalog.begin_read(unit, restart=batch.restart)
            tail = batch.provisional
            self.catalog.count(
                unit, records=batch.records, held=batch.held, read_bytes=batch.bytes_read, tail=tail
            )
            self.catalog.add_losses(unit, batch.losses, tail=tail)
        for piece in item.pieces:
            self.standing.put(unit, piece)
        if batch is not None and batch.refusal is None:
            has_forgotten = any(row.forgotten for row in reading.rows.values())
            # a mapper's state may hold words of a session that was forgotten
            anew = has_forgotten or unit.handed
            self.catalog.put_checkpoint(unit, None if anew else batch.checkpoint)
            root, reader = self._of(unit)
            unit.stamp, unit.version = None, version_of(root, reader)
            self.catalog.put_unit(unit, unit.files, _now_ms())
        if item.ended is not None:
            self._end(reading, item.ended)

    def _end(self, reading: UnitReading, ended: _End) -> None:
        unit = reading.unit
        root, reader = self._of(unit)
        settled = ended.problem != "error"  # what could not be opened may be opened next time
        unit.stamp = reading.stamp if settled else attrs.evolve(reading.stamp, settled=False)
        if unit.handed:
            unit.stamp = None
        unit.version = version_of(root, reader)
        unit.problem, unit.message, unit.gone = ended.problem, ended.message, False
        files = [str(file) for file in reading.found.files]
        self.catalog.put_unit(unit, files, _now_ms())
        if ended.problem in {"newer-version", "unreadable"}:
            self.catalog.put_checkpoint(unit, None)
            self.standing.unreadable(unit)
        elif ended.whole:
            self.again += self.standing.settle(unit, reading.told, self._begun.keys())

    def _keep_hot(self, reading: UnitReading) -> None:
        for row, hot in reading.hot():
            self._hot[row.unit_id, row.key.id] = hot
        while self._hot and (
            len(self._hot) > HOT_SESSIONS
            or sum(hot.projection.length for hot in self._hot.values()) > HOT_EVENTS
        ):
            self._hot.popitem(last=False)


class _ReadFailed(Exception):
    """A read did not come to its end: the log cannot be read (``error``), or its reader failed (``bug``)."""

    def __init__(self, problem: str, message: str) -> None:
        super().__init__(message)
        self.problem, self.message = problem, message


def _batches(
    reader: Reader, reading: UnitReading, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
) -> Iterator[ReadBatch]:
    """What the reader yields; whatever it raises is its log's affair, an SQLite error of a log included."""
    try:
        yield from reader.read(reading.found, checkpoint, stopped)
    except OSError as exc:
        message = f"{type(exc).__name__}: {exc.strerror or 'cannot be read'}"
        raise _ReadFailed("error", message) from exc
    except Exception as exc:
        logger.exception("reading a %s log failed", reader.format)
        raise _ReadFailed("bug", type(exc).__name__) from exc


def _refused(refusal: Refusal) -> _End:
    """A document caught half written (``corrupt``) keeps what was stored until it changes again."""
    return _End(
        whole=refusal.kind == "not-a-session", problem=refusal.kind, message=printable(refusal.message)
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
