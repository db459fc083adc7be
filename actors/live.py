"""Live sessions: who publishes what now, and what is known of each without reading its log."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from ..protocol.event import Event
from ..protocol.header import SessionHeader, compatible
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
    ``persisted``: whether a store holds the session now. ``epoch``: when it came to live, see ``LiveStore``.
    """

    key: SessionKey
    header: SessionHeader
    owner: Owner
    sid: int
    journal_sid: int | None
    length: int = 0
    memory: list[Event] | None = None
    persisted: bool = True
    epoch: int = 0
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
    """The registry of live sessions. ``sids`` is the live flag of every query, as one frozen set.

    ``epoch`` moves with every session that comes to live or ceases to, ``epoch_of`` with those of one
    workspace: a generation holds them beside the index's own counters, since a flag flips in memory first.
    """

    _by_key: dict[SessionKey, LiveSession] = attrs.field(factory=dict, init=False)
    _by_sid: dict[int, LiveSession] = attrs.field(factory=dict, init=False)
    _by_name: dict[tuple[str, str], LiveSession] = attrs.field(factory=dict, init=False)
    _by_id: dict[str, list[LiveSession]] = attrs.field(factory=dict, init=False)
    _epochs: dict[str | None, int] = attrs.field(factory=dict, init=False)
    epoch: int = attrs.field(default=0, init=False)
    sids: frozenset[int] = attrs.field(default=frozenset(), init=False)

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> list[LiveSession]:
        return list(self._by_key.values())

    def find(self, key: SessionKey) -> LiveSession | None:
        return self._by_key.get(key)

    def with_sid(self, sid: int) -> LiveSession | None:
        return self._by_sid.get(sid)

    def shadowing(self, header: SessionHeader) -> LiveSession | None:
        """The live session that answers for a stored one with this header (SPEC 16.6.2)."""
        return next((one for one in self._by_id.get(header.id, ()) if compatible(one.header, header)), None)

    def epoch_of(self, cwd: str | None) -> int:
        """When a session of this workspace last came to live or ceased to."""
        return self._epochs.get(cwd, 0)

    def owned(self, session_id: str, owner: Owner) -> LiveSession | None:
        """The session that this connection attached under this id."""
        return self._by_name.get((owner.connection_id, session_id))

    def of_token(self, session_id: str, token_id: str) -> list[LiveSession]:
        """Live sessions of a token, on whatever connection, with this id."""
        return [session for session in self._by_id.get(session_id, ()) if session.owner.token_id == token_id]

    def of_connection(self, connection_id: str) -> list[LiveSession]:
        return [session for session in self._by_key.values() if session.owner.connection_id == connection_id]

    def add(self, session: LiveSession) -> None:
        self._by_key[session.key] = session
        self._by_sid[session.sid] = session
        self._by_name[session.owner.connection_id, session.key.id] = session
        self._by_id.setdefault(session.key.id, []).append(session)
        self._flipped(session)
        session.epoch = self.epoch

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
            same = self._by_id[session.key.id]
            same.remove(session)
            if not same:
                del self._by_id[session.key.id]
            self._flipped(session)

    def _flipped(self, session: LiveSession) -> None:
        self.sids = frozenset(self._by_sid)
        self.epoch += 1
        self._epochs[session.header.cwd] = self.epoch
