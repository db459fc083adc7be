"""Putting together who there is for one caller: rows of the index and what providers tell, as one circle.

Sources in order of rank: live sessions, the journal, the log readers, mounted providers (SPEC 16.6.3). What
answers for a session of several sources is decided here, the same way as in ``storage.index.visibility``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import attrs

from ..protocol.collected import Caller
from ..protocol.header import SessionHeader, compatible
from ..protocol.outward import SessionKey, possible_ids
from ..protocol.tools.authority import own_id, reach_of
from ..storage.index.door import IndexReader, Reach, StoredSession
from .circle import Circle, Entry, ids_around
from .live import LiveStore
from .mounted import LIVE, Mounted, Told
from .reconcile import is_stored_elsewhere


@attrs.define(eq=False)
class Gathering:
    """Made once; asked in whatever thread holds a snapshot of the index."""

    live: LiveStore
    mounted: Mounted

    def reach(self, caller: Caller, *, own: StoredSession | None = None) -> Reach:
        """What the caller may see, for the index; ``own`` is the caller's own session, never a hit."""
        return Reach(
            workspaces=reach_of(caller),
            live=self.live.sids,
            excluded=frozenset() if own is None else frozenset((own.sid,)),
        )

    def circle(
        self, index: IndexReader, caller: Caller, ids: Iterable[str] | None, told: Told | None
    ) -> Circle:
        """The sessions in reach with some bare ids, and those that may be their parents. In any thread.

        Args: ids: None for every session in reach. told: what providers list now; None: what the index
            knows of them.
        """
        if ids is None:
            reach = self.reach(caller)
            rows = index.sessions(reach) + index.unread(reach)
            headers = () if told is None else told.headers
            return self.named(caller, self._merged(index, caller, rows, headers, told))
        return self.named(caller, self.around(index, caller, frozenset(ids), told))

    def around(
        self, index: IndexReader, caller: Caller, ids: AbstractSet[str], told: Told | None
    ) -> list[Entry]:
        """The sessions with some ids, and those that may be their parents."""
        entries = self._with_ids(index, caller, ids, told)
        parents = ids_around(entries) - ids
        return self._with_ids(index, caller, ids | parents, told) if parents else entries

    def named(self, caller: Caller, entries: Sequence[Entry]) -> Circle:
        own = next((e.key for e in entries if _is_own(caller, e.key, e.header)), None)
        name = own_id(caller)
        return Circle(
            entries,
            confined=reach_of(caller) is not None,
            own=own,
            called={} if own is None or name is None else {own: name},
        )

    def _with_ids(
        self, index: IndexReader, caller: Caller, ids: AbstractSet[str], told: Told | None
    ) -> list[Entry]:
        headers = () if told is None else tuple(one for one in told.headers if one[1].id in ids)
        return self._merged(index, caller, index.with_ids(ids, _workspaces(caller)), headers, told)

    def _merged(
        self,
        index: IndexReader,
        caller: Caller,
        rows: Sequence[StoredSession],
        headers: Sequence[tuple[str, SessionHeader]],
        told: Told | None,
    ) -> list[Entry]:
        """Rows of the index, overlaid by what mounted providers tell now (SPEC 4.2, 16.6.2-16.6.3)."""
        reach = self.reach(caller)
        rows = sorted(
            (row for row in rows if reach.holds(row) or _is_own(caller, row.key, row.state.header)),
            key=lambda row: (row.state.rank, row.key.source, row.key.place),
        )
        asked = frozenset() if told is None else self.mounted.names - told.failures.keys()
        entries = [self._entry(index, row) for row in rows if row.key.source not in asked]
        of_providers = {row.key: row for row in rows if row.key.source in asked}
        by_identity: dict[tuple[str, str | None, int], list[int]] = {}
        for at, entry in enumerate(entries):
            by_identity.setdefault(entry.identity, []).append(at)
        for provider, header in headers:
            if reach.workspaces is not None and header.cwd not in reach.workspaces:
                continue
            same = by_identity.setdefault((header.id, header.cwd, header.created_at), [])
            better = next((at for at in same if _covers(entries[at], header)), None)
            key = SessionKey(provider, "", header.id)
            told_of = Entry(
                key=key, header=header, persisted=True, stored=of_providers.get(key), provider=provider
            )
            if better is None:
                same.append(len(entries))
                entries.append(told_of)
            elif entries[better].is_readable:
                known = entries[better]
                entries[better] = attrs.evolve(
                    known,
                    persisted=True,
                    fallbacks=(*known.fallbacks, provider),
                    conflicted=known.conflicted or not compatible(known.header, header),
                )
            else:
                entries[better] = told_of  # readable before unreadable, whatever the rank
        return entries

    def _entry(self, index: IndexReader, row: StoredSession) -> Entry:
        live = self.live.with_sid(row.sid)
        persisted = row.state.persisted
        if live is not None and row.key.source == LIVE:
            persisted = is_stored_elsewhere(index, live, self.mounted.names)
        return Entry(
            key=row.key,
            header=row.state.header,
            persisted=persisted,
            live=live,
            stored=row,
            provider=row.key.source if row.key.source in self.mounted.names else None,
        )


def _workspaces(caller: Caller) -> tuple[str | None, ...] | None:
    """Where a caller's sessions can be: its reach, and where its own is; None for everywhere."""
    reach = reach_of(caller)
    if reach is None or caller.kind != "agent" or caller.header is None:
        return reach
    return (*reach, caller.header.cwd)


def _is_own(caller: Caller, key: SessionKey, header: SessionHeader) -> bool:
    """Whether a session is the calling agent's, by what the runtime said of it and never by its id alone."""
    mine = caller.header
    if caller.kind != "agent" or mine is None or key.source != caller.source:
        return False
    same = (header.created_at, header.cwd) == (mine.created_at, mine.cwd)
    return same and key.id in possible_ids(mine.id)


def _covers(entry: Entry, header: SessionHeader) -> bool:
    """Whether an entry answers for a stored session of the same identity (SPEC 16.6.2-16.6.3).

    The same choice as ``storage.index.visibility``.
    """
    return entry.key.source != LIVE or compatible(entry.header, header)
