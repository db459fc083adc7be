"""A client without I/O: what to send, what an incoming frame means, what to do after a reconnect.

Both client libraries are thin shells around this. A shell opens a line and calls ``connected``; sends what
``outgoing`` holds, in order, whenever ``wake`` is called; hands every frame to ``received``; and calls
``lost`` when the line has gone. Requests that were not answered are sent again on the next line: every
message of the protocol is safe to repeat. Not thread-safe; all calls come from one event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final, Literal, TypeAlias

import attrs

from ..json_value import JSON
from . import messages as m
from .client_errors import (
    ClientError,
    ConnectionLost,
    LocalProtocolError,
    RemoteProtocolError,
    typed_error,
)
from .codec import CLIENT_CODECS, Codec, Encoding, Frame
from .codes import WireCode, WireError
from .limits import FRAME_BYTES, IN_FLIGHT
from .parts import Assembly
from .publication import Event, Publication

State: TypeAlias = Literal["down", "greeting", "ready", "closed"]
Settle: TypeAlias = Callable[[m.Answer | ClientError], None]
"""Called once with the answer, or with why there is none. ``error`` answers come as ``ServerError``."""
OnProgress: TypeAlias = Callable[[m.Progress], None]
Schedule: TypeAlias = Callable[[float, Callable[[], None]], None]

_HEADROOM: Final = 64 * 1024
"""Bytes of a frame kept for the envelope around one event."""
_RETRY_S: Final = 0.5
_FATAL: Final = frozenset({WireCode.UNAUTHENTICATED.value, WireCode.UNSUPPORTED_VERSION.value})


@attrs.define(eq=False)
class _Pending:
    message: m.Request
    frame: bytes
    settle: Settle
    on_progress: OnProgress | None
    sent: bool = False
    assembly: Assembly | None = None


@attrs.define(eq=False)
class ClientCore:
    """State of one client over all its connections.

    ``wake``: there is something in ``outgoing``. ``schedule(seconds, callback)``: call back later.
    """

    encoding: Encoding
    token: str | None = attrs.field(repr=False)
    software: m.Software
    wake: Callable[[], None]
    schedule: Schedule
    state: State = attrs.field(default="down", init=False)
    welcome: m.Welcome | None = attrs.field(default=None, init=False)
    going_away: m.Goaway | None = attrs.field(default=None, init=False)
    ended: ClientError | None = attrs.field(default=None, init=False)
    outgoing: deque[bytes] = attrs.field(factory=deque, init=False, repr=False)
    complaints: deque[m.Error] = attrs.field(
        factory=lambda: deque[m.Error](maxlen=20), init=False, repr=False
    )
    publications: list[Publication] = attrs.field(factory=list, init=False, repr=False)
    _codec: Codec[m.ServerMessage] = attrs.field(init=False, repr=False)
    _pending: dict[int, _Pending] = attrs.field(factory=dict, init=False, repr=False)
    _in_flight: int = attrs.field(default=0, init=False)
    _ids: count[int] = attrs.field(factory=lambda: count(1), init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._codec = CLIENT_CODECS[self.encoding]

    @property
    def subprotocol(self) -> str:
        return self._codec.subprotocol

    @property
    def frame_bytes(self) -> int:
        return self.welcome.limits.frame_bytes if self.welcome is not None else FRAME_BYTES

    # ------------------------------------------------------------ the line

    def connected(self) -> None:
        """A line is open: greet."""
        self.state, self.going_away = "greeting", None
        self._queue(self._codec.encode(m.Hello(client=self.software, token=self.token)))

    def received(self, frame: Frame) -> None:
        """Take one frame.

        Raises: RemoteProtocolError: it is no message of the server, or comes at the wrong time; ServerError
            (Unauthenticated, say): the server will not have us. After either the shell drops the line; after
            a ServerError it does not come back.
        """
        try:
            message = self._codec.decode(frame)
        except WireError as error:
            raise RemoteProtocolError(error.message) from error
        if isinstance(message, m.Part):
            whole = self._add_part(message)
            if whole is not None:
                self.received(whole)  # at most once deep: a part inside a part does not fit its assembly
        elif isinstance(message, m.Welcome):
            self._welcomed(message)
        elif isinstance(message, m.Goaway):
            self.going_away = message
        elif isinstance(message, m.Progress):
            pending = self._pending.get(message.id)
            if pending is not None and pending.on_progress is not None:
                pending.on_progress(message)
        elif isinstance(message, m.Error) and message.id is None:
            self._complained(message)
        else:
            self._answered(message)

    def lost(self) -> None:
        """The line has gone. Nothing is settled: a new line may come."""
        if self.state != "closed":
            self.state = "down"
        self.outgoing.clear()
        self._in_flight = 0
        for publication in self.publications:
            publication.disconnected()
        for pending in self._pending.values():
            pending.sent, pending.assembly = False, None
        for request_id in [
            key for key, item in self._pending.items() if isinstance(item.message, (m.Attach, m.Append))
        ]:
            del self._pending[request_id]  # publications make their own anew

    def give_up(self, error: ClientError | None = None) -> None:
        """No line will come any more: settle everything with ``error`` (ConnectionLost by default)."""
        self.state = "closed"
        reason = self.ended = error or ConnectionLost("the connection is closed")
        self.outgoing.clear()
        for publication in tuple(self.publications):
            publication.fail(reason)
        pending, self._pending = self._pending, {}
        for item in pending.values():
            item.settle(reason)

    # ------------------------------------------------------------ requests

    def request(
        self, build: Callable[[int], m.Request], settle: Settle, on_progress: OnProgress | None = None
    ) -> int:
        """Ask; returns the request's id. Without a line it waits for one.

        Raises: LocalProtocolError: too large, or not encodable; what ``give_up`` said.
        """
        if self.state == "closed":
            raise self.ended or ConnectionLost("the connection is closed")
        request_id = next(self._ids)
        message = build(request_id)
        try:
            frame = self._codec.encode(message)
        except (WireError, TypeError, ValueError) as exc:
            raise LocalProtocolError("the request cannot be encoded") from exc
        if len(frame) > self.frame_bytes:
            raise LocalProtocolError(f"the request has {len(frame)} bytes, {self.frame_bytes} are allowed")
        self._pending[request_id] = _Pending(message, frame, settle, on_progress)
        self._send_waiting()
        return request_id

    def cancel(self, request_id: int, reason: JSON = None) -> None:
        """Ask the server to abort a request; its answer still comes. One that was not sent ends at once."""
        pending = self._pending.get(request_id)
        if pending is None:
            return
        if pending.sent:
            self._queue(self._codec.encode(m.Cancel(id=request_id, reason=reason)))
            return
        del self._pending[request_id]
        abort = m.Abort(kind="cancelled", reason=reason)
        error = m.Error(
            id=request_id, code="SESSION_QUERY_ABORTED", message="the request was cancelled", abort=abort
        )
        pending.settle(typed_error(error))

    def forget(self, request_id: int, reason: JSON = None) -> None:
        """Cancel a request nobody waits for any more."""
        pending = self._pending.get(request_id)
        if pending is not None:
            pending.settle, pending.on_progress = _nobody, None
            self.cancel(request_id, reason)

    # ------------------------------------------------------------ publishing

    def publish(self, header: JSON, seed: list[Event] | None = None) -> Publication:
        """Attach a session, now and after every reconnect, until ``unpublish``.

        Raises: LocalProtocolError for a seed that cannot be sent; what ``give_up`` said.
        """
        if self.state == "closed":
            raise self.ended or ConnectionLost("the connection is closed")
        publication = Publication(header, self.encoding, self.frame_bytes - _HEADROOM)
        if seed is not None:
            publication.seed(seed)
        self.publications.append(publication)
        if self.state == "ready":
            self._attach(publication)
        return publication

    def pump(self, publication: Publication) -> None:
        """Send the next batch if one may go; called after events were put."""
        if self.state != "ready" or publication.state != "live" or publication.append_id is not None:
            return
        request_id = next(self._ids)
        message = publication.append_message(request_id)
        if message is not None:
            self._post(message, lambda answer: self._appended(publication, answer))

    def unpublish(self, publication: Publication, settle: Settle) -> None:
        """Stop publishing: detach if attached. What is queued and unacknowledged is given up."""
        if publication in self.publications:
            self.publications.remove(publication)
        live = publication.state == "live"
        publication.fail(ConnectionLost("the publication was closed"))
        publication.state = "detached"
        if live and self.state == "ready":
            session_id = publication.session_id
            self.request(lambda request_id: m.Detach(id=request_id, session_id=session_id), settle)
        else:
            settle(m.Detached(id=0))

    # ------------------------------------------------------------ inside

    def _queue(self, frame: bytes) -> None:
        self.outgoing.append(frame)
        self.wake()

    def _post(self, message: m.Request, settle: Settle) -> None:
        frame = self._codec.encode(message)
        self._pending[message.id] = _Pending(message, frame, settle, None)
        self._send_waiting()

    def _send_waiting(self) -> None:
        """Send what waits, oldest first, as far as the server's in-flight bound allows."""
        if self.state != "ready" or self.going_away is not None:
            return
        bound = self.welcome.limits.in_flight if self.welcome is not None else IN_FLIGHT
        for pending in self._pending.values():
            if self._in_flight >= bound:
                return
            if not pending.sent:
                pending.sent = True
                self._in_flight += 1
                self._queue(pending.frame)

    def _welcomed(self, message: m.Welcome) -> None:
        if self.state != "greeting":
            raise RemoteProtocolError("a welcome nobody asked for")
        self.state, self.welcome = "ready", message
        for publication in tuple(self.publications):
            self._attach(publication)
        self._send_waiting()

    def _complained(self, error: m.Error) -> None:
        if self.state == "greeting" or error.code in _FATAL:
            raise typed_error(error)
        self.complaints.append(error)

    def _add_part(self, part: m.Part) -> Frame | None:
        pending = self._pending.get(part.id)
        if pending is None:
            return None  # of a request we have forgotten
        if pending.assembly is None:
            pending.assembly = Assembly(self.encoding == "json")
        try:
            return pending.assembly.add(part)
        except WireError as error:
            raise RemoteProtocolError(error.message) from error

    def _answered(self, message: m.Answer) -> None:
        pending = self._pending.pop(message.id or 0, None)
        if pending is None:
            return  # of a request that ended on our side
        self._in_flight = max(0, self._in_flight - 1)
        if isinstance(message, m.Error):
            if _stopped(message):
                pending.sent = False
                self._pending[pending.message.id] = pending  # the next line will answer it
                return
            pending.settle(typed_error(message))
        else:
            pending.settle(message)
        self._send_waiting()

    def _attach(self, publication: Publication) -> None:
        request_id = next(self._ids)
        try:
            self._post(
                publication.attach_message(request_id), lambda answer: self._attached(publication, answer)
            )
        except (WireError, TypeError, ValueError) as exc:
            self._failed(
                publication, LocalProtocolError(f"the header cannot be encoded ({type(exc).__name__})")
            )

    def _attached(self, publication: Publication, answer: m.Answer | ClientError) -> None:
        if isinstance(answer, m.Attached):
            publication.attached(answer.session_id, answer.next_seq)
            if publication.error is not None:
                self._failed(publication, publication.error)
            self.pump(publication)
        else:
            self._refused(publication, answer, self._attach)

    def _appended(self, publication: Publication, answer: m.Answer | ClientError) -> None:
        if isinstance(answer, m.Appended):
            publication.appended(answer.through_seq)
            self.pump(publication)
        else:
            publication.append_id = None
            self._refused(publication, answer, self.pump)

    def _refused(
        self, publication: Publication, answer: m.Answer | ClientError, again: Callable[[Publication], None]
    ) -> None:
        """BUSY is tried again after a while, anything else ends the publication."""
        if publication.error is not None:
            return
        if getattr(answer, "code", None) == WireCode.BUSY.value:
            after_ms = getattr(answer, "retry_after_ms", None)

            def retry() -> None:
                if self.state == "ready" and publication in self.publications and publication.error is None:
                    again(publication)

            self.schedule(_RETRY_S if after_ms is None else after_ms / 1000, retry)
            return
        error = (
            answer if isinstance(answer, ClientError) else RemoteProtocolError("an answer of another kind")
        )
        self._failed(publication, error)

    def _failed(self, publication: Publication, error: ClientError) -> None:
        publication.fail(error)
        if publication in self.publications:
            self.publications.remove(publication)


def _stopped(error: m.Error) -> bool:
    """The server stopped before, or while, it worked on this: nothing is wrong with the request."""
    aborted = error.abort is not None and error.abort.kind == "shutdown"
    return aborted or error.code == WireCode.SHUTTING_DOWN.value


def _nobody(answer: m.Answer | ClientError) -> None:
    """Where the answer of a forgotten request goes."""
