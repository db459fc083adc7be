"""A run of message chunks, shown as one message that grows while the run is open.

A capture may end inside an answer, and its last words must be found. So the first chunk's event is the
message and holds the text of the whole run; later chunks are log-only events behind it. When a later
read brings more chunks, the message is told again from its seq on, with the same seqs and types and more
text: a delta replaces. Until the run is closed, its events are part of the mapper's state.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from ....protocol.event import Event
from ....protocol.json_codec import decode_json, encode_json
from ....protocol.json_value import JSON
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, list_of, text_block, text_of

_CHUNKS_MAX: Final = 2048
_CHARS_MAX: Final = 1 << 16
"""A longer run is cut: what is held for it stays bounded."""


class Run(msgspec.Struct):
    """An open run: its kind of update, the seq of its message, and how much it holds."""

    kind: str
    seq: int
    chunks: int = 1
    chars: int = 0
    held: bytes = b""
    """Events from ``seq`` on as JSON (native records nest to any depth), for the state alone."""

    def is_full(self) -> bool:
        return self.chunks >= _CHUNKS_MAX or self.chars >= _CHARS_MAX


class OpenRun:
    """The run of one session, if one is open. Owned by the mapper."""

    def __init__(self, log: SessionLog, run: Run | None) -> None:
        self._log = log
        self.run = run
        self._events: list[Event] = [] if run is None else _decode(run.held)

    def begin(self, kind: str, seq: int, chars: int) -> None:
        self.run, self._events = Run(kind, seq, 1, chars), []

    def close(self) -> None:
        self.run, self._events = None, []

    def continues(self, kind: str) -> bool:
        """Whether a chunk of ``kind`` belongs to the run."""
        return self.run is not None and self.run.kind == kind and not self.run.is_full()

    def extend(self, blocks: list[JSON]) -> None:
        """Add a chunk's blocks to the message. Its own log-only event is the caller's to make."""
        run, pending = self.run, self._log.pending
        assert run is not None
        if not pending or pending[0].seq > run.seq:
            pending[:0] = [event for event in self._events if not pending or event.seq < pending[0].seq]
        at = run.seq - pending[0].seq
        pending[at] = _grown(pending[at], blocks)
        run.chunks += 1
        run.chars += sum(len(text_of(dict_of(block).get("text"))) for block in blocks)

    def keep(self) -> None:
        """Remember the run's events before they are taken."""
        if self.run is not None:
            self._events = self._all()

    def saved(self) -> Run | None:
        if self.run is None:
            return None
        return msgspec.structs.replace(self.run, held=encode_json([_row(event) for event in self._all()]))

    def _all(self) -> list[Event]:
        pending = self._log.pending
        first = pending[0].seq if pending else self._log.state.next_seq
        seq = self.run.seq if self.run is not None else first
        return [e for e in self._events if e.seq < first] + [e for e in pending if e.seq >= seq]


def _grown(event: Event, blocks: list[JSON]) -> Event:
    """The message with more content; adjoining text becomes one block, as it was streamed."""
    data = {**dict_of(event.data)}
    owner = {**dict_of(data["message"])} if "message" in data else data
    content = [*owner["content"]] if isinstance(owner["content"], list) else []
    for block in blocks:
        last = dict_of(content[-1]) if content else {}
        if last.get("type") == "text" and dict_of(block).get("type") == "text":
            content[-1] = text_block(text_of(last.get("text")) + text_of(dict_of(block).get("text")))
        else:
            content.append(block)
    owner["content"] = content
    if owner is not data:
        data["message"] = owner
    return msgspec.structs.replace(event, data=data)


def _row(event: Event) -> JSON:
    op = None if event.surface_op is UNSET else event.surface_op
    sources = None if event.source_event_seqs is UNSET else event.source_event_seqs
    return [event.type, event.seq, event.time, event.data, op, sources]


def _decode(held: bytes) -> list[Event]:
    """Raises: ValueError: the rows are no events."""
    rows = decode_json(held)
    return [_event(row) for row in list_of(rows)]


def _event(row: JSON) -> Event:
    kind, seq, time, data, op, sources = list_of(row)
    if not (isinstance(kind, str) and isinstance(seq, int) and isinstance(time, int)):
        raise ValueError("damaged run")
    return Event(
        type=kind,
        seq=seq,
        time=time,
        data=data,
        surface_op=UNSET if op is None else op,
        source_event_seqs=UNSET if sources is None else sources,
    )
