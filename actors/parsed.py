"""Parsed foreign sessions, kept for a while: an exact read should not parse a whole log each time.

Bounded by bytes, least recently used first. One load at a time for a log; later askers share it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import attrs
import trio

from ..protocol.event import Event

Key: TypeAlias = "tuple[int, str]"
BYTES_PER_LOG_BYTE = 6
"""A parsed log's memory as a multiple of its bytes: Python objects of JSON took 4 to 7 times (sampled)."""


@attrs.frozen
class ParsedLog:
    """One session's events and what they are taken to cost in memory, in bytes."""

    events: Sequence[Event]
    cost: int


@attrs.define(eq=False)
class ParsedCache:
    """Keyed by (sid, revision): a changed log is another key, and the old one falls out."""

    max_bytes: int
    _kept: OrderedDict[Key, ParsedLog] = attrs.field(factory=OrderedDict, init=False, repr=False)
    _loading: dict[Key, trio.Lock] = attrs.field(factory=dict, init=False, repr=False)
    bytes: int = attrs.field(default=0, init=False)
    hits: int = attrs.field(default=0, init=False)
    misses: int = attrs.field(default=0, init=False)

    async def get(self, key: Key, load: Callable[[], Awaitable[ParsedLog]]) -> Sequence[Event]:
        """The events under ``key``, loaded once whoever asks. A failed load is not kept."""
        found = self._find(key)
        if found is not None:
            return found.events
        lock = self._loading.setdefault(key, trio.Lock())
        try:
            async with lock:
                found = self._find(key)
                if found is None:
                    found = await load()
                    self.misses += 1
                    self._keep(key, found)
                return found.events
        finally:
            if not lock.locked():
                self._loading.pop(key, None)

    def clear(self) -> None:
        self._kept.clear()
        self.bytes = 0

    def _find(self, key: Key) -> ParsedLog | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            self.hits += 1
        return found

    def _keep(self, key: Key, log: ParsedLog) -> None:
        for old in [other for other in self._kept if other[0] == key[0]]:
            self.bytes -= self._kept.pop(old).cost
        if log.cost > self.max_bytes:
            return
        self._kept[key] = log
        self.bytes += log.cost
        while self.bytes > self.max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self.bytes -= dropped.cost
