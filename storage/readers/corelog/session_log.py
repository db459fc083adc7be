"""One session of a foreign log while it is being mapped to core events (SPEC 16.7).

Every record is bracketed: ``begin`` sets its native form and time, the calls between say what it means,
``finish`` adds a log-only event if nothing was said. The first event of a record carries it whole under
``data.native`` (16.7.3). Links that SPEC 2 would refuse are never written: replacements cite what they
remove, sources are earlier events, a result never replaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
from msgspec import UNSET, UnsetType

from ....protocol.event import Event
from ....protocol.header import SessionHeader
from ....protocol.json_value import JSON
from ....protocol.records import Title
from ..seam import SessionDelta
from .log_state import LogState
from .shapes import COMPACTION, USER, message, result_message, text_of, title_text
from .visible import Visible

_NOTES_MAX: Final = 20
_TYPE_MAX: Final = 120
_ANSWERED_MAX: Final = 64
"""Calls already answered that a second result may still cite; retries come soon or never."""


@attrs.define(eq=False)
class SessionLog:
    """The growing session. Owned by its mapper."""

    format: str
    state: LogState
    fallback_ms: int = 0
    pending: list[Event] = attrs.field(factory=list, init=False)
    visible: Visible = attrs.field(init=False)
    _native: JSON | UnsetType = attrs.field(default=UNSET, init=False)
    _emitted: int = attrs.field(default=0, init=False)
    _fresh: bool = attrs.field(default=True, init=False)

    @visible.default
    def _(self) -> Visible:
        return Visible(self.state)

    # -- records ---------------------------------------------------------------------------------

    def begin(self, native: JSON | UnsetType, time_ms: int | None) -> None:
        """Start one native record. Without a time of its own it happens when the last one did.

        UNSET for a piece of a record that another event keeps whole.
        """
        state = self.state
        self._native, self._emitted = native, state.next_seq
        if time_ms is not None:
            state.time = time_ms
            if state.created_at is None and time_ms >= 0:
                state.created_at = time_ms
        elif state.time is None:
            state.time, state.guessed = self.created_at, state.created_at is None

    def finish(self, native_type: str, text: str = "") -> None:
        """End the record; one that meant nothing yet becomes ``<format>/<native type>``, with ``text``."""
        if self.state.next_seq == self._emitted:
            self.log_only(native_type, text)
        self._native = UNSET

    def at(self, time_ms: int | None) -> None:
        """The rest of the record happens at ``time_ms``, if that is known."""
        if time_ms is not None:
            self.state.time = time_ms

    @property
    def now(self) -> int:
        time = self.state.time
        return self.created_at if time is None else time

    @property
    def created_at(self) -> int:
        """When the session began: as it says, else its first time, else ``fallback_ms``."""
        state = self.state
        if state.created_at is not None:
            return state.created_at
        return self.fallback_ms if state.time is None else state.time

    def repeats(self) -> bool:
        """Whether ``fallback_ms``, which changes with the log, stands for nothing."""
        state = self.state
        return not state.guessed and (state.created_at is not None or state.time is not None)

    # -- events ----------------------------------------------------------------------------------

    def log_only(self, native_type: str, text: str = "") -> int:
        """A record kept for exact reads, and for search as far as ``text`` goes (SPEC 16.7.2)."""
        data: dict[str, JSON] = {"text": text} if text else {}
        return self._emit(f"{self.format}/{native_type[:_TYPE_MAX] or 'unknown'}", data)

    def user(
        self,
        blocks: list[JSON],
        source: dict[str, JSON] = USER,
        *,
        message_id: str = "",
        sources: Iterable[int] = (),
        replaces: tuple[int, int] | None = None,
        typed: str = "",
        continues: bool = False,
    ) -> int:
        """A prompt, or text put before the model in a user's place if ``source.kind`` is not ``user``.

        ``typed`` is what the person typed, if the prompt holds more than that; it makes a better title.
        ``continues``: another part of the prompt before.
        """
        state = self.state
        human = source.get("kind") == "user"
        if human and not continues and not state.turns_marked:
            state.turn, state.step, state.turn_ended = state.turn + 1, 0, False
        seq = state.next_seq
        data = message(message_id or self._own_id(), "user", blocks, dict(source))
        self._emit_surface("user/message", data, sources=sources, replaces=replaces)
        if human:
            state.prompts.append(seq)
            self._prompt_title(seq, typed, blocks)
        return seq

    def assistant(
        self,
        blocks: list[JSON],
        *,
        provider: str = "",
        model: str = "",
        message_id: str = "",
        sources: Iterable[int] = (),
        replaces: tuple[int, int] | None = None,
    ) -> int:
        """An answer, or a part of one."""
        source: dict[str, JSON] = {
            "kind": "model",
            "provider": provider or self.format,
            "model": model or "unknown",
        }
        data: dict[str, JSON] = {
            "turn": self.state.turn,
            "step": self.state.step,
            "message": message(message_id or self._own_id(), "assistant", blocks, source),
        }
        return self._emit_surface("assistant/message", data, sources=sources, replaces=replaces)

    def call(self, call_id: str, name: str, arguments: str) -> int:
        """The start of a tool call. ``arguments`` is the raw text; results find the call by its id."""
        seq = self.state.next_seq
        call_id = call_id or f"{self.format}:{seq}"
        self.state.calls.setdefault(call_id, []).append(seq)
        self.state.turn_ended = False
        return self._emit(
            "tool/call",
            {
                "turn": self.state.turn,
                "step": self.state.step,
                "callId": call_id,
                "name": name or "unknown",
                "arguments": arguments,
            },
        )

    def result(self, call_id: str, blocks: list[JSON], *, is_error: bool | None = None) -> int:
        """The outcome of a call: cites the oldest open call of that id, else the one last answered."""
        source = self._answer(call_id)
        call_id = call_id or self._own_id()
        data: dict[str, JSON] = {
            "turn": self.state.turn,
            "step": self.state.step,
            "message": result_message(self._own_id(), call_id, blocks, is_error),
        }
        return self._emit_surface("tool/result", data, sources=() if source is None else (source,))

    def _answer(self, call_id: str) -> int | None:
        state = self.state
        seqs = state.calls.get(call_id)
        if not seqs:
            return state.answered.get(call_id)
        seq = seqs.pop(0)
        if not seqs:
            del state.calls[call_id]
        state.answered.pop(call_id, None)
        state.answered[call_id] = seq
        if len(state.answered) > _ANSWERED_MAX:
            del state.answered[next(iter(state.answered))]
        return seq

    def title(self, text: str, source: dict[str, JSON]) -> int | None:
        """A title inside the log. Blank text is no title."""
        line = title_text(text)
        if not line:
            return None
        self.state.titled = True
        return self._emit("session/title", {"title": line, "messageSeqs": [], "source": source})

    def todos(self, todos: list[JSON]) -> int:
        return self._emit("todo/write", {"todos": todos})

    def turn_start(self) -> int:
        state = self.state
        state.turns_marked = True
        state.turn, state.step, state.turn_ended = state.turn + 1, 0, False
        return self._emit("turn/start", {"turn": state.turn})

    def turn_end(self, kind: str, *, text: str = "", code: str = "") -> int | None:
        """Close the turn once; a second end of the same turn is no border and yields nothing.

        An error is worth an event at any time: it is what people look for.
        """
        if self.state.turn_ended and kind != "error":
            return None
        self.state.turn_ended = True
        reason: dict[str, JSON] = {"kind": kind}
        if kind == "error":
            reason["error"] = {"message": text, "code": code or "UNKNOWN"}
        elif kind == "aborted":
            reason["reason"] = {"kind": "user"}
        return self._emit("turn/end", {"turn": self.state.turn, "reason": reason})

    def step_start(self, step: int | None = None) -> int:
        self.state.step = self.state.step + 1 if step is None else step
        return self._emit("step/start", {"turn": self.state.turn, "step": self.state.step})

    def step_end(self) -> int:
        return self._emit("step/end", {"turn": self.state.turn, "step": self.state.step})

    # -- surface ---------------------------------------------------------------------------------

    def compact(self, blocks: list[JSON], keep_from: int | None = None, *, message_id: str = "") -> int:
        """A checkpoint that stands for everything now visible before event ``keep_from`` (all if None)."""
        surface = self.state.surface
        gone = surface if keep_from is None else self.visible.before(keep_from)
        if keep_from is None:
            self.state.abandoned = None
        replaces = (gone[0], gone[-1]) if gone else None
        return self.user(blocks, COMPACTION, message_id=message_id, replaces=replaces)

    def note(self, text: str) -> None:
        if text not in self.state.notes and len(self.state.notes) < _NOTES_MAX:
            self.state.notes.append(text)

    # -- news ------------------------------------------------------------------------------------

    def header(self) -> SessionHeader:
        state = self.state
        return SessionHeader(
            id=state.id,
            created_at=max(self.created_at, 0),
            cwd=state.cwd,
            parent_session=state.parent,
            origin=state.origin,
            delegation_depth=state.depth,
            agent_preset=state.preset,
        )

    def take(self) -> SessionDelta | None:
        """The news since the last call; None if there is none. The first call always has some."""
        if not self.pending and not self._fresh:
            return None
        events, self.pending, self._fresh = self.pending, [], False
        return SessionDelta(
            header=self.header(),
            first_seq=events[0].seq if events else self.state.next_seq,
            events=events,
            title=self._reported_title(),
            inherited=self.state.inherited,
            notes=list(self.state.notes),
        )

    def report_title(self, text: str, time_ms: int, source: dict[str, str]) -> None:
        """What the source now keeps as title beside the log (SPEC 16.6.7); blank if nothing."""
        line = title_text(text)
        if (line, time_ms) != (self.state.title, self.state.title_time):
            self.state.title, self.state.title_time, self.state.title_source = line, time_ms, source
            self._fresh = True

    def _reported_title(self) -> Title | None:
        state = self.state
        if state.title:
            return Title(
                title=state.title,
                message_seqs=(),
                source={**state.title_source},
                seq=None,
                time=state.title_time,
            )
        # A title in the log is better than a prompt, whichever of them is newer.
        if state.titled or not state.prompt_title:
            return None
        return Title(
            title=state.prompt_title,
            message_seqs=(state.prompt_seq,),
            source={"kind": "fallback"},
            seq=None,
            time=state.prompt_time,
        )

    def _prompt_title(self, seq: int, typed: str, blocks: list[JSON]) -> None:
        # A fork's own first prompt says more of it than the one it was copied with.
        if self.state.prompt_title and self.state.prompt_seq >= self.state.inherited:
            return
        words = typed or " ".join(text_of(block.get("text")) for block in blocks if isinstance(block, dict))
        if line := title_text(words):
            self.state.prompt_title, self.state.prompt_seq, self.state.prompt_time = line, seq, self.now

    # -- numbering -------------------------------------------------------------------------------

    def _own_id(self) -> str:
        return f"{self.format}:{self.state.next_seq}"

    def _emit_surface(
        self,
        kind: str,
        data: dict[str, JSON],
        *,
        sources: Iterable[int] = (),
        replaces: tuple[int, int] | None = None,
    ) -> int:
        state = self.state
        state.turn_ended = False
        if replaces is None and kind != "tool/result" and state.abandoned is not None:
            replaces, state.abandoned = state.abandoned, None
        removed = self.visible.replace(replaces) if replaces is not None else []
        op: JSON = "append"
        if removed:
            op = {"op": "replace", "start": removed[0], "end": removed[-1]}
        else:
            state.surface.append(state.next_seq)
        cited: list[JSON] = [*dict.fromkeys([*removed, *sources])] if removed or sources else []
        return self._emit(kind, data, op, cited or UNSET)

    def _emit(
        self,
        kind: str,
        data: dict[str, JSON],
        op: JSON | UnsetType = UNSET,
        sources: JSON | UnsetType = UNSET,
    ) -> int:
        state = self.state
        if self._native is not UNSET:
            data["native"] = self._native
            self._native = UNSET
        seq, time = state.next_seq, state.time
        if time is None:
            time = self.now
        self.pending.append(
            Event(type=kind, seq=seq, time=time, data=data, surface_op=op, source_event_seqs=sources)
        )
        state.next_seq = seq + 1
        return seq
