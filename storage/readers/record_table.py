"""The last records of a log by their native ids, in bounded space: what links and repeats are found by."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

RECENT_MAX: Final = 512
"""Links reach back a few records; a farther one is left out."""


SHORT_ID: Final = 128
"""Longer ids are hashed each time: nothing a log holds may fill the memory of what was hashed last."""


class Entry(NamedTuple):
    """Where a record went.

    ``lane`` is the session of the log it belongs to (0 the main one). ``first`` is the seq of its first
    event. ``anchor`` is the surface node the model saw last when this record had been read, -1 for
    none. ``nodes`` counts the surface nodes it made itself. ``digest`` tells repeats from other content.
    """

    lane: int
    first: int
    anchor: int
    nodes: int
    digest: int


Row = tuple[bytes, int, int, int, int, int]


class RecordTable:
    """A map from ids to entries that forgets the oldest beyond ``limit``. Ids are kept as 8-byte digests."""

    def __init__(self, rows: list[Row], limit: int = RECENT_MAX) -> None:
        self._limit = limit
        self._entries = {row[0]: Entry(*row[1:]) for row in rows}

    def get(self, record_id: str | None, *others: RecordTable) -> Entry | None:
        """The entry of ``record_id`` here, else in one of ``others``; None if it is known nowhere."""
        if record_id is None:
            return None
        key = _key(record_id)
        entry = self._entries.get(key)
        if entry is None:
            for table in others:
                if (entry := table._entries.get(key)) is not None:
                    return entry
        return entry

    def put(self, record_id: str | None, entry: Entry) -> None:
        """Remember ``record_id``, as the youngest; an id seen before now names the later record."""
        if record_id is None:
            return
        key = _key(record_id)
        self._entries.pop(key, None)
        self._entries[key] = entry
        if len(self._entries) > self._limit:
            del self._entries[next(iter(self._entries))]

    def move_anchors(self, moved: Callable[[int], int]) -> None:
        """Let every entry of the main session point at ``moved(anchor)``."""
        for key, entry in self._entries.items():
            if entry.lane == 0 and (anchor := moved(entry.anchor)) != entry.anchor:
                self._entries[key] = entry._replace(anchor=anchor)

    def rows(self) -> list[Row]:
        return [(key, *entry) for key, entry in self._entries.items()]


class CallTable:
    """The seqs of the last tool calls by (session of the log, call id), in bounded space."""

    def __init__(self, rows: list[tuple[bytes, int]], limit: int = RECENT_MAX) -> None:
        self._limit = limit
        self._calls = dict(rows)

    def get(self, lane: int, call_id: str) -> int | None:
        return self._calls.get(_key(f"{lane}:{call_id}"))

    def put(self, lane: int, call_id: str, seq: int) -> None:
        key = _key(f"{lane}:{call_id}")
        self._calls.pop(key, None)
        self._calls[key] = seq
        if len(self._calls) > self._limit:
            del self._calls[next(iter(self._calls))]

    def rows(self) -> list[tuple[bytes, int]]:
        return list(self._calls.items())


def _key(text: str) -> bytes:
    return _short_key(text) if len(text) <= SHORT_ID else _digest(text)


@lru_cache(maxsize=256)
def _short_key(text: str) -> bytes:
    """A record's id comes four times: looked for, put, and twice as the parent of the next one."""
    return _digest(text)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
