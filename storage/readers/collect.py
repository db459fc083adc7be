"""Put the batches of reads together again: what a store would hold after them."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.records import Title
from .seam import Checkpoint, Loss, ReadBatch, Refusal, SessionDelta


@attrs.define(eq=False)
class CollectedSession:
    """One session as known after the batches so far."""

    header: SessionHeader
    events: list[Event] = attrs.field(factory=list)
    title: Title | None = None
    inherited: int = 0
    notes: list[str] = attrs.field(factory=list)


@attrs.define(eq=False)
class Collected:
    """All that a unit yielded. ``add`` batches in order, also those of a later read that went on."""

    sessions: dict[str, CollectedSession] = attrs.field(factory=dict)
    losses: list[Loss] = attrs.field(factory=list)
    records: int = 0
    held: int = 0
    refusal: Refusal | None = None
    checkpoint: Checkpoint | None = None
    _provisional: tuple[int, int, int] | None = None

    def add(self, batch: ReadBatch) -> None:
        """Take one batch.

        Raises: ValueError: an event's seq is not its place in the session (a reader's bug).
        """
        if batch.restart:
            self.sessions.clear()
            self.losses.clear()
            self.records = self.held = 0
            self._provisional = None
        if self._provisional is not None:
            # What a last line without line feed counted for comes again, or is gone.
            self.records, self.held, kept = self._provisional
            del self.losses[kept:]
            self._provisional = None
        if batch.provisional:
            self._provisional = (self.records, self.held, len(self.losses))
        self.records += batch.records
        self.held += batch.held
        self.losses.extend(batch.losses)
        self.refusal = batch.refusal
        self.checkpoint = batch.checkpoint
        for delta in batch.sessions:
            self._apply(delta)

    def _apply(self, delta: SessionDelta) -> None:
        known = self.sessions.setdefault(delta.header.id, CollectedSession(delta.header))
        if delta.first_seq > len(known.events):
            raise ValueError(f"a gap: events from {delta.first_seq}, {len(known.events)} known")
        del known.events[delta.first_seq :]
        for event in delta.events:
            if event.seq != len(known.events):
                raise ValueError(f"seq {event.seq} where {len(known.events)} was due")
            known.events.append(event)
        known.header = delta.header
        known.title = delta.title or known.title
        known.inherited = delta.inherited
        known.notes.extend(note for note in delta.notes if note not in known.notes)


def collect(batches: Iterable[ReadBatch], into: Collected | None = None) -> Collected:
    """Add every batch to ``into``, or to a fresh collection. Raises: OSError, as the read does."""
    collected = into if into is not None else Collected()
    for batch in batches:
        collected.add(batch)
    return collected
