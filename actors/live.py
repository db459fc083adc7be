"""Live sessions: who publishes what now, and what is known of each without reading its log."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from ..protocol.event import Event
from ..protocol.header import SessionHeader
from ..protocol.outward import SessionKey
from ..protocol.records import Title
from ..protocol.steps import StepCut
from ..protocol.wire.identity import Owner
from ..storage.projection import Projection


@attrs.define(eq=False)
class LiveSession:
    """One live session. Changed only by ``Publishing``, under ``lock``, on the loop's thread.

    ``journal_sid`` is None for a session that is not journaled; its events are then in ``memory``.
    ``projection`` is None after a failed commit: it is rebuilt from the stored log before the next append.
    """

    key: SessionKey
    header: SessionHeader
    owner: Owner
    sid: int
    journal_sid: int | None
    length: int = 0
    memory: list[Event] | None = None
    projection: Projection | None = attrs.field(factory=Projection)
    title: Title | None = None
    title_error: str | None = None
    cut: StepCut = attrs.field(factory=StepCut)
    lock: trio.Lock = attrs.field(factory=trio.Lock)

    def committed(self, events: Sequence[Event]) -> None:
        """Take events that are stored now into length, cut and title."""
        for event in events:
            self.cut.feed(event.type, event.seq)
        self.length += len(events)
        if self.projection is not None:
            self.title, self.title_error = self.projection.title()


@attrs.define(eq=False)
class LiveStore:
    """The registry of live sessions. ``sids`` is the live flag of every query, as one frozen set."""

    _by_key: dict[SessionKey, LiveSession] = attrs.field(factory=dict, init=False)
    _by_sid: dict[int, LiveSession] = attrs.field(factory=dict, init=False)
    _by_name: dict[tuple[str, str], LiveSession] = attrs.field(factory=dict, init=False)
    sids: frozenset[int] = attrs.field(default=frozenset(), init=False)

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> list[LiveSession]:
        return list(self._by_key.values())

    def find(self, key: SessionKey) -> LiveSession | None:
        return self._by_key.get(key)

    def with_sid(self, sid: int) -> LiveSession | None:
        return self._by_sid.get(sid)

    def owned(self, session_id: str, owner: Owner) -> LiveSession | None:
        """The session that this connection attached under this id."""
        return self._by_name.get((owner.connection_id, session_id))

    def of_token(self, session_id: str, token_id: str) -> list[LiveSession]:
        """Live sessions of a token, on whatever connection, with this id."""
        return [
            session
            for session in self._by_key.values()
            if session.key.id == session_id and session.owner.token_id == token_id
        ]

    def of_connection(self, connection_id: str) -> list[LiveSession]:
        return [session for session in self._by_key.values() if session.owner.connection_id == connection_id]

    def add(self, session: LiveSession) -> None:
        self._by_key[session.key] = session
        self._by_sid[session.sid] = session
        self._by_name[session.owner.connection_id, session.key.id] = session
        self.sids = frozenset(self._by_sid)

    def hand_over(self, session: LiveSession, owner: Owner) -> None:
        """Give a session to a newer connection of the same token; the older one has it no more."""
        self._by_name.pop((session.owner.connection_id, session.key.id), None)
        session.owner = owner
        self._by_name[owner.connection_id, session.key.id] = session

    def remove(self, session: LiveSession) -> None:
        """Forget a session; does nothing for one that was removed before."""
        if self._by_key.get(session.key) is session:
            del self._by_key[session.key]
            del self._by_sid[session.sid]
            self._by_name.pop((session.owner.connection_id, session.key.id), None)
            self.sids = frozenset(self._by_sid)
