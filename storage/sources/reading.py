"""One read of one log: its batches become changes of the index, without touching a database.

``UnitReading`` holds what one read knows; ``take`` turns a batch into ``Piece``s that ``ingest`` writes
in a transaction. Nothing is written here, so a failure costs the unit and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import attrs

from ...protocol.documents import DocumentBuilder
from ...protocol.event import Event, Surface
from ...protocol.titles import TitleFold
from ..index.door import Skeleton
from ..journal import Copy
from ..journal.codec import encode_event
from ..projection import Change, Projection, refold
from ..readers.seam import LogUnit, ReadBatch, SessionDelta
from .catalog_rows import CatalogSession, Unit
from .stamps import Stamp

HELD_EVENTS_MAX: Final = 20_000
HELD_CHARS_MAX: Final = 8_000_000
"""So much of a session that is told again is held back to see whether it is unchanged; beyond that it is
simply indexed again."""


class ReaderBug(Exception):
    """A reader broke the seam's rules: a gap in its seqs, a session that does not restart at 0."""


@attrs.define(eq=False)
class Piece:
    """What one delta changes. Applied in order: cut the stored events, restore surfaces, add."""

    row: CatalogSession
    cut: int | None = None
    restored: dict[int, Surface] = attrs.field(factory=dict)
    changes: list[Change] = attrs.field(factory=list)
    copies: list[Copy] = attrs.field(factory=list)


@attrs.define(eq=False)
class Hot:
    """A session's state between two reads of its log: reading on costs only what is new."""

    projection: Projection
    digest: hashlib.blake2b


@attrs.define(eq=False)
class _Held:
    """A session that is told again from its start, held back until it is known to be changed or not."""

    target: int
    digest: bytes
    changes: list[Change] = attrs.field(factory=list)
    copies: list[Copy] = attrs.field(factory=list)
    chars: int = 0


@attrs.define(eq=False)
class _Work:
    """A session within one read. ``restarted``: its first delta after a restart has come."""

    row: CatalogSession
    hot: Hot | None = None
    restarted: bool = False
    held: _Held | None = None


