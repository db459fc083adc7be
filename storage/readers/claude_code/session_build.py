"""One session while a reader builds it: its facts so far, and the events since they were last taken."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from ....protocol.event import Event
from ....protocol.header import SessionHeader
from ....protocol.json_value import JSON
from ....protocol.records import Title
from ..corelog.shapes import title_text
from ..seam import SessionDelta


class Facts(msgspec.Struct, array_like=True):
    """All that must be remembered of a session to go on with it; part of a mapper's state.

    ``time`` is carried forward to records without one. ``created`` is the smallest time seen, None
    before the first. ``prompt`` is the first human prompt as a title, with its seq; ``beside`` a title
    that a file beside the log gives, with the name of who wrote it and its time.
    ``titled`` tells that a title event stands in the log: from then on no title is reported beside it.
    """

    id: str
    time: int = 0
    created: int | None = None
    cwd: str | None = None
    parent: str | None = None
    is_subagent: bool = False
    next_seq: int = 0
    inherited: int = 0
    prompt: tuple[str, int] | None = None
    beside: tuple[str, str, int] | None = None
    titled: bool = False
    noted: list[str] = []


class SessionBuild:
    """Numbers events of one session. Owned by one mapper; never holds more than a batch of events."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._events: list[Event] = []
        self._first_seq = facts.next_seq
        self._notes: list[str] = []
        self._changed = False

    def see_time(self, time_ms: int | None) -> None:
        """Take the time of the next events; None carries the last one forward."""
        if time_ms is None:
            return
        self.facts.time = time_ms
        if time_ms >= 0 and (self.facts.created is None or time_ms < self.facts.created):
            self.facts.created = time_ms
            self._changed = True

    def see_cwd(self, cwd: str | None) -> None:
        """The first working directory is the session's."""
        if cwd is not None and self.facts.cwd is None:
            self.facts.cwd = cwd
            self._changed = True

    def emit(
        self, type_: str, data: JSON, surface_op: JSON | UnsetType = UNSET, sources: Iterable[int] = ()
    ) -> int:
        """Append one event and return its seq. ``sources`` are made distinct; none means absent."""
        seq = self.facts.next_seq
        cited: list[JSON] = [*dict.fromkeys([source for source in sources if 0 <= source < seq])]
        event = Event(
            type=type_,
            seq=seq,
            time=self.facts.time,
            data=data,
            surface_op=surface_op,
            source_event_seqs=cited or UNSET,
        )
        self._events.append(event)
        self.facts.next_seq = seq + 1
        if type_ == "session/title":
            self.facts.titled = True
        return seq

    @property
    def lacks_prompt(self) -> bool:
        """Whether a human prompt would be the first of its own."""
        known = self.facts.prompt
        return known is None or known[1] < self.facts.inherited

    def see_prompt(self, text: str, seq: int) -> None:
        """Remember the first human prompt of its own: what a session without a title is called by."""
        if self.lacks_prompt and (line := title_text(text)):
            self.facts.prompt = (line, seq)

    def see_title_beside(self, beside: tuple[str, str, int] | None) -> None:
        """Take the title that a file beside the log gives, as it is now (SPEC 16.6.7)."""
        if beside != self.facts.beside:
            self.facts.beside = beside
            self._changed = True

    def note(self, text: str) -> None:
        """Say once what of this session could not be shown as it was (SPEC 16.7.4)."""
        if text not in self.facts.noted:
            self.facts.noted.append(text)
            self._notes.append(text)

    def inherit(self) -> None:
        """All events so far are copies of the parent's (SPEC 16.9)."""
        self.facts.inherited = self.facts.next_seq
        self._changed = True

    def take(self) -> SessionDelta | None:
        """The news since the last call, or None if there is none."""
        if not (self._events or self._notes or self._changed):
            return None
        delta = SessionDelta(
            header=self.header(),
            first_seq=self._first_seq,
            events=self._events,
            title=self._title(),
            inherited=self.facts.inherited,
            notes=self._notes,
        )
        self._events, self._notes, self._changed = [], [], False
        self._first_seq = self.facts.next_seq
        return delta

    def header(self) -> SessionHeader:
        facts = self.facts
        return SessionHeader(
            id=facts.id,
            created_at=facts.created or 0,
            cwd=facts.cwd,
            parent_session=facts.parent,
            origin="subagent" if facts.is_subagent else None,
            delegation_depth=1 if facts.is_subagent else None,
        )

    def _title(self) -> Title | None:
        facts = self.facts
        if facts.titled:
            return None
        if facts.beside is not None:
            text, provider, time = facts.beside
            source: JSON = {"kind": "provider", "provider": provider}
            return Title(title=text, message_seqs=(), source=source, seq=None, time=time)
        if facts.prompt is not None:
            text, seq = facts.prompt
            # As old as the session: a title event of any time wins over it (SPEC 16.6.7).
            return Title(
                title=text,
                message_seqs=(seq,),
                source={"kind": "fallback"},
                seq=None,
                time=facts.created or 0,
            )
        return None
