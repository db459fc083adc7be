"""The balanced view of a log whose writer died inside a turn (SPEC 1.7).

Nothing is written: the closers are events that a reader appends to what is stored. The service shows
them in traces and reads and never indexes them, and only when no writer holds the log (SPEC 16.6.6).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import attrs
import msgspec

from .event import Event
from .json_codec import JsonError, decode_json, encode_json
from .json_value import JSON, is_safe_integer, whole
from .text import member

Outcome: TypeAlias = Literal["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]

_TEXTS: Final[dict[Outcome, tuple[str, str]]] = {
    "TOOL_OUTCOME_UNKNOWN": (
        "ToolOutcomeUnknownError",
        "This tool call was started, but the session ended before its result was recorded. Its outcome is"
        " unknown: verify its side effects before retrying.",
    ),
    "TOOL_NOT_STARTED": (
        "ToolNotStartedError",
        "This tool call was requested, but the session ended before it was started. It is safe to retry if"
        " it is still needed.",
    ),
}


_Number: TypeAlias = int | None


@attrs.define
class _Call:
    """A call without a result: its message's turn and step, and its ``tool/call`` if there was one."""

    turn: _Number
    step: _Number
    call_seq: _Number = None


_Calls: TypeAlias = list[tuple[str, _Number, _Number, _Number]]
_State: TypeAlias = tuple[int, int, tuple[_Number] | None, tuple[_Number, _Number] | None, _Calls]


class RepairTracker:
    """Follows one log event by event and knows, at any point, what would close it."""

    def __init__(self) -> None:
        self._length = 0
        self._time = 0
        self._turn: tuple[_Number] | None = None
        self._step: tuple[_Number, _Number] | None = None
        self._calls: dict[str, _Call] = {}

    def feed(self, event: Event) -> None:
        """Take the next stored event (SPEC 1.7.1)."""
        self._length, self._time = event.seq + 1, event.time
        kind = event.type
        if kind == "assistant/message":
            self._register(event.data)
        elif kind == "tool/call":
            call = self._find(member(event.data, "callId"))
            if call is not None:
                call.call_seq = event.seq
        elif kind == "tool/result":
            call_id = member(member(member(event.data, "message"), "source"), "callId")
            if isinstance(call_id, str):
                self._calls.pop(call_id, None)
        elif kind == "step/start":
            self._step = (_number(event.data, "turn"), _number(event.data, "step"))
        elif kind in ("turn/start", "turn/end", "step/end"):
            self._calls.clear()
            self._step = None
            if kind != "step/end":
                self._turn = (_number(event.data, "turn"),) if kind == "turn/start" else None

    def _register(self, data: JSON) -> None:
        content = member(member(data, "message"), "content")
        for block in content if isinstance(content, list) else ():
            call_id = member(block, "id")
            if member(block, "type") == "tool-call" and isinstance(call_id, str):
                self._calls[call_id] = _Call(_number(data, "turn"), _number(data, "step"))

    def _find(self, call_id: JSON) -> _Call | None:
        return self._calls.get(call_id) if isinstance(call_id, str) else None

    @property
    def open_turn(self) -> bool:
        """True while a turn is open: only then is there anything to close (SPEC 1.7.2)."""
        return self._turn is not None

    def closers(self) -> list[Event]:
        """The events that balance the log, with consecutive seqs and the last event's time (SPEC 1.7.3)."""
        if self._turn is None:
            return []
        closing: list[Event] = []
        for call_id, call in self._calls.items():
            closing.append(_result(self._length + len(closing), self._time, call_id, call))
        if self._step is not None:
            turn, step = self._step
            closing.append(self._closer(len(closing), "step/end", {"turn": turn, "step": step}))
        end: JSON = {"turn": self._turn[0], "reason": {"kind": "interrupted"}}
        closing.append(self._closer(len(closing), "turn/end", end))
        return closing

    def _closer(self, offset: int, type_: str, data: JSON) -> Event:
        return Event(type=type_, seq=self._length + offset, time=self._time, data=data)

    def snapshot(self) -> bytes:
        """The state as bytes, to go on later without the log."""
        calls: list[JSON] = [[i, call.turn, call.step, call.call_seq] for i, call in self._calls.items()]
        turn: list[JSON] | None = None if self._turn is None else list(self._turn)
        step: list[JSON] | None = None if self._step is None else list(self._step)
        return encode_json([self._length, self._time, turn, step, calls])

    @classmethod
    def restore(cls, state: bytes) -> RepairTracker:
        """A tracker that goes on where ``snapshot`` was taken. Raises: ValueError for other bytes."""
        try:
            length, time, turn, step, calls = msgspec.convert(decode_json(state), _State)
        except (msgspec.MsgspecError, JsonError) as exc:
            raise ValueError("not the state of a repair tracker") from exc
        tracker = cls()
        tracker._length, tracker._time, tracker._turn, tracker._step = length, time, turn, step
        tracker._calls = {call_id: _Call(turn_, step_, seq) for call_id, turn_, step_, seq in calls}
        return tracker


def repaired(events: Iterable[Event]) -> list[Event]:
    """The log with its closers; itself if no turn is open (SPEC 1.7)."""
    tracker = RepairTracker()
    view: list[Event] = []
    for event in events:
        tracker.feed(event)
        view.append(event)
    return view + tracker.closers()


def _number(data: JSON, key: str) -> _Number:
    """A turn or step number as the log names it; None where it names none."""
    value = whole(member(data, key))
    return value if is_safe_integer(value) else None


def _result(seq: int, time: int, call_id: str, call: _Call) -> Event:
    outcome: Outcome = "TOOL_NOT_STARTED" if call.call_seq is None else "TOOL_OUTCOME_UNKNOWN"
    name, text = _TEXTS[outcome]
    block: JSON = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": text}],
        "isError": True,
    }
    data: JSON = {
        "turn": call.turn,
        "step": call.step,
        "message": {
            "id": f"interrupted-tool-result-{call_id}-{seq}",
            "role": "user",
            "source": {"kind": "tool", "callId": call_id},
            "content": [block],
        },
        "error": {"name": name, "code": outcome},
    }
    if call.call_seq is None:
        return Event(type="tool/result", seq=seq, time=time, data=data, surface_op="append")
    return Event(
        type="tool/result",
        seq=seq,
        time=time,
        data=data,
        surface_op="append",
        source_event_seqs=[call.call_seq],
    )
