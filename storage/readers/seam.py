"""The seam every reader of foreign logs fills (see README.md to add one in an afternoon).

A reader turns one *log unit* (a file, a folder of small files, a database) into headers and events,
in bounded batches. It never writes, never locks, never raises for bad bytes: a damaged record is a
``Loss``, a file that is no session log a ``Refusal``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

import attrs

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.records import Title


@attrs.frozen(kw_only=True)
class Loss:
    """Bytes of a log that yielded nothing although they should have: file, offset, cause.

    ``records`` counts the physical records lost there (0 for a torn tail that may still be completed).
    """

    path: str
    offset: int
    length: int
    cause: str
    records: int = 1


@attrs.frozen(kw_only=True)
class Refusal:
    """Why a unit yields no events: ``not-a-session``, ``newer-version``, ``unreadable`` or ``corrupt``.

    If a header could be read all the same, the batch carries its session without events, so that its
    workspace can be told what could not be read (SPEC 16.3).
    """

    kind: Literal["not-a-session", "newer-version", "unreadable", "corrupt"]
    message: str


@attrs.frozen(kw_only=True)
class LogUnit:
    """One log, read as a whole.

    ``place`` is the folder of the log relative to the source's root: two files with one session id in
    unrelated places are two sessions (SPEC 16.6.1). ``files`` are all files whose stat moves the
    unit's revision; the first is the log itself.
    """

    format: str
    root: Path
    path: Path
    place: str
    files: tuple[Path, ...]


@attrs.frozen(kw_only=True)
class SkippedPath:
    """A path under a root that looks like a log and is none, with the reason (for ``sources``)."""

    path: Path
    reason: str


@attrs.frozen(kw_only=True)
class Checkpoint:
    """Where the next read may go on: everything before ``offset`` was verified and mapped.

    ``prefix`` is a digest over the bytes just before ``offset`` (and the head of the file), checked
    before continuing; ``state`` is the mapper's own serialised state, opaque to everyone else.
    """

    offset: int
    prefix: bytes
    state: bytes


@attrs.define(kw_only=True)
class SessionDelta:
    """News of one session: events ``first_seq`` and on, the header and title as known by now.

    A delta replaces: what was known of the session from ``first_seq`` on gives way to ``events``.
    ``inherited`` is the number of leading events that are copies of the parent's log (a fork).
    ``title`` is a title that the source reports beside the log (SPEC 16.6.7), not a title event.
    Whether a writer may still hold the log (SPEC 16.6.6) changes with time alone: ask ``held.py``.
    """

    header: SessionHeader
    first_seq: int
    events: list[Event]
    title: Title | None = None
    inherited: int = 0
    notes: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class ReadBatch:
    """A bounded part of one read.

    ``records``/``held`` count physical records of this batch: seen, and kept as native records in some
    event; ``records == held + sum(loss.records)``. ``restart`` is True on the first batch of a read that
    began at offset 0: whatever was known of the unit's sessions is replaced.
    ``checkpoint`` holds after this batch is stored; None when the format is rewritten whole.
    """

    sessions: tuple[SessionDelta, ...]
    losses: tuple[Loss, ...] = ()
    records: int = 0
    held: int = 0
    restart: bool = False
    checkpoint: Checkpoint | None = None
    bytes_read: int = 0
    refusal: Refusal | None = None
    provisional: bool = False
    """True for a last line without a line feed: it lies behind the checkpoint and comes again, so its
    counts and losses are not to be added up over reads."""


class Reader(Protocol):
    """One format. Stateless; all state of a read lives in its mapper and in checkpoints."""

    @property
    def format(self) -> str:
        """The format's name as used in ``--source FORMAT=PATH``."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the mapping changes: stored sessions are then read again (SPEC 16.7.5)."""
        ...

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        """Roots where the tool keeps its logs. ``platform`` is ``linux``, ``darwin`` or ``win32``."""
        ...

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Walk ``root`` (a folder, or one log file) by names and stat alone, in a stable order."""
        ...

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        """Read a unit in batches of at most a few MB, from ``checkpoint`` if its prefix still verifies.

        ``stopped`` is asked between batches; a true answer ends the iteration. OSError leaves for the
        caller, which records it; nothing else does.
        """
        ...
