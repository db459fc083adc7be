"""Records before the first time of a log: read again with that time, once it is known.

Many logs begin with lines that carry no time (modes, titles, snapshots). Their events take the first
time that stands in the log, whether it was there at the first read or came later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from ...protocol.json_codec import decode_json, encode_json
from ...protocol.json_value import JSON
from .driver import Mapper, Record
from .seam import Refusal, SessionDelta

HEAD_MAX_BYTES: Final = 8192
"""A longer beginning without a time keeps time 0."""


class TimedMapper(Mapper, Protocol):
    """A mapper that can tell the time of a record before it maps it."""

    def time_of(self, obj: dict[str, JSON]) -> int | None: ...


Make = Callable[[bytes | None, int], TimedMapper]
"""Makes a mapper from its state (None: fresh) and the time that its first records carry."""


class _State(msgspec.Struct, array_like=True):
    inner: bytes
    head: list[bytes] | None
    head_bytes: int


class TimedHead:
    """A ``Mapper`` around another one that waits for the first time of the log."""

    def __init__(self, make: Make, state: bytes | None) -> None:
        self._make = make
        if state is None:
            self._inner = make(None, 0)
            self._head: list[bytes] | None = []
            self._head_bytes = 0
            return
        kept = _decode(state)
        self._inner = make(kept.inner, 0)
        self._head, self._head_bytes = kept.head, kept.head_bytes

    def feed(self, record: Record) -> str | None:
        if self._head is not None:
            self._wait(record)
        return self._inner.feed(record)

    def _wait(self, record: Record) -> None:
        assert self._head is not None
        time = self._inner.time_of(record.obj)
        if time is None:
            self._head_bytes += record.raw_length
            if self._head_bytes <= HEAD_MAX_BYTES:
                self._head.append(encode_json(record.obj))
            else:
                self._head = None
            return
        if self._head:
            self._inner = self._make(None, time)
            for raw in self._head:
                obj = decode_json(raw)
                assert isinstance(obj, dict)
                self._inner.feed(Record(obj, 0, len(raw)))
        self._head = None

    def take(self) -> list[SessionDelta]:
        return self._inner.take()

    def state(self) -> bytes:
        return msgspec.msgpack.encode(_State(self._inner.state(), self._head, self._head_bytes))

    def repeats(self) -> bool:
        return True

    def verdict(self) -> bool | Refusal:
        return self._inner.verdict()


def _decode(state: bytes) -> _State:
    try:
        return msgspec.msgpack.decode(state, type=_State)
    except msgspec.MsgspecError as exc:
        raise ValueError("not the state of this mapper") from exc
