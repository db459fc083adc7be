"""Bringing the index up to the journal: after a crash between the two commits, or for a new index.

The journal is canonical. Whatever it holds beyond the index is indexed here: published sessions, and
retained copies of which the index knows nothing (their log is gone, or is read again afterwards).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..protocol.errors import Code
from ..protocol.event import Event
from ..protocol.outward import SessionKey
from .index.door import IndexWriter, SessionState, StoredSession
from .journal import PUBLISHED, Journal, JournalDamaged, JournalSession
from .projection import Projection

JOURNAL_RANK: Final = 1


def catch_up_all(journal: Journal, index: IndexWriter, ranks: Mapping[str, int]) -> int:
    """Index what is missing of every session of the journal. Returns the number of events indexed.

    Args: ``ranks`` of the readers' formats, for retained copies (SPEC 16.6.3).
    """
    count = 0
    for stored in journal.sessions():
        known = index.find(stored.key)
        if stored.key.source == PUBLISHED:
            count += _catch_up(journal, index, stored, known, JOURNAL_RANK)
        elif known is None and stored.key.source in ranks:
            count += _catch_up(journal, index, stored, known, ranks[stored.key.source])
    return count


def catch_up_one(journal: Journal, index: IndexWriter, key: SessionKey) -> int:
    """The same for one published session; nothing if the journal does not hold it."""
    stored = journal.find(key)
    return 0 if stored is None else _catch_up(journal, index, stored, index.find(key), JOURNAL_RANK)


def _catch_up(
    journal: Journal, index: IndexWriter, stored: JournalSession, known: StoredSession | None, rank: int
) -> int:
    indexed = 0 if known is None else known.state.length
    if known is not None and indexed == stored.length:
        return 0
    if indexed > stored.length or (known is not None and known.state.error is not None):
        indexed = 0  # a log that was unfit, or an index ahead of its journal: all of it again
    projection = Projection()
    copied = stored.key.source != PUBLISHED
    with index.transaction():
        sid = index.put_session(stored.key, _state(stored, projection, rank))
        if not indexed:
            index.truncate(sid, 0)
        error: Code | None = None
        try:
            for events in _pages(journal, stored.sid, indexed):
                change = projection.feed(events, skeleton=copied)
                if projection.length > indexed and projection.broken is None:
                    change.apply(index, sid)
        except JournalDamaged:
            error = Code.CORRUPT_SESSION
        index.put_session(stored.key, _state(stored, projection, rank, error))
    return stored.length - indexed


def _pages(journal: Journal, sid: int, border: int) -> Iterator[list[Event]]:
    """The log in pages, none of which spans ``border``: what lies before it is folded, not indexed."""
    for page in journal.read_all(sid):
        cut = border - page[0].seq
        if 0 < cut < len(page):
            yield page[:cut]
            yield page[cut:]
        else:
            yield page


def _state(
    stored: JournalSession, projection: Projection, rank: int, error: Code | None = None
) -> SessionState:
    title, title_error = projection.title(stored.title)
    copied = stored.key.source != PUBLISHED
    return SessionState(
        header=stored.header,
        rank=rank,
        title=title,
        title_error=title_error,
        length=stored.length,
        revision=stored.revision,
        inherited=stored.inherited if copied else stored.header.seed_length or 0,
        source_gone=copied,
        error=projection.broken if error is None else error.value,
    )
