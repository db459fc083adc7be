"""The driver of every JSONL reader: bytes to records, records to a mapper, its news to batches.

A format supplies a ``Mapper`` and nothing else. Splitting, damage, checkpoints, torn tails, foreign
files and bounds are the same for all and live here and in the modules this one joins.

Two rules a mapper and its readers can rely on:

- A *delta replaces*: whatever was known of a session from ``first_seq`` on is replaced by its events.
  A last line without a line feed is mapped but lies behind the checkpoint, so the next read yields it
  again, perhaps longer.
- *Every object is a record* (README.md, "Counting"). A mapper holds it, or says why it could not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import attrs
import msgspec

from ...protocol.json_value import JSON
from .decode import decode_record
from .lines import Chunk, Line, file_chunks, split_lines
from .prefix import prefix_digest, prefix_verifies
from .salvage import salvage
from .seam import Checkpoint, LogUnit, Loss, ReadBatch, Refusal, SessionDelta

BATCH_BYTES: Final = 2 << 20
BATCH_RECORDS: Final = 8192


class Record(msgspec.Struct, frozen=True):
    """One physical record. ``raw_offset`` and ``raw_length`` are bytes of the (decompressed) log."""

    obj: dict[str, JSON]
    raw_offset: int
    raw_length: int


class Mapper(Protocol):
    """Turns the records of one log, in order, into sessions. Has one owner: the read that made it."""

    def feed(self, record: Record) -> str | None:
        """Take one record. Returns None if some event or header keeps it, else why it is lost."""
        ...

    def take(self) -> list[SessionDelta]:
        """Drain the news since the last call. Never holds back a record that was fed."""
        ...

    def state(self) -> bytes:
        """All that is needed to go on from here, as if nothing had stopped. A few KB at most."""
        ...

    def verdict(self) -> bool | Refusal:
        """True once a record of this format was seen; False before; a Refusal ends the read."""
        ...


MapperFactory: TypeAlias = Callable[[bytes | None], Mapper]
"""Makes a mapper, fresh for None, else from a ``state``. Raises ValueError for a state it cannot read."""

Opener: TypeAlias = Callable[[Path, int], Iterator[Chunk]]


def read_jsonl(
    unit: LogUnit,
    checkpoint: Checkpoint | None,
    new_mapper: MapperFactory,
    stopped: Callable[[], bool],
    open_chunks: Opener = file_chunks,
) -> Iterator[ReadBatch]:
    """Read one JSONL log in batches of about 2 MB, from ``checkpoint`` if its prefix still verifies.

    The last batch carries the checkpoint of the last complete line. A read that yields nothing new
    still yields one batch. ``stopped`` is asked between batches.

    Raises: OSError: the log cannot be opened or read.
    """
    start = _resume(unit.path, checkpoint, new_mapper)
    yield from _Reading(unit.path, start, open_chunks).batches(stopped)


@attrs.frozen
class _Start:
    mapper: Mapper
    offset: int
    restart: bool


def _resume(path: Path, checkpoint: Checkpoint | None, new_mapper: MapperFactory) -> _Start:
    if checkpoint is not None and prefix_verifies(path, checkpoint.offset, checkpoint.prefix):
        try:
            return _Start(new_mapper(checkpoint.state), checkpoint.offset, restart=False)
        except ValueError:
            pass  # written by another version of the mapper: read again from the start
    return _Start(new_mapper(None), 0, restart=True)


@attrs.define(eq=False)
class _Reading:
    """One read of one log; owned by the generator that ``read_jsonl`` returns."""

    path: Path
    start: _Start
    open_chunks: Opener
    losses: list[Loss] = attrs.field(factory=list)
    records: int = 0
    held: int = 0
    bytes_read: int = 0
    first: bool = True
    resume: int = 0

    def batches(self, stopped: Callable[[], bool]) -> Iterator[ReadBatch]:
        self.resume = self.start.offset
        tail: Line | None = None
        for line in split_lines(self.open_chunks(self.path, self.start.offset), self.start.offset):
            if not line.complete:
                tail = line
                break
            self._line(line)
            if self.bytes_read >= BATCH_BYTES or self.records >= BATCH_RECORDS:
                yield self._batch()
                if stopped():
                    return
        checkpoint = self._checkpoint()
        if tail is not None:
            # What came before the tail leaves first: the checkpoint does not cover the tail.
            if self.records or self.losses:
                yield self._batch()
            self._tail(tail)
        yield self._batch(checkpoint, provisional=tail is not None)

    def _line(self, line: Line) -> None:
        self.bytes_read += line.length + 1
        if line.resume is not None:
            self.resume = line.resume
        if line.data is None:
            self._lose(line.offset, line.length, "line above the size bound")
            return
        self._bytes(line.data, line.offset)

    def _tail(self, line: Line) -> None:
        self.bytes_read += line.length
        try:
            value = decode_record(line.data or b"")
        except ValueError:
            self._lose(line.offset, line.length, "torn tail", records=0)
            return
        if isinstance(value, dict):
            self._feed(Record(value, line.offset, line.length))

    def _bytes(self, raw: bytes, offset: int) -> None:
        if offset == 0:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        try:
            value = decode_record(raw)
        except ValueError:
            self._damaged(raw, offset)
            return
        if isinstance(value, dict):
            self._feed(Record(value, offset, len(raw)))

    def _damaged(self, raw: bytes, offset: int) -> None:
        if raw.lstrip().startswith(b"//"):
            return
        for piece in salvage(raw):
            if piece.obj is None:
                self._lose(offset + piece.start, piece.end - piece.start, "not JSON")
            else:
                self._feed(Record(piece.obj, offset + piece.start, piece.end - piece.start))

    def _feed(self, record: Record) -> None:
        cause = self.start.mapper.feed(record)
        if cause is None:
            self.records += 1
            self.held += 1
        else:
            self._lose(record.raw_offset, record.raw_length, cause)

    def _lose(self, offset: int, length: int, cause: str, records: int = 1) -> None:
        self.records += records
        self.losses.append(
            Loss(path=str(self.path), offset=offset, length=length, cause=cause, records=records)
        )

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            offset=self.resume, prefix=prefix_digest(self.path, self.resume), state=self.start.mapper.state()
        )

    def _batch(self, checkpoint: Checkpoint | None = None, *, provisional: bool = False) -> ReadBatch:
        verdict = self.start.mapper.verdict()
        batch = ReadBatch(
            sessions=tuple(self.start.mapper.take()),
            losses=tuple(self.losses),
            records=self.records,
            held=self.held,
            restart=self.first and self.start.restart,
            checkpoint=checkpoint or self._checkpoint(),
            bytes_read=self.bytes_read,
            refusal=verdict if isinstance(verdict, Refusal) else None,
            provisional=provisional,
        )
        self.losses, self.records, self.held, self.bytes_read, self.first = [], 0, 0, 0, False
        return batch
