"""Copilot CLI events to core events; work of sub-agents becomes sessions of its own (README.md)."""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import USER, dict_of, first_text, json_text, list_of, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..native_name import native_name
from ..record_table import CallRows, CallTable, Entry, RecordRows, RecordTable
from ..seam import Refusal, SessionDelta

FORMAT: Final = "copilot"
VERSION: Final = 1
AGENTS_MAX: Final = 128
"""Sub-agents of one log that become sessions; what those beyond do stays in the main one."""
NOTE_TRUNCATED: Final = "the context was truncated; which messages went is not recorded"
NOTE_REWIND: Final = "a rewind names an event that is not known; what it left stays unmarked"

_INJECTED: Final[dict[str, JSON]] = {"kind": "plugin", "plugin": FORMAT}
_PEOPLE: Final = frozenset(("", "user", "human"))
_TEXT: Final = {
    "session.info": "message",
    "session.warning": "message",
    "session.error": "message",
    "system.notification": "content",
}
"""Events that are no core events and the field of theirs that people search for."""


class CopilotState(msgspec.Struct):
    logs: list[LogState]
    agents: dict[str, int] = {}
    rows: RecordRows = msgspec.field(default_factory=RecordRows)
    calls: CallRows = msgspec.field(default_factory=CallRows)
    names: dict[str, str] = {}
    """What sub-agents are called that have been started but have done nothing yet."""
    settled: bool = False
    known: bool = False


