"""Factory Droid records to core events: stored sessions and ``--output-format stream-json`` captures."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ....protocol.whitespace import is_blank, trim
from ..api_content import Answered, Called, content_parts, plain_text
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import USER, dict_of, first_text, json_text, text_block, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..native_name import native_name
from ..record_table import Entry, RecordRows, RecordTable
from ..seam import Refusal, SessionDelta

FORMAT: Final = "droid"
VERSION: Final = 1

_INJECTED: Final[dict[str, JSON]] = {"kind": "plugin", "plugin": FORMAT}
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_UNNAMED: Final = frozenset(("", "New Session"))
_STREAM: Final = frozenset(("tool_call", "tool_result", "completion"))


class DroidState(msgspec.Struct):
    log: LogState
    rows: RecordRows = msgspec.field(default_factory=RecordRows)
    model: str = ""
    said: str = ""
    """The last answer of a capture: its completion repeats it."""
    settled: bool = False
    known: bool = False


class DroidMapper:
    """One log, one session. Has one owner; ``start`` is the time of records before the first time."""

    def __init__(self, fallback_id: str, saved: bytes | None, start: int) -> None:
        fresh = DroidState(LogState(id=fallback_id))
        self._state = fresh if saved is None else unpack_state(VERSION, saved, DroidState)
        self.log = SessionLog(FORMAT, self._state.log, start)
        self._table = RecordTable(self._state.rows)

    def time_of(self, obj: dict[str, JSON]) -> int | None:
        return epoch_ms(obj.get("timestamp"))

    def feed(self, record: Record) -> str | None:
        obj, log, state = record.obj, self.log, self._state
        state.known = state.known or _is_droid(obj)
        if not state.settled:  # by the first record alone, so that an id never changes
            state.settled = True
            log.state.id = _session_id(obj) or log.state.id
        log.begin(obj, self.time_of(obj))
        log.state.cwd = log.state.cwd or text_of(obj.get("cwd")) or None
        first = log.state.next_seq
        if isinstance(obj.get("message"), dict):
            self._stored(obj)
        else:
            self._other(obj)
        log.finish(native_name(obj.get("type"), obj.get("subtype")), text_of(obj.get("summaryText")))
        self._table.put(text_of(obj.get("id")) or None, Entry(0, first, -1, 0, 0))
        return None

    def _stored(self, obj: dict[str, JSON]) -> None:
        message = dict_of(obj["message"])
        if obj.get("type") == "message":
            self._message(obj, text_of(message.get("role")), message.get("content"))

    def _message(self, obj: dict[str, JSON], role: str, content: JSON) -> None:
        log, record_id = self.log, text_of(obj.get("id"))
        parent = self._table.get(text_of(obj.get("parentId")) or None)
        sources = [] if parent is None else [parent.first]
        typed = trim(_REMINDER.sub("", plain_text(content)))
        for part in content_parts(content):
            if isinstance(part, Called):
                log.call(part.call_id, part.name, json_text(part.arguments))
            elif isinstance(part, Answered):
                log.result(part.call_id, part.blocks, is_error=part.is_error)
            elif role == "user":
                # A message that holds nothing but reminders was put there by the program.
                only_reminders = not typed and not is_blank(plain_text(content))
                source = _INJECTED if only_reminders else USER
                log.user(part.blocks, source, message_id=record_id, sources=sources, typed=typed)
            elif role == "assistant":
                model = text_of(dict_of(obj.get("message")).get("model")) or self._state.model
                log.assistant(part.blocks, model=model, message_id=record_id, sources=sources)
                self._state.said = plain_text(content)

    def _other(self, obj: dict[str, JSON]) -> None:
        kind, log = obj.get("type"), self.log
        if kind == "session_start":
            title = first_text(obj.get("sessionTitle"), obj.get("title"))
            if title not in _UNNAMED:
                log.title(title, {"kind": "provider", "provider": FORMAT})
        elif kind == "system":
            self._state.model = text_of(obj.get("model")) or self._state.model
        elif kind == "message":
            self._message(obj, text_of(obj.get("role")), obj.get("text"))
        elif kind == "reasoning" and (text := text_of(obj.get("text"))):
            log.assistant([{"type": "reasoning", "text": text}], model=self._state.model)
        elif kind == "tool_call":
            name = first_text(obj.get("toolName"), obj.get("toolId"))
            log.call(_call_id(obj), name, json_text(obj.get("parameters", {})))
        elif kind == "tool_result":
            failed = obj.get("isError")
            text = _value_text(obj.get("value"))
            blocks: list[JSON] = [text_block(text)] if text else []
            log.result(_call_id(obj), blocks, is_error=failed if isinstance(failed, bool) else None)
        elif kind == "completion":
            text = text_of(obj.get("finalText"))
            if text != self._state.said and (final := text_blocks(text)):
                log.assistant(final, model=self._state.model)
            log.turn_end("completed")
        elif kind == "error":
            log.turn_end("error", text=text_of(obj.get("message")), code=text_of(obj.get("code")))

    def take(self) -> list[SessionDelta]:
        delta = self.log.take() if self._state.known else None
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        self._state.rows = self._table.rows()
        return pack_state(VERSION, self._state)

    def verdict(self) -> bool | Refusal:
        return self._state.known


def _session_id(obj: dict[str, JSON]) -> str:
    if obj.get("type") == "session_start":
        return text_of(obj.get("id"))
    return first_text(obj.get("session_id"), obj.get("sessionId"))


def _call_id(obj: dict[str, JSON]) -> str:
    return first_text(obj.get("toolCallId"), obj.get("id"))


def _is_droid(obj: dict[str, JSON]) -> bool:
    kind = obj.get("type")
    if kind == "session_start":
        return "id" in obj
    if kind == "message":
        inner = obj.get("message")
        return isinstance(inner, dict) and "role" in inner if inner is not None else "role" in obj
    is_stream = isinstance(kind, str) and kind in _STREAM
    return is_stream and bool(first_text(obj.get("session_id"), obj.get("sessionId")))


def _value_text(value: JSON) -> str:
    """What a tool gave back: its text, or what a command printed, or the value as JSON."""
    outcome = dict_of(value)
    printed = [text for key in ("stdout", "stderr") if (text := text_of(outcome.get(key)))]
    return "\n".join(printed) if printed else json_text(value)
