"""The logical corpus: which sessions there are for a caller, and what stands in one of them (SPEC 4, 16.6).

Sources in order of rank: live sessions, the journal, the log readers, mounted providers. The index holds a
row for every session of all of them that was seen; mounted providers are asked themselves as well, each
time, since their listing may have moved (SPEC 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError
from ..protocol.event import Event
from ..protocol.filters import SessionClause
from ..protocol.header import SessionHeader
from ..protocol.outward import SessionKey, named, outward_ids, possible_ids
from ..protocol.predicates import session_predicate
from ..protocol.records import SessionRecord
from ..protocol.signal import Signal
from ..protocol.tools.authority import reach_of
from ..storage.index.door import Reach, StoredSession
from ..storage.journal import PUBLISHED
from .live import LiveSession, LiveStore
from .logs import LogReading
from .mounted import Mounted
from .storage import StorageActor


@attrs.frozen(kw_only=True)
class Entry:
    """One session as found: its key and header, and where its log can be had.

    ``stored`` is its row in the index; None for a session that only a mounted provider has told of.
    ``provider`` names the mounted provider that answers for it.
    """

    key: SessionKey
    header: SessionHeader
    persisted: bool
    live: LiveSession | None = None
    stored: StoredSession | None = None
    provider: str | None = None
    conflicted: bool = False

    def record(self, outward: str) -> SessionRecord:
        """The session's record under its outward id."""
        return SessionRecord(
            header=attrs.evolve(self.header, id=outward),
            live=self.live is not None,
            persisted=self.persisted,
            source=self.key.source,
            conflicted=self.conflicted,
        )


@attrs.define(eq=False)
class Corpus:
    """Answers for the pool and the search actor; holds no state of its own."""

    storage: StorageActor
    live: LiveStore
    mounted: Mounted
    logs: LogReading

    def reach(self, caller: Caller, *, own: StoredSession | None = None) -> Reach:
        """What the caller may see, for the index; ``own`` is the caller's own session, never a hit."""
        return Reach(
            workspaces=reach_of(caller),
            live=self.live.sids,
            excluded=frozenset() if own is None else frozenset((own.sid,)),
        )

    async def entries(
        self, caller: Caller, clauses: Sequence[SessionClause], signal: Signal
    ) -> list[tuple[Entry, str]]:
        """Every readable session in reach that matches, with its outward id (SPEC 4.3, 5.5).

        Order: createdAt descending, then id. Outward ids are unique inside the whole reach, filters or not.
        """
        told = await self.mounted.listed(signal)
        reach = self.reach(caller)
        stored = await self.storage.read(lambda reader: reader.index.sessions(reach))
        found = self._merged(stored, told, reach_of(caller))
        names = outward_ids(entry.key for entry in found)
        listed = [(entry, names[entry.key]) for entry in found]
        if clauses:
            matches = session_predicate(tuple(clauses))
            listed = [(entry, name) for entry, name in listed if matches(entry.record(name))]
        return sorted(listed, key=lambda item: (-item[0].header.created_at, item[1]))

    async def resolve(self, caller: Caller, outward: str, signal: Signal) -> Entry | None:
        """The one session in the caller's reach that ``outward`` names, its own session included.

        A session that is unreadable is found as well: its error is told by whoever loads it.
        """
        rows = self.storage.point(
            lambda reader: [row for bare in possible_ids(outward) for row in reader.index.with_id(bare)]
        )
        own = self._own(caller, outward, rows)
        if own is not None:
            return own
        workspaces = reach_of(caller)
        inside = [row for row in rows if workspaces is None or row.state.header.cwd in workspaces]
        entries = [self._entry(row) for row in inside if row.key.source not in self.mounted.names]
        live = [entry for entry in entries if entry.live is not None]
        if not (len(live) == 1 and live[0].key.id == outward) and self.mounted.names:
            told = await self.mounted.listed(signal, only=frozenset(possible_ids(outward)))
            entries = self._merged(inside, told, workspaces)
        by_key = {entry.key: entry for entry in entries}
        key = named(outward, by_key)
        return None if key is None else by_key[key]

    async def require(self, caller: Caller, outward: str, signal: Signal) -> Entry:
        """As ``resolve``. Raises: QueryError PERSISTENCE_FAILED when a provider that might hold it cannot be
        asked (SPEC 4.5: a failure is never reported as absence), else SESSION_NOT_FOUND."""
        entry = await self.resolve(caller, outward, signal)
        if entry is None:
            self.mounted.raise_failure()
            raise QueryError(Code.SESSION_NOT_FOUND)
        return entry

    async def events(self, entry: Entry, signal: Signal) -> Sequence[Event]:
        """The whole log of a session, balanced after a crash where SPEC 16.6.6 says so.

        Raises: QueryError: the code of a quarantined session; CORRUPT_SESSION, PERSISTENCE_FAILED.
        """
        if entry.live is not None:
            return await self.logs.live(entry.live)
        if entry.provider is not None:
            return await self._inspected(entry, signal)
        assert entry.stored is not None
        return await self.logs.stored(entry.stored)

    async def _inspected(self, entry: Entry, signal: Signal) -> Sequence[Event]:
        assert entry.provider is not None
        inspected = await self.mounted.inspect(entry.provider, entry.header, signal)
        late = self._live_like(entry.header)
        return inspected if late is None else await self.logs.live(late)

    def _own(self, caller: Caller, outward: str, rows: Sequence[StoredSession]) -> Entry | None:
        header = caller.header
        if caller.kind != "agent" or header is None or header.id != outward:
            return None
        for row in rows:
            state = row.state.header
            if row.key.source == caller.source and (state.created_at, state.cwd) == (
                header.created_at,
                header.cwd,
            ):
                return self._entry(row)
        return None

    def _entry(self, row: StoredSession) -> Entry:
        return Entry(
            key=row.key,
            header=row.state.header,
            persisted=row.state.persisted,
            live=self.live.with_sid(row.sid),
            stored=row,
            provider=row.key.source if row.key.source in self.mounted.names else None,
        )

    def _live_like(self, header: SessionHeader) -> LiveSession | None:
        """A live session that shadows a stored one with this header (SPEC 16.6.2)."""
        for source in ("live", PUBLISHED):
            session = self.live.find(SessionKey(source, header.cwd or "", header.id))
            if session is not None and session.header.created_at == header.created_at:
                return session
        return None

    def _merged(
        self,
        stored: Sequence[StoredSession],
        told: Sequence[tuple[str, SessionHeader]],
        workspaces: tuple[str, ...] | None,
    ) -> list[Entry]:
        """Rows of the index, overlaid by what mounted providers tell now (SPEC 4.2, 16.6.2-16.6.3)."""
        rows = {row.key: row for row in stored if row.key.source not in self.mounted.names}
        known = {_identity(row.state.header): row.key for row in rows.values()}
        entries = {key: self._entry(row) for key, row in rows.items()}
        by_provider = {row.key: row for row in stored if row.key.source in self.mounted.names}
        for provider, header in told:
            if workspaces is not None and header.cwd not in workspaces:
                continue
            better = known.get(_identity(header))
            if better is not None:
                entries[better] = attrs.evolve(entries[better], persisted=True)
                continue
            key = SessionKey(provider, "", header.id)
            known[_identity(header)] = key
            entries[key] = Entry(
                key=key, header=header, persisted=True, stored=by_provider.get(key), provider=provider
            )
        return list(entries.values())


def _identity(header: SessionHeader) -> tuple[str, str | None, int]:
    return header.id, header.cwd, header.created_at
