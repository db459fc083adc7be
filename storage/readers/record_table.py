"""The last records of a log by their native ids, in bounded space: what links and repeats are found by."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise, starmap
from typing import Final, NamedTuple

import msgspec

RECENT_MAX: Final = 512
"""Links reach back a few records; a farther one is left out."""


KEY_BYTES: Final = 6
"""Of a hash: of a thousand ids no two are alike, but for one log in a billion."""
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


class RecordRows(msgspec.Struct, array_like=True):
    """A table for a mapper's state, by columns: a number that hardly changes takes no room compressed.

    ``keys`` and ``digests`` one behind the other; of ``firsts`` the gaps, ``anchors`` from ``firsts`` on.
    Of 36 real logs a record takes 11.5 bytes; by rows it takes 16.6.
    """

    keys: bytes = b""
    digests: bytes = b""
    lanes: list[int] = []
    firsts: list[int] = []
    anchors: list[int] = []
    nodes: list[int] = []


class RecordTable:
    """A map from ids to entries that forgets the oldest beyond ``limit``. Ids are kept as digests.

    Raises: ValueError: the columns are not of one length.
    """

    def __init__(self, rows: RecordRows, limit: int = RECENT_MAX) -> None:
        self._limit = limit
        firsts = list(accumulate(rows.firsts))
        anchors = map(operator.add, firsts, rows.anchors)
        entries = zip(rows.lanes, firsts, anchors, rows.nodes, _numbers(rows.digests), strict=True)
        self._entries = dict(zip(_keys(rows.keys), starmap(Entry, entries), strict=True))

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

    def rows(self) -> RecordRows:
        entries = self._entries.values()
        firsts = [entry.first for entry in entries]
        return RecordRows(
            b"".join(self._entries),
            b"".join(entry.digest.to_bytes(4, "big") for entry in entries),
            [entry.lane for entry in entries],
            _gaps(firsts),
            [entry.anchor - entry.first for entry in entries],
            [entry.nodes for entry in entries],
        )


class CallRows(msgspec.Struct, array_like=True):
    """A table of calls for a mapper's state: keys one behind the other, and gaps between the seqs."""

    keys: bytes = b""
    seqs: list[int] = []


class CallTable:
    """The seqs of the last tool calls by (session of the log, call id), in bounded space.

    Raises: ValueError: the columns are not of one length.
    """

    def __init__(self, rows: CallRows, limit: int = RECENT_MAX) -> None:
        self._limit = limit
        self._calls = dict(zip(_keys(rows.keys), accumulate(rows.seqs), strict=True))

    def get(self, lane: int, call_id: str) -> int | None:
        return self._calls.get(_key(f"{lane}:{call_id}"))

    def put(self, lane: int, call_id: str, seq: int) -> None:
        key = _key(f"{lane}:{call_id}")
        self._calls.pop(key, None)
        self._calls[key] = seq
        if len(self._calls) > self._limit:
            del self._calls[next(iter(self._calls))]

    def rows(self) -> CallRows:
        return CallRows(b"".join(self._calls), _gaps(self._calls.values()))


def _keys(joined: bytes) -> Iterator[bytes]:
    return (joined[at : at + KEY_BYTES] for at in range(0, len(joined), KEY_BYTES))


def _numbers(joined: bytes) -> Iterator[int]:
    return (int.from_bytes(joined[at : at + 4], "big") for at in range(0, len(joined), 4))


def _gaps(numbers: Iterable[int]) -> list[int]:
    found = [0, *numbers]
    return [after - before for before, after in pairwise(found)]


def _key(text: str) -> bytes:
    return _short_key(text) if len(text) <= SHORT_ID else _digest(text)


@lru_cache(maxsize=256)
def _short_key(text: str) -> bytes:
    """A record's id comes four times: looked for, put, and twice as the parent of the next one."""
    return _digest(text)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=KEY_BYTES).digest()