class CopilotMapper:
    """One log: a main session and one for each sub-agent. Has one owner.

    ``start`` is the time of events before the first time.
    """

    def __init__(self, fallback_id: str, saved: bytes | None, start: int) -> None:
        fresh = CopilotState([LogState(id=fallback_id)])
        self._state = fresh if saved is None else unpack_state(VERSION, saved, CopilotState)
        self._logs = [SessionLog(FORMAT, log, start) for log in self._state.logs]
        self._table = RecordTable(self._state.rows)
        self._calls = CallTable(self._state.calls)

    def time_of(self, obj: dict[str, JSON]) -> int | None:
        return epoch_ms(obj.get("timestamp"))

    def feed(self, record: Record) -> str | None:
        obj, state = record.obj, self._state
        data, kind = dict_of(obj.get("data")), text_of(obj.get("type"))
        state.known = state.known or _is_copilot(obj)
        if not state.settled:  # by the first event alone, so that an id never changes
            state.settled = True
            self._logs[0].state.id = text_of(data.get("sessionId")) or self._logs[0].state.id
        lane = self._lane(data, self.time_of(obj))
        log = self._logs[lane]
        log.begin(obj, self.time_of(obj))
        first = log.state.next_seq
        parent = self._table.get(text_of(obj.get("parentId")) or None)
        sources = [parent.first] if parent is not None and parent.lane == lane else []
        self._event(lane, kind, data, text_of(obj.get("id")), sources)
        log.finish(native_name(kind), text_of(data.get(_TEXT.get(kind, ""))))
        self._table.put(text_of(obj.get("id")) or None, Entry(lane, first, -1, 0, 0))
        return None

    def _lane(self, data: dict[str, JSON], time: int | None) -> int:
        """The session of an event: a sub-agent's events name the call that started it."""
        call = text_of(data.get("parentToolCallId"))
        if not call:
            return 0
        lane = self._state.agents.get(call)
        if lane is None and len(self._logs) <= AGENTS_MAX:
            lane = self._state.agents[call] = len(self._logs)
            main = self._logs[0].state
            child = LogState(
                id=f"{main.id}/{call}",
                cwd=main.cwd,
                parent=main.id,
                origin="subagent",
                depth=1,
                time=main.time if time is None else time,
            )
            log = SessionLog(FORMAT, child)
            self._state.logs.append(child)
            self._logs.append(log)
            name = self._state.names.pop(call, "")
            log.report_title(name, log.now, {"kind": "provider", "provider": FORMAT})
        return lane or 0

    def _event(self, lane: int, kind: str, data: dict[str, JSON], event_id: str, sources: list[int]) -> None:
        log = self._logs[lane]
        if kind in ("session.start", "session.resume"):
            log.state.cwd = log.state.cwd or text_of(dict_of(data.get("context")).get("cwd")) or None
        elif kind == "user.message":
            self._prompt(log, data, event_id, sources)
        elif kind == "assistant.message":
            self._answer(lane, data, event_id, sources)
        elif kind == "tool.execution_start":
            self._call(lane, data.get("toolCallId"), data.get("toolName"), data.get("arguments", {}))
        elif kind == "tool.execution_complete":
            _result(log, data)
        elif kind == "assistant.turn_start":
            log.step_start()
        elif kind == "assistant.turn_end":
            log.step_end()
        elif kind == "abort":
            log.turn_end("aborted")
        elif kind == "session.title_changed":
            log.title(text_of(data.get("title")), {"kind": "provider", "provider": FORMAT})
        else:
            self._history(log, kind, data)

    def _prompt(self, log: SessionLog, data: dict[str, JSON], event_id: str, sources: list[int]) -> None:
        """What was typed; a message nobody typed (a nudge to go on) stands only in what was sent."""
        typed, sent = text_of(data.get("content")), text_of(data.get("transformedContent"))
        person = bool(typed) and text_of(data.get("source")) in _PEOPLE
        blocks = text_blocks(typed or sent)
        blocks += [{"type": "file"} for item in list_of(data.get("attachments")) if isinstance(item, dict)]
        if blocks:
            log.user(blocks, USER if person else _INJECTED, message_id=event_id, sources=sources)

    def _answer(self, lane: int, data: dict[str, JSON], event_id: str, sources: list[int]) -> None:
        thought, said = text_of(data.get("reasoningText")), text_of(data.get("content"))
        blocks: list[JSON] = [{"type": "reasoning", "text": thought}] if thought else []
        blocks += text_blocks(said)
        if blocks:
            model = text_of(data.get("model"))
            self._logs[lane].assistant(blocks, model=model, message_id=event_id, sources=sources)
        for item in list_of(data.get("toolRequests")):
            request = dict_of(item)
            self._call(lane, request.get("toolCallId"), request.get("name"), request.get("arguments", {}))

    def _call(self, lane: int, call_id: JSON, name: JSON, arguments: JSON) -> None:
        """A call is announced by the answer and again when it starts; the first one counts."""
        found = text_of(call_id)
        if found and self._calls.get(lane, found) is not None:
            return
        seq = self._logs[lane].call(found, text_of(name), json_text(arguments))
        if found:
            self._calls.put(lane, found, seq)

    def _history(self, log: SessionLog, kind: str, data: dict[str, JSON]) -> None:
        if kind == "session.truncation":
            log.note(NOTE_TRUNCATED)
        elif kind == "session.compaction_complete":
            blocks = text_blocks(text_of(data.get("summaryContent")))
            if blocks and data.get("success") is not False:
                log.compact(blocks)
        elif kind == "session.snapshot_rewind":
            self._rewind(log, text_of(data.get("upToEventId")))
        elif kind == "subagent.started":
            self._name_agent(data)

    def _rewind(self, log: SessionLog, event_id: str) -> None:
        """The named event and all behind it were taken back."""
        entry = self._table.get(event_id or None)
        if entry is None or entry.lane != 0:
            log.note(NOTE_REWIND)
            return
        log.visible.abandon_since(entry.first)

    def _name_agent(self, data: dict[str, JSON]) -> None:
        """A sub-agent's session is called by what the agent is."""
        call = text_of(data.get("toolCallId"))
        name = first_text(data.get("agentDisplayName"), data.get("agentName"))
        if call and name and len(self._state.names) < AGENTS_MAX:
            self._state.names[call] = name

    def take(self) -> list[SessionDelta]:
        if not self._state.known:
            return []
        return [delta for log in self._logs if (delta := log.take()) is not None]

    def state(self) -> bytes:
        self._state.rows, self._state.calls = self._table.rows(), self._calls.rows()
        return pack_state(VERSION, self._state)

    def verdict(self) -> bool | Refusal:
        return self._state.known


def _result(log: SessionLog, data: dict[str, JSON]) -> None:
    success = data.get("success")
    result, error = dict_of(data.get("result")), data.get("error")
    text = first_text(result.get("content"), dict_of(error).get("message"), error)
    failed = not success if isinstance(success, bool) else None
    log.result(text_of(data.get("toolCallId")), text_blocks(text), is_error=failed)


def _is_copilot(obj: dict[str, JSON]) -> bool:
    kind = obj.get("type")
    if not isinstance(kind, str) or not isinstance(obj.get("data"), dict) or "id" not in obj:
        return False
    return kind == "abort" or kind.split(".")[0] in (
        "session",
        "user",
        "assistant",
        "tool",
        "system",
        "subagent",
        "hook",
    )
