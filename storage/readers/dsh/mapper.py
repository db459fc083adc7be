"""The mapper of dsh logs: records of versions 0 to 4 to the events of SPEC 1 (SPEC 1.8, 16.7.1)."""

from __future__ import annotations

from typing import Final, Literal, cast

import msgspec
from msgspec import UNSET

from ....protocol.event import Event
from ....protocol.header import SessionHeader
from ....protocol.json_value import JSON, is_safe_integer, whole
from ....protocol.surface import SurfaceFold
from ..driver import Record
from ..seam import Refusal, SessionDelta
from .header import is_header, parse_header
from .links import Links, place_event, read_links
from .numbering import Numbering
from .rows import expand_row, is_row
from .state import HeaderState, MapperState, decode_state
from .upgrade import MESSAGE_TYPES, upgrade

NOTES_MAX: Final = 50
"""Notes a session carries at most: a broken log would have one for each event."""
_ENVELOPE: Final = frozenset(("type", "seq", "time", "data", "ignorable", "surfaceOp", "sourceEventSeqs"))
_CORE: Final = frozenset(
    (
        *("turn/start", "turn/end", "step/start", "step/end", "user/message", "assistant/chunk"),
        *("assistant/message", "tool/call", "tool/result", "todo/write", "request/header", "request/context"),
        *("session/title", "session/end-seed"),
    )
)
_NO_LINKS: Final = Links(None, True, UNSET, True)


