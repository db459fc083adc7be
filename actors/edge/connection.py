"""One connection: hello, a reader, a writer, its requests, its live sessions, its end.

The reader only reads and dispatches, so that cancels get through whatever is running; it is also the task
that decides when the connection ends. Only the writer sends. Each request runs in its own task of the
connection's nursery. On the way out, every stage is an explicit line of ``run``: requests are told, awaited,
and only then the sessions are detached and the socket is closed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable
from typing import Final

import attrs
import trio

from ...protocol.wire import messages as m
from ...protocol.wire.codec import SERVER_CODECS, Codec, FrameError
from ...protocol.wire.codes import WireCode, WireError
from ...protocol.wire.gentle_encode import encode_gently, holds_much
from ...protocol.wire.identity import Owner
from ...protocol.wire.methods import METHODS
from ...protocol.wire.parts import split_answer
from ...storage.tokens import StoredToken
from ..wire_service import WireService
from .answers import Answers
from .authority import check_role
from .backpressure import Outbox, OutboxClosed, SlowPeer
from .failures import AbortReason, abort_error, log_failure
from .greeting import unsupported, welcome
from .incoming import FrameTooLarge, Incoming
from .lanes import Lanes
from .link import (
    CLOSE_GOING_AWAY,
    CLOSE_INTERNAL,
    CLOSE_NORMAL,
    CLOSE_POLICY,
    CLOSE_PROTOCOL,
    CLOSE_TOO_LARGE,
    Link,
    LinkClosed,
)
from .requests import RunningRequest
from .server_config import ServerConfig
from .server_state import ServerState

logger = logging.getLogger(__name__)


REFUSED_TOKEN: Final = "unauthenticated"
"""Why a connection ended whose token was refused."""
NO_HELLO: Final = "no hello"
"""Why a connection ended that said nothing in time, or something that was no message."""


class Ending(Exception):
    """The connection ends with this code and reason. ``deliver``: what is queued is still worth sending."""

    def __init__(self, code: int, reason: str, *, deliver: bool = True) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.deliver = deliver


@attrs.define(eq=False)
class Connection:
    """One peer after the handshake. Owner task: ``run``."""

    id: str
    link: Link
    service: WireService
    config: ServerConfig
    state: ServerState
    host: str
    owner: Owner | None = attrs.field(default=None, init=False)
    client: m.Software | None = attrs.field(default=None, init=False)
    _admitted: StoredToken | None = attrs.field(default=None, init=False, repr=False)
    _answers: Answers | None = attrs.field(default=None, init=False, repr=False)
    _codec: Codec[m.ClientMessage] = attrs.field(init=False, repr=False)
    _incoming: Incoming = attrs.field(init=False, repr=False)
    _outbox: Outbox = attrs.field(init=False, repr=False)
    _running: dict[int, RunningRequest] = attrs.field(factory=dict, init=False, repr=False)
    _lanes: Lanes = attrs.field(factory=Lanes, init=False, repr=False)
    _handled: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False, repr=False)
    _sessions: set[str] = attrs.field(factory=set, init=False, repr=False)
    _reading: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False, repr=False)
    _end: Ending | None = attrs.field(default=None, init=False)
    _going_away: bool = attrs.field(default=False, init=False)
    _bad_frames: int = attrs.field(default=0, init=False)
    _pinged_at: float | None = attrs.field(default=None, init=False)
    _suspected: bool = attrs.field(default=False, init=False)
    _idle: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._codec = SERVER_CODECS[self.link.encoding or "json"]
        config = self.config
        self._incoming = Incoming(
            self.link, self._codec, config.frame_bytes, config.frame_containers, self.state.slow_decoder
        )
        self._outbox = Outbox(self.config.unsent_bytes)
        self._idle.set()

    # ------------------------------------------------------------ life

    async def run(self) -> None:
        """Serve the peer until one of us ends it. Expected ends return; bugs leave after cleaning up."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                async with trio.open_nursery() as requests:
                    with self._reading:
                        await self._read_all(requests)
                    await self._settle(requests)
                # Leaving waited without bound, on purpose: what a handler shields must settle (SPEC 4.8).
                await self._flush()
                nursery.cancel_scope.cancel(reason="the connection ends")
        finally:
            self._outbox.close()
            with trio.move_on_after(self.config.settle_s, shield=True) as scope:
                await self._detach_all()
            if scope.cancelled_caught:
                logger.warning("%s: detaching its sessions took too long", self.id)
            end = self._end or Ending(CLOSE_INTERNAL, "internal failure")
            await self.link.close(end.code, end.reason, self.config.close_s)
            self.state.ended(end.reason)

    @property
    def end_reason(self) -> str:
        """Why the connection ended, in our fixed words."""
        return "internal failure" if self._end is None else self._end.reason

    def end(self, code: int, reason: str, *, deliver: bool = True) -> None:
        """End the connection from outside its reader. The first reason stands."""
        if self._end is None:
            self._end = Ending(code, reason, deliver=deliver)
            self._reading.cancel(reason=reason)

    async def _read_all(self, requests: trio.Nursery) -> None:
        try:
            if self.link.encoding is None:
                self._send_now(unsupported())
                raise Ending(CLOSE_PROTOCOL, "unsupported version")
            await self._authenticate()
            while True:
                await self._read_one(requests)
        except Ending as end:
            self._end = self._end or end
        except LinkClosed as closed:
            self._end = self._end or Ending(CLOSE_NORMAL, _close_word(closed), deliver=False)

    async def _settle(self, requests: trio.Nursery) -> None:
        """Tell what still runs, wait for it; a handler that does not notice is cancelled after a while."""
        if self._end is not None and not self._end.deliver:
            self._outbox.close()
        if not self._running:
            return
        kind: m.AbortKind = "shutdown" if self._going_away else "disconnected"
        self.abort_requests(kind)
        with trio.move_on_after(self.config.settle_s) as scope:
            await self.handlers_ended()
        if scope.cancelled_caught:
            for request in self._running.values():
                logger.warning("%s: request %d goes on without its peer; cancelled", self.id, request.id)
                self._send_now(abort_error(request.id, request.abort_reason or AbortReason(kind)))
            requests.cancel_scope.cancel(reason="their peer has gone and they did not notice")
            return
        with trio.move_on_after(self.config.close_s) as stuck:  # by now answers wait for the peer alone
            await self._idle.wait()
        if stuck.cancelled_caught:
            self._outbox.close()

    async def _flush(self) -> None:
        with trio.move_on_after(self.config.close_s):
            await self._outbox.drained()

    async def _detach_all(self) -> None:
        if self.owner is not None:
            for session_id in sorted(self._sessions):
                try:
                    await self.service.detach(session_id, self.owner)
                except Exception as exc:  # the others must be detached all the same
                    log_failure("detach", None, WireCode.INTERNAL.value, exc, level=logging.ERROR)

    # ------------------------------------------------------------ reading

    async def _authenticate(self) -> None:
        """The first message must be a ``hello`` with a good token (SPEC 16.11)."""
        with trio.move_on_after(self.config.hello_s) as scope:
            message = await self._receive()
        if scope.cancelled_caught:
            raise Ending(CLOSE_POLICY, NO_HELLO)
        token = message.token if isinstance(message, m.Hello) else None
        entry = await self.state.tokens.find(token) if token is not None else None
        if not isinstance(message, m.Hello) or entry is None:
            await trio.sleep(self.state.throttle.failed(self.host, trio.current_time()))
            request_id = getattr(message, "id", None)
            self._send_now(
                m.Error(id=request_id, code=WireCode.UNAUTHENTICATED, message="a valid token is needed")
            )
            raise Ending(CLOSE_POLICY, REFUSED_TOKEN)
        self.client = message.client
        self._admitted = entry
        self.owner = Owner(token_id=entry.id, connection_id=self.id, role=entry.role, reach=entry.reach)
        self._answers = Answers(self.service, self.config, self.state, self.owner, self._sessions)
        self.link.stream.budget_bytes = None
        self.state.authenticated(self)
        self._send_now(welcome(self.config, self.state.instance, entry.role))

    async def _receive(self) -> m.ClientMessage:
        """The next message. Raises: LinkClosed, Ending. Bad frames are answered and skipped."""
        while True:
            try:
                return await self._incoming.next()
            except FrameTooLarge:
                bound = self.config.frame_bytes
                raise Ending(CLOSE_TOO_LARGE, f"a frame may have {bound} bytes") from None
            except FrameError as error:
                self._refuse_frame(error)
                if self.owner is None:  # one try: nothing but a hello opens the door
                    raise Ending(CLOSE_POLICY, NO_HELLO) from None

    def _refuse_frame(self, error: FrameError) -> None:
        self._bad_frames += 1
        self._send_now(m.Error(id=error.id, code=error.code.value, message=error.message))
        if self._bad_frames > self.config.bad_frames_max:
            raise Ending(CLOSE_PROTOCOL, "too many bad frames")

    async def _read_one(self, requests: trio.Nursery) -> None:
        message = await self._receive()
        self.state.requests[m.TAGS[type(message)]] += 1
        if isinstance(message, m.Cancel):
            request = self._running.get(message.id)
            if request is not None:  # otherwise it has just been answered
                request.abort("cancelled", message.reason)
        elif isinstance(message, m.Hello):
            self._refuse_frame(FrameError(WireCode.BAD_FRAME, "hello was said already"))
        else:
            self._dispatch(requests, message)

    def _dispatch(self, requests: trio.Nursery, message: m.Request) -> None:
        """Start the request's task, or answer why not. Sync: arrival order is the order of the lanes."""
        assert self.owner is not None
        if message.id in self._running:
            self._refuse_frame(FrameError(WireCode.BAD_FRAME, f"request {message.id} is still running"))
            return
        try:
            if self._going_away:
                raise WireError(WireCode.SHUTTING_DOWN, "the service is stopping")
            if len(self._running) >= self.config.in_flight:
                retry = self.config.busy_retry_ms
                raise WireError(WireCode.BUSY, "too many requests are running", retry_after_ms=retry)
            check_role(self.owner.role, type(message))
        except WireError as error:
            self._send_now(
                m.Error(
                    id=message.id,
                    code=error.code.value,
                    message=error.message,
                    retry_after_ms=error.retry_after_ms,
                )
            )
            return
        if self._answered(message):
            return
        key = self._lane_of(message)
        request = RunningRequest(message, None if key is None else self._lanes.enter(key))
        if not self._running:
            self._idle = trio.Event()
        self._running[message.id] = request
        requests.start_soon(self._serve, request)

    def _answered(self, message: m.Request) -> bool:
        """Answer what the service has at once, in the reader itself: a task costs more than such a read.

        Not while answers must wait for room: then they wait in tasks, of which there is a bounded number.
        """
        assert self._answers is not None
        if type(message) is not m.Call or self._outbox.crowded:
            return False
        began = time.perf_counter()
        answer = self._answers.answer_nowait(message)
        data = None if answer is None else self._codec.encode_quickly(answer)
        if data is None or len(data) > min(self.config.part_bytes, self.config.answer_bytes):
            return False
        self.state.count_quick(message, time.perf_counter() - began)
        self._put_now(data)
        return True

    def _lane_of(self, message: m.Request) -> Hashable:
        """Requests that must keep their order, and not overlap, share a lane (SPEC 16.5)."""
        match message:
            case m.Attach():
                session_id = message.session.get("id") if isinstance(message.session, dict) else None
                return ("session", session_id) if isinstance(session_id, str) else None
            case m.Append() | m.Detach():
                return ("session", message.session_id)
            case m.Call() if message.tool in self.state.exclusive_tools:
                reach = tuple(message.reach) if isinstance(message.reach, list) else message.reach
                return ("search", message.agent, message.workspace, reach)
            case m.Query() if message.method in METHODS and METHODS[message.method].searches:
                return ("query",)
        return None

    # ------------------------------------------------------------ answering

    async def _serve(self, request: RunningRequest) -> None:
        """Run one request and queue its answer. The in-flight place is held until then."""
        assert self._answers is not None
        try:
            try:
                answer = await self._answers.answer(request, self._send_progress)
            finally:
                request.leave_lane()
                request.handled = True
                self._handled.unpark_all()
            self.state.count_answer(request, answer)
            await self._deliver(answer)
        except OutboxClosed:
            pass  # the connection is ending: there is nobody to tell
        finally:
            del self._running[request.id]
            if not self._running:
                self._idle.set()

    async def _deliver(self, answer: m.Answer) -> None:
        await self._outbox.room()
        data = await self._encode(answer)
        size = self.config.part_bytes
        if len(data) <= size:
            await self._outbox.put(data)
            return
        for part in split_answer(answer.id or 0, data, size, text=self._codec.encoding == "json"):
            await self._outbox.put(self._codec.encode(part))

    async def _encode(self, answer: m.Answer) -> bytes:
        try:
            data = None if holds_much(answer) else self._codec.encode_quickly(answer)
            if data is None:
                data = await trio.to_thread.run_sync(
                    encode_gently, self._codec, answer, limiter=self.state.slow_decoder
                )
            if len(data) > self.config.answer_bytes:
                raise WireError(WireCode.TOO_LARGE, f"the answer has {len(data)} bytes")
            return data
        except WireError as error:
            code, message = error.code, error.message
        except Exception as exc:  # a value that is no JSON: the service's bug costs this answer, not the peer
            log_failure("encode", answer.id, WireCode.INTERNAL.value, exc, level=logging.ERROR)
            code, message = WireCode.INTERNAL, "the answer could not be encoded"
        return self._codec.encode(m.Error(id=answer.id, code=code.value, message=message))

    def _send_progress(self, request_id: int, done: int, total: int | None, unit: str) -> None:
        if not self._outbox.crowded and request_id in self._running:
            self._send_now(m.Progress(id=request_id, done=done, total=total, unit=unit))

    def _send_now(self, message: m.ServerMessage) -> None:
        """Queue a small frame without waiting; a peer that lets them pile up is cut off."""
        self._put_now(self._codec.encode(message))

    def _put_now(self, frame: bytes) -> None:
        try:
            self._outbox.put_nowait(frame)
        except SlowPeer:
            self.end(CLOSE_POLICY, "slow reader", deliver=False)
        except OutboxClosed:
            pass  # the connection is ending: there is nobody to tell

    async def _write(self) -> None:
        """The only sender. A cancelled send ends the connection: unknown bytes are on the wire."""
        try:
            while True:
                frame = await self._outbox.take()
                await self.link.send(frame, self._codec.encoding)
                self._outbox.sent(frame)
        except OutboxClosed:
            return
        except LinkClosed as closed:
            self._outbox.close()
            self.end(CLOSE_NORMAL, _close_word(closed), deliver=False)

    # ------------------------------------------------------------ from the server

    def say_goaway(self, reason: str, grace_ms: int) -> None:
        """No new requests from here on."""
        if not self._going_away:
            self._going_away = True
            self._send_now(m.Goaway(reason=reason, grace_ms=grace_ms))

    def abort_requests(self, kind: m.AbortKind) -> None:
        for request in tuple(self._running.values()):
            request.abort(kind)

    async def handlers_ended(self) -> None:
        """Wait until no request's handler runs; answers may still wait for a peer that does not read."""
        while not all(request.handled for request in self._running.values()):
            await self._handled.park()

    @property
    def idle(self) -> trio.Event:
        """Set while no request runs."""
        return self._idle

    def watch(self, now: float, pings: trio.Nursery) -> None:
        """Look at silence, stalls and the token; called by the server every ``watch_s``.

        Silence and stalls must be seen twice: after a pause of our own (a blocked loop, a sleeping laptop)
        bytes may be waiting that nobody has had time to take.
        """
        if self._admitted is not None and not self.state.tokens.holds(self._admitted):
            self._send_now(m.Error(code=WireCode.UNAUTHENTICATED.value, message="the token was revoked"))
            self.end(CLOSE_POLICY, "token revoked")
            return
        stream, config = self.link.stream, self.config
        fault: tuple[int, str] | None = None
        if stream.stalled_s(now) > config.stall_s:
            fault = (CLOSE_POLICY, "slow reader")
        elif now - stream.heard_at < config.keepalive_s:
            self._pinged_at = None
        elif self._pinged_at is None:
            self._pinged_at = now
            pings.start_soon(self.link.ping)
        elif now - self._pinged_at > config.keepalive_timeout_s:
            fault = (CLOSE_GOING_AWAY, "keepalive timeout")
        if fault is not None and self._suspected:
            self.end(*fault, deliver=False)
        self._suspected = fault is not None


def _close_word(closed: LinkClosed) -> str:
    return {1000: "closed by peer", 1001: "closed by peer", 1006: "lost", 1009: "frame too large"}.get(
        closed.code, "protocol fault"
    )