@attrs.define(eq=False)
class UnitReading:
    """One read of one unit. Owner: the ingest that drives it.

    ``begin_session`` makes the row of a session that the unit never told before; ``is_forgotten`` asks
    the tombstones; ``stored_skeleton`` reads what is committed; ``has_copy`` is the length of a retained
    copy.
    """

    unit: Unit
    found: LogUnit
    stamp: Stamp
    rows: dict[str, CatalogSession]
    retain: bool
    begin_session: Callable[[SessionDelta], CatalogSession]
    is_forgotten: Callable[[SessionDelta], bool]
    stored_skeleton: Callable[[int], list[Skeleton]]
    copy_length: Callable[[CatalogSession], int]
    take_hot: Callable[[CatalogSession], Hot | None]
    trust_digests: bool = True
    restart: bool = False
    digesting: bool = False
    begun: bool = False
    _works: dict[str, _Work] = attrs.field(factory=dict)

    @property
    def told(self) -> Collection[str]:
        """Ids of the sessions that this read had something to say of."""
        return self._works.keys()

    def take(self, batch: ReadBatch) -> list[Piece]:
        """Turn one batch into pieces. Raises: ReaderBug, and whatever a bug in the pure rules raises."""
        pieces: list[Piece] = []
        if not self.begun:
            self.begun, self.restart = True, batch.restart
            self.digesting = batch.checkpoint is None
            if batch.restart:
                self.unit.epoch += 1
            else:
                told = {delta.header.id for delta in batch.sessions}
                pieces += self._take_back_tails(told)
        for delta in batch.sessions:
            pieces += self._delta(delta)
        if not batch.provisional:
            self._settle(batch.sessions)
        return pieces

    def finish(self) -> list[Piece]:
        """What was held back to the end of the read: sessions that became shorter."""
        return [piece for work in self._works.values() for piece in self._release(work)]

    def hot(self) -> Iterator[tuple[CatalogSession, Hot]]:
        """The states to keep for the next read."""
        for work in self._works.values():
            if work.hot is not None and work.row.owner and work.row.note.broken is None:
                yield work.row, work.hot

    def _take_back_tails(self, told: set[str]) -> Iterator[Piece]:
        """Events behind the checkpoint come again, or are gone; sessions told now do it by themselves."""
        for row in list(self.rows.values()):
            if row.length > row.settled and row.key.id not in told:
                work = self._work(row)
                yield self._rewind(work, row.settled)

    def _settle(self, deltas: Sequence[SessionDelta]) -> None:
        for delta in deltas:
            work = self._works[delta.header.id]
            if work.held is not None:
                continue
            row = work.row
            row.settled, row.note.settled_title = row.length, row.note.title_event

    def _work(self, row: CatalogSession) -> _Work:
        return self._works.setdefault(row.key.id, _Work(row))

    def _delta(self, delta: SessionDelta) -> list[Piece]:
        row = self.rows.get(delta.header.id)
        if row is None:
            row = self.rows[delta.header.id] = self.begin_session(delta)
        work = self._work(row)
        row.epoch = self.unit.epoch
        begins = self.restart and not work.restarted
        work.restarted = True
        row.forgotten = self.is_forgotten(delta) or (row.forgotten and not begins)
        if row.forgotten:
            self._count_only(row, delta)
            return [Piece(row)]
        self._note(row, delta, begins)
        if not row.owner:
            self._count_only(row, delta)
            return [Piece(row)]
        if begins:
            return self._begin_again(work, delta)
        length = row.length if work.hot is None else work.hot.projection.length
        if delta.first_seq > length:
            raise ReaderBug(f"events from {delta.first_seq} where {length} are known")
        pieces = [self._rewind(work, delta.first_seq)] if delta.first_seq < length else []
        return pieces + self._feed(work, delta)

    def _count_only(self, row: CatalogSession, delta: SessionDelta) -> None:
        row.length = delta.first_seq + len(delta.events)
        if delta.events:
            row.last_time = delta.events[-1].time

    def _note(self, row: CatalogSession, delta: SessionDelta, begins: bool) -> None:
        note = row.note
        before = (note.header, note.inherited, note.reported, note.notes)
        note.header, note.inherited = delta.header, delta.inherited
        if begins:  # what a log that was cut or rewritten no longer says is not true any more
            note.reported, note.notes = None, ()
        note.reported = delta.title or note.reported
        note.notes = tuple(dict.fromkeys((*note.notes, *delta.notes)))
        row.serial += before != (note.header, note.inherited, note.reported, note.notes)

    def _begin_again(self, work: _Work, delta: SessionDelta) -> list[Piece]:
        row = work.row
        if delta.first_seq:
            raise ReaderBug(f"a read from the start begins with event {delta.first_seq}")
        stored, digest, was_broken = row.length, row.note.digest, row.note.broken is not None
        work.hot = Hot(Projection(), _digest())
        row.note.title_event = row.note.settled_title = row.note.broken = row.note.digest = None
        row.note.calls = ()
        if self._may_be_unchanged(row, digest, was_broken):
            assert digest is not None
            work.held = _Held(stored, digest)
            return self._feed(work, delta)
        row.length = row.settled = 0
        row.serial += 1
        pieces = self._feed(work, delta)
        pieces[0].cut = 0  # one piece, so that a session's row is written once
        return pieces

    def _may_be_unchanged(self, row: CatalogSession, digest: bytes | None, was_broken: bool) -> bool:
        if not self.trust_digests or not self.digesting or digest is None or was_broken or not row.length:
            return False
        return not self.retain or self.copy_length(row) == row.length

    def _rewind(self, work: _Work, length: int) -> Piece:
        """Go back to ``length`` events: fold the stored skeleton again, see what it had shadowed."""
        row, note = work.row, work.row.note
        self._release_into_nothing(work)
        piece = Piece(row, cut=length)
        if note.broken is None and row.owner and not row.forgotten:
            stored = [] if row.sid is None else self.stored_skeleton(row.sid)
            fold, current = refold(stored, length)
            piece.restored = dict.fromkeys(current, "current")
            titles = TitleFold(_before(length, note.title_event, note.settled_title))
            projection = Projection(DocumentBuilder.going_on(fold, note.calls), titles, length)
            work.hot = Hot(projection, _digest())
            note.title_event = titles.last
        row.length, row.settled = length, min(row.settled, length)
        row.serial += 1
        return piece

    def _release_into_nothing(self, work: _Work) -> None:
        if work.held is not None:
            raise ReaderBug("a session goes back while it is told again")

    def _resumed(self, work: _Work) -> Hot:
        """The session's state at its length: still at hand, or folded again from what is stored."""
        if work.hot is None:
            work.hot = self.take_hot(work.row)
        if work.hot is None:
            row, note = work.row, work.row.note
            stored = [] if row.sid is None or note.broken else self.stored_skeleton(row.sid)
            fold, _ = refold(stored, row.length)
            work.hot = Hot(
                Projection(
                    DocumentBuilder.going_on(fold, note.calls),
                    TitleFold(note.title_event),
                    row.length,
                    row.last_time,
                    note.broken,
                ),
                _digest(),
            )
        return work.hot

    def _feed(self, work: _Work, delta: SessionDelta) -> list[Piece]:
        events, pieces = delta.events, list[Piece]()
        if work.held is not None:
            known = work.held.target - self._resumed(work).projection.length
            pieces += self._hold(work, delta, events[:known])
            events = events[known:] if work.held is None else []
        if work.held is None:
            pieces.append(self._add(work, delta, events))
        return pieces

    def _add(self, work: _Work, delta: SessionDelta, events: Sequence[Event]) -> Piece:
        change, copies = self._project(work, delta, events)
        self._sync(work)
        work.row.serial += bool(events)
        return Piece(work.row, changes=[change], copies=copies)

    def _project(
        self, work: _Work, delta: SessionDelta, events: Sequence[Event]
    ) -> tuple[Change, list[Copy]]:
        hot = self._resumed(work)
        first = hot.projection.length
        change = hot.projection.feed(events)
        if self.digesting:
            for event in events:
                hot.digest.update(encode_event(event))
        return change, [self._copy(work, delta, first, events)] if self.retain else []

    def _copy(self, work: _Work, delta: SessionDelta, first: int, events: Sequence[Event]) -> Copy:
        note = work.row.note
        return Copy(
            key=work.row.key,
            header=delta.header,
            first_seq=first,
            events=events,
            title=note.reported,
            inherited=note.inherited,
            notes=note.notes,
        )

    def _sync(self, work: _Work) -> None:
        """The row follows the projection."""
        row, projection = work.row, self._resumed(work).projection
        row.length, row.last_time = projection.length, projection.last_time
        row.note.title_event, row.note.broken = projection.titles.last, projection.broken
        row.note.calls = tuple(sorted(projection.builder.search_calls))
        row.note.digest = self._resumed(work).digest.digest() if self.digesting else None

    def _sync_settled(self, work: _Work) -> None:
        self._sync(work)
        row = work.row
        row.settled, row.note.settled_title = row.length, row.note.title_event

    def _hold(self, work: _Work, delta: SessionDelta, events: Sequence[Event]) -> list[Piece]:
        held = work.held
        assert held is not None
        change, copies = self._project(work, delta, events)
        held.changes.append(change)
        held.copies += copies
        held.chars += sum(len(document.text) for document in change.documents)
        hot = self._resumed(work)
        if hot.projection.length == held.target and hot.digest.digest() == held.digest:
            work.held = None  # nothing of it changed: what is stored stays, what follows is appended
            self._sync_settled(work)
            return [Piece(work.row)]
        full = held.chars > HELD_CHARS_MAX or hot.projection.length > HELD_EVENTS_MAX
        return self._release(work) if full or hot.projection.length == held.target else []

    def _release(self, work: _Work) -> list[Piece]:
        """A session that did change: index all of it again."""
        held, work.held = work.held, None
        if held is None:
            return []
        self._sync_settled(work)
        work.row.serial += 1
        return [Piece(work.row, cut=0, changes=held.changes, copies=held.copies)]


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _before(length: int, *candidates: Event | None) -> Event | None:
    """The first of the title events that lies within ``length``."""
    return next((event for event in candidates if event is not None and event.seq < length), None)