class DshMapper:
    """One log. ``fallback_id`` names the session if its header line is lost."""

    def __init__(self, fallback_id: str, state: bytes | None = None) -> None:
        """Raises: ValueError: ``state`` is not one of this mapper."""
        self._fallback_id = fallback_id
        self._state = MapperState() if state is None else decode_state(state)
        self._numbering = Numbering(self._state.runs)
        self._fold = SurfaceFold() if state is None else SurfaceFold.restore(self._state.surface)
        self._events: list[Event] = []
        self._notes: list[str] = []
        self._header_is_news = False

    # The door of a Mapper.

    def feed(self, record: Record) -> str | None:
        """Take one record. Returns None if it is held, else why it is lost."""
        obj, kind = record.obj, record.obj.get("type")
        if self._state.refusal is not None:
            return self._state.refusal[1]
        if kind == "session" and is_header(obj) and self._state.header is None and len(self._fold) == 0:
            self._take_header(obj)
        elif is_row(kind):
            return self._take_row(obj)
        elif isinstance(kind, str) and ("/" in kind or kind.startswith("plugin:")):
            self._take_event(kind, obj)
        else:
            name = kind if isinstance(kind, str) and kind else "record"
            self._emit(f"dsh/{name}", self._time_of(obj), {"native": obj})
        return None

    def lost(self) -> None:
        """A record is lost before the next one: in a log without seqs nobody knows which."""
        self._state.adrift = True

    def take(self) -> list[SessionDelta]:
        """Drain the news; a header alone is news once."""
        if not (self._events or self._header_is_news):
            return []
        events, self._events = self._events, []
        header = self._header()
        notes, self._notes = self._notes, []
        self._header_is_news = False
        return [
            SessionDelta(
                header=header,
                first_seq=len(self._fold) - len(events),
                events=events,
                inherited=min(self._state.inherited, len(self._fold)),
                notes=notes,
            )
        ]

    def state(self) -> bytes:
        self._state.runs = self._numbering.runs()
        self._state.surface = self._fold.snapshot()
        return msgspec.msgpack.encode(self._state)

    def repeats(self) -> bool:
        return True

    def verdict(self) -> bool | Refusal:
        if self._state.refusal is not None:
            kind, message = self._state.refusal
            return Refusal(kind=cast(Literal["newer-version", "corrupt"], kind), message=message)
        return self._state.header is not None or self._state.known

    # The header.

    def _take_header(self, obj: dict[str, JSON]) -> None:
        line = parse_header(obj, self._fallback_id)
        header = line.header
        state = self._state
        state.header = HeaderState.of(header)
        state.seeded = line.is_seeded
        state.time = header.created_at
        if line.refusal is not None:
            state.refusal = (line.refusal.kind, line.refusal.message)
        for note in line.notes:
            self._note(note)
        self._header_is_news = True

    def _header(self) -> SessionHeader:
        """The header as known by now: a seed whose length a marker tells is known from there on."""
        state = self._state
        if state.header is None:
            state.header = HeaderState.of(SessionHeader(id=self._fallback_id, created_at=max(state.time, 0)))
            self._note("the header line is lost")
        return state.header.header(state.inherited if state.seeded and state.inherited else None)

    def _session_id(self) -> str:
        return self._state.header.id if self._state.header is not None else self._fallback_id

    # Records.

    def _take_row(self, obj: dict[str, JSON]) -> str | None:
        try:
            row = expand_row(obj)
            written = self._written(obj.get("seq0", obj.get("seq")))
            start = whole(obj.get("time0", obj.get("time")))
            start = start if is_safe_integer(start) else self._state.time
            if not (is_safe_integer(written + len(row.members)) and is_safe_integer(start + row.reach)):
                raise ValueError("packed row whose seqs or times leave the safe range")
        except ValueError as exc:
            self.lost()
            return str(exc)
        place = len(self._fold)
        self._number(written, len(row.members))
        self._events += [
            Event(type="assistant/chunk", seq=place + k, time=start + gap, data=data)
            for k, (data, gap) in enumerate(zip(row.members, row.gaps, strict=True))
        ]
        self._fold.pass_over(len(row.members))
        self._state.time = start + row.gaps[-1]
        return None

    def _take_event(self, kind: str, obj: dict[str, JSON]) -> None:
        state = self._state
        state.known = state.known or kind in _CORE
        seq = len(self._fold)
        written = self._written(obj.get("seq"))
        if kind not in MESSAGE_TYPES:
            self._take_log_only(kind, obj, written, seq)
            return
        links = _NO_LINKS if state.adrift else read_links(obj, self._numbering, seq)
        if state.adrift and _says_links(obj):
            self._note("a record was lost and the log has no seqs: links behind it were left out")
        self._number(written)
        core, data = upgrade(
            kind, obj.get("data", {}), self._message_id(obj, links, seq), self._call_of(links, seq)
        )
        changed = core != kind or data is not obj.get("data") or not links.sound or written != seq
        event = Event(
            type=core,
            seq=seq,
            time=self._time_of(obj),
            data=self._with_native(data, obj, changed and core != "tool/result"),
            ignorable=True if obj.get("ignorable") is True else UNSET,
        )
        placed, note = place_event(event, links, self._numbering, self._fold)
        if note is not None:
            self._note(note)
        if core == "tool/result":
            self._close_call(data)
        self._events.append(placed)

    def _take_log_only(self, kind: str, obj: dict[str, JSON], written: int, seq: int) -> None:
        state = self._state
        self._number(written)
        data = obj.get("data", {})
        core, upgraded = upgrade(kind, data, "", "")
        if kind == "session/title":
            upgraded = self._resolve_title(upgraded)
        elif kind == "session/end-seed":
            if state.seeded and isinstance(data, dict) and data.get("inherited") is True:
                state.inherited = seq
        elif kind == "tool/call":
            if isinstance(data, dict) and isinstance(call := data.get("callId"), str):
                state.calls[seq] = call
        elif kind in ("turn/start", "turn/end"):
            state.calls.clear()
        strange = obj.keys() - _ENVELOPE or _says_links(obj)
        changed = upgraded is not data or written != seq or bool(strange)
        self._emit(
            core,
            self._time_of(obj),
            self._with_native(upgraded, obj, changed),
            ignorable=obj.get("ignorable") is True,
        )

    def _emit(self, kind: str, time: int, data: JSON, *, ignorable: bool = False) -> None:
        """Append a log-only event at the next place."""
        self._state.time = time
        seq = len(self._fold)
        mark = True if ignorable else UNSET
        self._events.append(Event(type=kind, seq=seq, time=time, data=data, ignorable=mark))
        self._fold.pass_over(1)

    # Numbers.

    def _written(self, seq: JSON) -> int:
        """The seq a record was written with; without one, the next. Says whether links can be resolved."""
        value = whole(seq)
        if is_safe_integer(value) and value >= 0:
            self._state.adrift = False
            return value
        return self._numbering.next_written()

    def _number(self, written: int, count: int = 1) -> None:
        """The next ``count`` events, written from ``written`` on, stand at the next places."""
        place, state = len(self._fold), self._state
        self._numbering.put(written, place, count)
        seed = state.header.seed_length if state.header is not None else None
        if seed is not None and written < seed and place == state.inherited:
            state.inherited += min(count, seed - written)

    def _time_of(self, obj: dict[str, JSON]) -> int:
        time = whole(obj.get("time"))
        if is_safe_integer(time):
            self._state.time = time
        return self._state.time

    def _resolve_title(self, data: JSON) -> JSON:
        """A title names the messages it was made from by their written seqs."""
        seqs = data.get("messageSeqs") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(seqs, list):
            return data
        places: list[JSON] = []
        for seq in seqs:
            written = whole(seq)
            place = self._numbering.place_of(written) if is_safe_integer(written) else None
            if place is not None:
                places.append(place)
        return data if places == seqs else {**data, "messageSeqs": places}

    # Messages.

    def _message_id(self, obj: dict[str, JSON], links: Links, seq: int) -> str:
        """The id of a message without identity; a replacing result has that of what it replaces (1.8.7)."""
        own = f"legacy-message:{self._session_id()}:{seq}"
        if obj.get("type") != "tool/result" or links.op is None:
            return own
        target = self._numbering.place_of(links.op.start)
        if target is None:
            return own
        taken = self._state.result_ids.get(target, f"legacy-message:{self._session_id()}:{target}")
        self._state.result_ids[seq] = taken
        return taken

    def _call_of(self, links: Links, seq: int) -> str:
        """The open call that a result cites; a name of its own if it cites none."""
        sources = [] if links.sources is UNSET else links.sources
        calls = self._state.calls
        return next((calls[place] for place in sources if place in calls), f"legacy-call:{seq}")

    def _close_call(self, data: JSON) -> None:
        message = data.get("message") if isinstance(data, dict) else None
        source = message.get("source") if isinstance(message, dict) else None
        closed = source.get("callId") if isinstance(source, dict) else None
        for place in [place for place, call in self._state.calls.items() if call == closed]:
            del self._state.calls[place]

    def _with_native(self, data: JSON, obj: dict[str, JSON], changed: bool) -> JSON:
        """An event that says less than its record, or something else, carries the record whole."""
        return {**data, "native": obj} if changed and isinstance(data, dict) else data

    def _note(self, note: str) -> None:
        if self._state.noted < NOTES_MAX:
            self._state.noted += 1
            self._notes.append(note)


def _says_links(obj: dict[str, JSON]) -> bool:
    return "sourceEventSeqs" in obj or obj.get("surfaceOp", "append") != "append"
