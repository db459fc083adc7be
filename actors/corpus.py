"""The logical corpus: which sessions there are for a caller, and what stands in one of them (SPEC 4, 16.6).

Sources in order of rank: live sessions, the journal, the log readers, mounted providers. The index holds a
row for every session of all of them that was seen; mounted providers are asked themselves as well, each
time, since their listing may have moved (SPEC 4.1). What is asked about by id is looked up by id.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import attrs

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError
from ..protocol.event import Event
from ..protocol.filters import IdClause, ParentClause, SessionClause
from ..protocol.header import compatible
from ..protocol.outward import possible_ids
from ..protocol.signal import Signal
from ..storage.index.door import IndexReader
from ..storage.journal import PUBLISHED
from .circle import Circle, Entry, Shown
from .gathering import Gathering
from .live import LiveSession, LiveStore
from .logs import LogReading
from .mounted import BUILT_IN, Mounted, Told, inspect_with
from .recent import Recent
from .storage import StorageActor
from .visibility import Visibility

POINT_IDS: Final = 8
"""So many ids are looked up in the loop, some 30 us each; more go to a reader's thread (0.3 ms)."""


@attrs.define(eq=False)
class Corpus:
    """Answers for the pool and the search actor; of its own it holds only what it looked up lately."""

    storage: StorageActor
    live: LiveStore
    mounted: Mounted
    visibility: Visibility
    logs: LogReading
    gathering: Gathering = attrs.field(init=False, repr=False)
    _recent: Recent[list[Entry]] = attrs.field(factory=Recent, init=False, repr=False)
    _shown: Recent[Shown] = attrs.field(factory=Recent, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.gathering = Gathering(self.live, self.mounted)

    # -- who there is ------------------------------------------------------------------------------

    async def entries(self, caller: Caller, clauses: Sequence[SessionClause], signal: Signal) -> list[Shown]:
        """Every session in reach that matches, also one that cannot be read (SPEC 4.3, 5.5).

        Order: createdAt descending, then id. Names are unique inside the whole reach, filters or not.
        Raises: QueryError, in strict mode: PERSISTENCE_FAILED, SOURCE_CONFLICT.
        """
        told = await self.listed(signal)
        ids = _named_ids(clauses)

        def select(index: IndexReader) -> list[Shown]:
            around: AbstractSet[str] | None = None
            if clauses and not told.headers and not told.failures:
                around = self._matching_ids(index, caller, clauses)
            return self.gathering.circle(index, caller, around, told).select(clauses)

        if ids is None:
            found = await self.storage.read(lambda reader: select(reader.index))
        else:
            found = (await self._circle_of(caller, ids, told)).select(clauses)
        if self.mounted.strict and any(shown.conflicted for shown in found):
            raise QueryError(Code.SOURCE_CONFLICT, "two sources tell one id with incompatible headers")
        return found

    async def around(self, caller: Caller, ids: Iterable[str], signal: Signal) -> tuple[Circle, Told]:
        """The circle of the sessions that some outward ids may name, as listed now.

        Returns: the circle, and the listing it was made with, for those that it does not hold.
        """
        bare = frozenset(one for outward in ids for one in possible_ids(outward))
        told = await self.listed(signal)
        return await self._circle_of(caller, bare, told), told

    async def known(self, caller: Caller, ids: Iterable[str]) -> Circle:
        """As ``around``, by what the index knows: no provider is asked."""
        await self.visibility.follow()
        bare = frozenset(one for outward in ids for one in possible_ids(outward))
        return await self._circle_of(caller, bare, None)

    async def require(self, caller: Caller, outward: str, signal: Signal) -> Shown:
        """The one session in the caller's reach that ``outward`` names, its own included (SPEC 4.4).

        For a live one no store is asked. One that cannot be read is found as well: its error is told by
        whoever loads it.
        Raises: QueryError PERSISTENCE_FAILED when a provider that might hold it cannot be asked (SPEC 4.5:
            a failure is never reported as absence), else SESSION_NOT_FOUND.
        """
        circle = await self.known(caller, (outward,))
        entry = circle.resolve(outward)
        if self.mounted.names and (entry is None or entry.live is None):
            circle, told = await self.around(caller, (outward,), signal)
            entry = circle.resolve(outward)
            if entry is None:
                told.raise_failure()
        if entry is None:
            raise QueryError(Code.SESSION_NOT_FOUND)
        return circle.show(entry)

    def shown_nowait(self, caller: Caller, outward: str) -> Shown | None:
        """The session that ``require`` finds, without waiting; None: nothing is said, ask ``require``.

        What is found is kept as in ``_circle_of``: remembered, it costs 2 us instead of 20.
        """
        if self.mounted.names or not self.visibility.is_followed:
            return None
        version = self._version()
        shown = self._shown.get(version, (caller, outward))
        if shown is None:
            circle = self.gathering.named(caller, self._known(caller, frozenset(possible_ids(outward))))
            entry = circle.find(outward)
            if entry is None:
                return None
            shown = circle.show(entry)
            self._shown.keep(version, (caller, outward), shown)
        return shown

    def _version(self) -> Hashable:
        """Moves with everything that what is kept comes from, while no provider is mounted."""
        return self.storage.index_version, self.live.epoch, self.mounted.epoch

    def _known(self, caller: Caller, ids: frozenset[str]) -> list[Entry]:
        """The sessions around a few ids by what the index knows, remembered; no provider is mounted."""
        version = self._version()
        entries = self._recent.get(version, (caller, ids))
        if entries is None:
            entries = self.storage.point(
                lambda reader: self.gathering.around(reader.index, caller, ids, None)
            )
            self._recent.keep(version, (caller, ids), entries)
        return entries

    async def _circle_of(self, caller: Caller, ids: frozenset[str], told: Told | None) -> Circle:
        """As ``circle``, where the ids say how much work it is; a few of them are found in the loop.

        What is found is kept while no write to the index, no session and no mount has come or gone.
        """
        if len(ids) > POINT_IDS:
            return await self.storage.read(
                lambda reader: self.gathering.circle(reader.index, caller, ids, told)
            )
        if self.mounted.names:  # what a provider lists now has no version
            return self.storage.point(lambda reader: self.gathering.circle(reader.index, caller, ids, told))
        return self.gathering.named(caller, self._known(caller, ids))

    def _matching_ids(self, index: IndexReader, caller: Caller, clauses: Sequence[SessionClause]) -> set[str]:
        """Bare ids of all sessions that may match; whether they do is judged by what is shown of them."""
        narrow = [clause for clause in clauses if not isinstance(clause, ParentClause)]
        reach = self.gathering.reach(caller)
        rows = index.unread(reach)
        for clause in clauses:
            if isinstance(clause, ParentClause) and None not in clause.values:
                bare = {one for value in clause.values if value for one in possible_ids(value)}
                return {row.key.id for row in index.with_parents(bare)}
        return {row.key.id for row in (*rows, *index.sessions(reach, narrow))}

    async def listed(self, signal: Signal) -> Told:
        """What mounted providers list now; the index shows their rows accordingly.

        Raises: QueryError PERSISTENCE_FAILED in strict mode.
        """
        await self.visibility.follow()
        return await self.mounted.listed(signal) if self.mounted.names else Told()

    # -- what stands in one ------------------------------------------------------------------------

    async def events(self, entry: Entry, signal: Signal) -> Sequence[Event]:
        """The whole log of a session, balanced after a crash where SPEC 16.6.6 says so.

        A session that came to live while it was read is answered from its owner's log (SPEC 4.4.4).
        Raises: QueryError: the code of a quarantined session; CORRUPT_SESSION, PERSISTENCE_FAILED.
        """
        if entry.live is not None:
            return await self.logs.live(entry.live)
        try:
            found = await self._stored_events(entry, signal)
        except QueryError:
            if self._late_owner(entry) is None:
                raise
            found = ()
        late = self._late_owner(entry)
        return found if late is None else await self.logs.live(late)

    def _late_owner(self, entry: Entry) -> LiveSession | None:
        """The live session that answers for a stored one; of the journal's, only the very same."""
        if entry.key.source == PUBLISHED:
            return self.live.find(entry.key)
        return self.live.shadowing(entry.header)

    async def _stored_events(self, entry: Entry, signal: Signal) -> Sequence[Event]:
        """The log from the best source that can tell it (SPEC 16.6.3). Raises: why the first could not."""
        failure: QueryError | None = None
        for source in (entry.provider, *entry.fallbacks):
            try:
                return await self._provided(source, entry, signal) if source else await self._own(entry)
            except QueryError as exc:
                failure = failure or exc
            signal.raise_if_aborted()
        assert failure is not None
        raise failure

    async def _own(self, entry: Entry) -> Sequence[Event]:
        """From the journal or a reader; from a lower row of the same session when the log is gone or bad."""
        assert entry.stored is not None, "what no provider tells has a row"
        sid = entry.stored.sid
        try:
            return await self.logs.stored(entry.stored)
        except QueryError as failure:
            for row in self.storage.point(lambda reader: reader.index.fallbacks(sid)):
                if row.sid != sid and row.key.source in BUILT_IN and row.state.error is None:
                    return await self.logs.stored(row)
            raise failure

    async def _provided(self, name: str, entry: Entry, signal: Signal) -> Sequence[Event]:
        binding = self.mounted.binding(name)
        if binding is None:
            raise QueryError(Code.SESSION_NOT_FOUND)
        inspected = await inspect_with(binding.provider, entry.header, signal)
        if not compatible(inspected.header, entry.header):
            raise QueryError(Code.SOURCE_CONFLICT, "listed and inspected headers differ")
        return inspected.events


def _named_ids(clauses: Sequence[SessionClause]) -> frozenset[str] | None:
    """The bare ids that the first id clause may mean; None without one."""
    for clause in clauses:
        if isinstance(clause, IdClause):
            return frozenset(bare for value in clause.values for bare in possible_ids(value))
    return None
