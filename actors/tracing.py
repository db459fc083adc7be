"""Event traces without reading the log each time: relations are folded once and kept (SPEC 14 L33).

A log costs some 10 us an event to read and under one to fold, so it is the reading that is saved. A live
session's relations grow with it, by the events that are new. A stored session's are kept for its present
state in the index and for one question more: whether its view ends in closers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

import attrs
import trio

from ..protocol.errors import Code, QueryError
from ..protocol.records import EventTrace
from ..protocol.signal import Signal
from ..protocol.traces import Relations, event_place, trace_event
from ..storage.index.door import StoredSession
from ..storage.journal import PUBLISHED
from .circle import Shown
from .corpus import Corpus
from .live import LiveSession
from .logs import DSH
from .pool import Pool

WEIGHT_MAX: Final = 200_000
"""Of all kept relations together, in events of some 35 bytes each."""


@attrs.define(eq=False)
class _Kept:
    """One log's relations, and who may extend them now. ``counted``: the weight they are kept with."""

    relations: Relations = attrs.field(factory=Relations)
    lock: trio.Lock = attrs.field(factory=trio.Lock)
    counted: int = 0


@attrs.define(eq=False)
class Tracing:
    """Answers traces for the pool. Touched on the loop only; long folds run in a thread."""

    corpus: Corpus
    pool: Pool
    _kept: OrderedDict[Hashable, _Kept] = attrs.field(factory=OrderedDict, init=False, repr=False)
    weight: int = attrs.field(default=0, init=False)
    """Of what is kept now, see ``WEIGHT_MAX``."""

    async def trace(self, shown: Shown, seq: object, signal: Signal) -> EventTrace:
        """The relations of one event (SPEC 7.2).

        Raises: QueryError EVENT_NOT_FOUND before the log is folded, INVALID_SURFACE; as ``Corpus.events``.
        """
        entry, row = shown.entry, shown.entry.stored
        if entry.live is not None:
            return await self._of_live(shown, entry.live, seq)
        if entry.provider is not None or row is None or row.state.error is not None or row.key.source == DSH:
            # a provider's own affair, or a parsed log that lies in memory: folding it is the least part
            events = await self.corpus.events(entry, signal)
            return await self.pool.over_log(len(events), lambda: trace_event(shown.header, events, seq))
        return await self._of_stored(shown, row, seq, signal)

    async def _of_live(self, shown: Shown, session: LiveSession, seq: object) -> EventTrace:
        length = session.length
        event_place(seq, length)
        key = ("live", session.sid, session.epoch)
        kept = self._find(key) or _Kept()
        async with kept.lock:
            known = len(kept.relations)
            if known < length:
                events = await self.corpus.logs.live(session, known)
                try:
                    await self.pool.over_log(len(events), lambda: kept.relations.extend(events))
                finally:
                    self._keep(key, kept)
            return kept.relations.trace(shown.header, seq)

    async def _of_stored(self, shown: Shown, row: StoredSession, seq: object, signal: Signal) -> EventTrace:
        logs = self.corpus.logs
        repaired = row.key.source == PUBLISHED and logs.is_repaired(row)
        key = ("stored", row.sid, row.generation, repaired)
        kept = self._find(key)
        if kept is not None:
            return kept.relations.trace(shown.header, seq)
        kept = _Kept()
        skeleton = await self.corpus.storage.read(lambda reader: reader.index.skeleton(row.sid))
        if len(skeleton) == row.state.length and not logs.shows_closers(row):
            event_place(seq, len(skeleton))
            await self.pool.over_log(len(skeleton), lambda: kept.relations.extend_skeleton(skeleton))
        else:
            events = await self.corpus.events(shown.entry, signal)
            if (place := event_place(seq, len(events))) != events[place].seq:
                raise QueryError(Code.EVENT_NOT_FOUND)
            await self.pool.over_log(len(events), lambda: kept.relations.extend(events))
        self._keep(key, kept)
        return kept.relations.trace(shown.header, seq)

    def _find(self, key: Hashable) -> _Kept | None:
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def _keep(self, key: Hashable, kept: _Kept) -> None:
        """Keep relations as they are now, and let the least used go."""
        before = self._kept.get(key)
        self.weight -= 0 if before is None else before.counted
        kept.counted = kept.relations.weight
        self._kept[key] = kept
        self._kept.move_to_end(key)
        self.weight += kept.counted
        while self.weight > WEIGHT_MAX and self._kept:
            _, dropped = self._kept.popitem(last=False)
            self.weight -= dropped.counted
