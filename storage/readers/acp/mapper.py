"""ACP captures to core events: one stream of JSON-RPC frames that may hold several sessions (README.md)."""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from ....protocol.json_codec import decode_json, encode_json
from ....protocol.json_value import JSON
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.shapes import dict_of, list_of, text_of
from ..driver import Record
from ..seam import Refusal, SessionDelta
from .frames import Frame, frame_of
from .session import AcpSession, SessionState

FORMAT: Final = "acp"
VERSION: Final = 1
_ORPHANS_MAX: Final = 256


class Waiting(msgspec.Struct):
    """A request whose response was not seen yet."""

    method: str
    session: str = ""
    cwd: str = ""


class AcpState(msgspec.Struct):
    sessions: dict[str, SessionState] = {}
    current: str = ""
    waiting: dict[str, Waiting] = {}
    orphans: bytes = b"[]"
    """Frames from before any session, as JSON."""
    known: bool = False


@attrs.frozen
class Beside:
    """What lies beside a capture: the id of frames that name none, and facts a tool keeps in a file."""

    session_id: str
    cwd: str = ""
    title: str = ""
    created_ms: int | None = None
    updated_ms: int = 0
    fallback_ms: int = 0


class AcpMapper:
    """One capture. Frames that belong to no session are kept by the current one, or the first to come."""

    def __init__(self, beside: Beside, saved: bytes | None) -> None:
        """Raises: ValueError: ``saved`` is no state of this version."""
        self._beside = beside
        self._state = AcpState() if saved is None else unpack_state(VERSION, saved, AcpState)
        self._sessions = {
            name: AcpSession(FORMAT, state, beside.fallback_ms)
            for name, state in self._state.sessions.items()
        }
        self._orphans = list_of(decode_json(self._state.orphans))

    def feed(self, record: Record) -> str | None:
        frame = frame_of(record.obj)
        if frame is None:
            if not self._sessions:
                return "no JSON-RPC frame"
            self._current().log.begin(record.obj, None)
            self._current().log.finish("unknown")
            return None
        self._state.known = True
        session = self._session_of(frame)
        if session is None:
            if len(self._orphans) >= _ORPHANS_MAX:
                return "more frames before a session than are kept"
            self._orphans.append(record.obj)
            self._remember(frame, "")
            return None
        self._adopt(session)
        self._tell(session, record.obj, frame)
        return None

    def take(self) -> list[SessionDelta]:
        if named := self._sessions.get(self._beside.session_id):
            named.report_title(self._beside.title, self._beside.updated_ms)
        deltas = [session.take() for session in self._sessions.values()]
        return [delta for delta in deltas if delta is not None]

    def state(self) -> bytes:
        self._state.sessions = {name: session.saved() for name, session in self._sessions.items()}
        self._state.orphans = encode_json(self._orphans)
        return pack_state(VERSION, self._state)

    def verdict(self) -> bool | Refusal:
        return self._state.known

    # -- which session ---------------------------------------------------------------------------

    def _current(self) -> AcpSession:
        return self._sessions[self._state.current]

    def _session_of(self, frame: Frame) -> AcpSession | None:
        """The session a frame belongs to; None before there is any."""
        name = frame.session_id or text_of(dict_of(frame.result).get("sessionId"))
        if not name and not frame.method:
            name = self._state.waiting.get(frame.key, Waiting("")).session
        if not name and frame.update:
            name = self._beside.session_id
        if name:
            return self._named(name)
        return self._current() if self._sessions else None

    def _named(self, name: str) -> AcpSession:
        self._state.current = name
        if name not in self._sessions:
            state = SessionState(LogState(id=name))
            if name == self._beside.session_id:
                state.log.cwd = self._beside.cwd or None
                state.log.created_at = self._beside.created_ms
            self._sessions[name] = AcpSession(FORMAT, state, self._beside.fallback_ms)
        return self._sessions[name]

    def _adopt(self, session: AcpSession) -> None:
        """Frames from before any session are the first session's."""
        orphans, self._orphans = self._orphans, []
        for obj in orphans:
            frame = frame_of(dict_of(obj))
            if frame is not None:
                session.log.begin(obj, frame.time_ms)
                session.log.finish(frame.method or "response")

    # -- one frame -------------------------------------------------------------------------------

    def _tell(self, session: AcpSession, obj: dict[str, JSON], frame: Frame) -> None:
        asked = self._state.waiting.pop(frame.key, None) if not frame.method else None
        if asked is not None and asked.method in ("session/new", "session/load", "session/resume"):
            session.log.state.cwd = session.log.state.cwd or asked.cwd or None
        session.log.begin(obj, frame.time_ms)
        if frame.method:
            kind = session.request(frame)
            self._remember(frame, session.log.state.id)
        else:
            kind = session.response(frame, "" if asked is None else asked.method)
        session.log.finish(kind)

    def _remember(self, frame: Frame, session_id: str) -> None:
        if frame.method and frame.key:
            named = frame.session_id or (session_id if frame.method != "session/new" else "")
            cwd = text_of(frame.params.get("cwd"))
            self._state.waiting[frame.key] = Waiting(frame.method, named, cwd)
            if len(self._state.waiting) > _ORPHANS_MAX:
                del self._state.waiting[next(iter(self._state.waiting))]
