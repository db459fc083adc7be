"""A session being published, as its runtime keeps it: what is acknowledged, what is not, what to send next.

Events are checked and encoded when they are handed over, so later changes by the caller have no effect,
sizes are known, and sending again costs nothing. One batch is under way at a time; after a reconnect the
unacknowledged events are sent again from the last acknowledged seq: the server skips what it already has
and refuses what differs (SPEC 16.13).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, cast

import attrs
import msgspec

from ..json_codec import encode_json, lossless_defect
from ..json_value import JSON
from .client_errors import ClientError, LocalProtocolError, PublicationFull
from .codec import Encoding
from .messages import Append, Attach
from .plain import encodable

BATCH_EVENTS: Final = 512
BATCH_BYTES: Final = 1024 * 1024
QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024

State: TypeAlias = Literal["attaching", "live", "failed", "detached"]
Acknowledged: TypeAlias = Callable[[ClientError | None], None]
"""Called once: with None when the events are committed, or with why they never will be."""

Event: TypeAlias = Mapping[str, JSON]


@attrs.define(eq=False)
class Publication:
    """Owner: one client core. ``next_seq`` is the seq the next event handed over will get.

    ``acknowledged_seq``: events below it are committed. Both are -1 until the first ``attached``.
    """

    header: JSON
    encoding: Encoding
    event_bytes_max: int
    queued_bytes_max: int = QUEUED_BYTES_MAX
    state: State = attrs.field(default="attaching", init=False)
    session_id: str = attrs.field(default="", init=False)
    acknowledged_seq: int = attrs.field(default=-1, init=False)
    queued_bytes: int = attrs.field(default=0, init=False)
    error: ClientError | None = attrs.field(default=None, init=False)
    attach_id: int | None = attrs.field(default=None, init=False)
    append_id: int | None = attrs.field(default=None, init=False)
    _seed: list[msgspec.Raw] | None = attrs.field(default=None, init=False)
    _queue: deque[msgspec.Raw] = attrs.field(factory=deque, init=False, repr=False)
    _waiters: deque[tuple[int, Acknowledged]] = attrs.field(factory=deque, init=False, repr=False)
    _taken: int = attrs.field(default=0, init=False)

    @property
    def next_seq(self) -> int:
        return self.acknowledged_seq + len(self._queue) if self.acknowledged_seq >= 0 else -1

    def seed(self, events: Iterable[Event]) -> None:
        """Set the seed of the first attach. Raises: LocalProtocolError."""
        self._seed = [self._encoded(event) for event in events]

    def put(self, events: Sequence[Event], acknowledged: Acknowledged | None = None) -> None:
        """Take events over. Raises: LocalProtocolError, PublicationFull (nothing taken), or the error that
        ended this publication.
        """
        if self.error is not None:
            raise self.error
        encoded = [self._encoded(event) for event in events]
        size = sum(_size(raw) for raw in encoded)
        if self.queued_bytes and self.queued_bytes + size > self.queued_bytes_max:
            raise PublicationFull(f"{self.queued_bytes} bytes are waiting to be sent")
        self._queue.extend(encoded)
        self.queued_bytes += size
        if acknowledged is not None:
            self.wait_all(acknowledged)  # nothing may be handed over, and everything be committed

    def wait_all(self, acknowledged: Acknowledged) -> None:
        """Tell when everything handed over so far is committed (or never will be)."""
        if self.error is not None:
            acknowledged(self.error)
        elif not self._queue and self.state == "live":
            acknowledged(None)
        else:
            self._wait(acknowledged)

    def _wait(self, acknowledged: Acknowledged) -> None:
        self._waiters.append((self._taken + len(self._queue), acknowledged))

    # ------------------------------------------------------------ the core's side

    def attach_message(self, request_id: int) -> Attach:
        """The seed goes with the first attach only; afterwards the server has it."""
        self.attach_id, self.append_id = request_id, None
        seed = self._seed if self.acknowledged_seq < 0 else None
        return Attach(id=request_id, session=self.header, events=cast("list[JSON] | None", seed))

    def attached(self, session_id: str, next_seq: int) -> None:
        """The server holds ``next_seq`` events.

        Fails the publication if they cannot be ours: fewer than were acknowledged, or more than were sent.
        """
        self.attach_id = None
        if self.acknowledged_seq < 0:
            self.acknowledged_seq = next_seq
        elif not self.acknowledged_seq <= next_seq <= self.next_seq:
            self.fail(
                LocalProtocolError(
                    f"the server has {next_seq} events, not {self.acknowledged_seq} to {self.next_seq}"
                )
            )
            return
        self.session_id, self.state, self._seed = session_id, "live", None
        self._tell()

    def append_message(self, request_id: int) -> Append | None:
        """The next batch, if the session is live, none is under way and there is something to send."""
        if self.state != "live" or self.append_id is not None or not self._queue:
            return None
        batch: list[msgspec.Raw] = []
        size = 0
        for raw in self._queue:
            if batch and (len(batch) == BATCH_EVENTS or size + _size(raw) > BATCH_BYTES):
                break
            batch.append(raw)
            size += _size(raw)
        self.append_id = request_id
        return Append(
            id=request_id,
            session_id=self.session_id,
            from_seq=self.acknowledged_seq,
            events=cast("list[JSON]", batch),
        )

    def appended(self, through_seq: int) -> None:
        """Events up to ``through_seq`` are committed."""
        self.append_id = None
        while self._queue and self.acknowledged_seq <= through_seq:
            self.queued_bytes -= _size(self._queue.popleft())
            self.acknowledged_seq += 1
            self._taken += 1
        self._tell()

    def disconnected(self) -> None:
        """What was under way is not known to have happened; it is sent again after the next attach."""
        self.attach_id = self.append_id = None
        if self.state == "live":
            self.state = "attaching"

    def fail(self, error: ClientError) -> None:
        """End the publication; everybody who waits is told. Idempotent."""
        if self.error is None:
            self.state, self.error = "failed", error
            self._queue.clear()
            self.queued_bytes = 0
            while self._waiters:
                self._waiters.popleft()[1](error)

    def _tell(self) -> None:
        while self._waiters and self._waiters[0][0] <= self._taken:
            self._waiters.popleft()[1](None)

    def _encoded(self, event: Event) -> msgspec.Raw:
        plain = dict(event)
        defect = lossless_defect(plain)
        if defect is not None:
            raise LocalProtocolError(f"an event holds {defect}")
        if self.encoding == "json":
            data = encode_json(plain)
        else:
            try:
                data = msgspec.msgpack.encode(encodable(plain, int64=True))
            except RecursionError:
                raise LocalProtocolError("nested too deeply for MessagePack; use the JSON encoding") from None
        if len(data) > self.event_bytes_max:
            raise LocalProtocolError(f"an event has {len(data)} bytes, {self.event_bytes_max} are allowed")
        return msgspec.Raw(data)


def _size(raw: msgspec.Raw) -> int:
    return len(raw)
