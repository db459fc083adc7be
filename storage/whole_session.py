"""Index one session whole from its events: for stores that hand out complete logs."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..protocol.envelope import first_gap
from ..protocol.errors import Code
from ..protocol.event import Event
from ..protocol.outward import SessionKey
from .index.door import IndexWriter, SessionState
from .projection import Change, Projection


@attrs.frozen
class WholeSession:
    """A session ready to be written: everything that needs no database is done."""

    key: SessionKey
    state: SessionState
    change: Change


def prepare(key: SessionKey, state: SessionState, events: Sequence[Event]) -> WholeSession:
    """Fold a log into documents, skeleton and title. Never raises for a bad log: it is quarantined.

    ``state`` comes without title, length and error; a log that breaks a rule gets the rule's code as
    ``error`` and no documents (SPEC 16.6.4).
    """
    if first_gap(events) is not None:
        return quarantined(key, attrs.evolve(state, length=len(events)), Code.CORRUPT_SESSION)
    projection = Projection()
    change = projection.feed(events)
    title, title_error = projection.title()
    state = attrs.evolve(state, title=title, title_error=title_error, length=len(events))
    return WholeSession(key, attrs.evolve(state, error=projection.broken), change)


def quarantined(key: SessionKey, state: SessionState, code: Code) -> WholeSession:
    """A session that is known and cannot be read: listed among the unread, without documents."""
    return WholeSession(key, attrs.evolve(state, error=code.value), Change())


def put_whole(index: IndexWriter, session: WholeSession) -> int:
    """Inside a transaction: replace a session's state and all its events. Returns its sid."""
    sid = index.put_session(session.key, session.state)
    index.truncate(sid)
    if session.state.error is None:
        session.change.apply(index, sid)
    return sid
