"""Qwen Code records to core events (README.md has the table)."""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from ....protocol.json_codec import encode_json
from ....protocol.json_value import JSON
from ....protocol.text import join_parts
from ..api_content import Answered, Called
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import USER, dict_of, json_text, list_of, text_block, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..native_name import native_name
from ..record_table import Entry, RecordRows, RecordTable
from ..seam import Refusal, SessionDelta
from .parts import message_parts

FORMAT: Final = "qwen"
VERSION: Final = 1
NOTE_REWIND: Final = "a rewind leads to a message that is no longer visible; what it left stays unmarked"

_INJECTED: Final[dict[str, JSON]] = {"kind": "plugin", "plugin": FORMAT}
_TYPED: Final = (None, "mid_turn_user_message")
"""Subtypes of ``user`` records that a person wrote."""
_GENERATED, _MANUAL = 1, 2


class QwenState(msgspec.Struct):
    log: LogState
    rows: RecordRows = msgspec.field(default_factory=RecordRows)
    title_rank: int = 0
    title: str = ""
    known: bool = False


class QwenMapper:
    """One log, one session. Has one owner; ``start`` is the time of records before the first time."""

    def __init__(self, session_id: str, saved: bytes | None, start: int) -> None:
        fresh = QwenState(LogState(id=session_id))
        self._state = fresh if saved is None else unpack_state(VERSION, saved, QwenState)
        self.log = SessionLog(FORMAT, self._state.log, start)
        self._table = RecordTable(self._state.rows)

    def time_of(self, obj: dict[str, JSON]) -> int | None:
        return epoch_ms(obj.get("timestamp"))

    def feed(self, record: Record) -> str | None:
        obj, log = record.obj, self.log
        self._state.known = self._state.known or _is_qwen(obj)
        log.begin(obj, self.time_of(obj))
        log.state.cwd = log.state.cwd or text_of(obj.get("cwd")) or None
        kind, first, before = obj.get("type"), log.state.next_seq, len(log.state.surface)
        digest = crc32(encode_json([kind, obj.get("message"), obj.get("systemPayload")]))
        parent = self._table.get(text_of(obj.get("parentUuid")) or None)
        known = self._table.get(text_of(obj.get("uuid")) or None)
        if known is None or known.digest != digest:
            if kind == "system":
                self._system(obj, dict_of(obj.get("systemPayload")), parent)
            elif kind in ("user", "assistant", "tool_result"):
                self._message(obj, [] if parent is None else [parent.first])
        log.finish(native_name(kind, obj.get("subtype")), _log_text(obj))
        nodes = max(0, len(log.state.surface) - before)
        last = log.state.surface[-1] if log.state.surface else -1
        self._table.put(text_of(obj.get("uuid")) or None, Entry(0, first, last, nodes, digest))
        return None

    def _message(self, obj: dict[str, JSON], parent: list[int]) -> None:
        log, model = self.log, text_of(obj.get("model"))
        payload = dict_of(obj.get("systemPayload"))
        for part in message_parts(obj.get("message"), obj.get("toolCallResult")):
            if isinstance(part, Called):
                log.call(part.call_id, part.name, json_text(part.arguments))
            elif isinstance(part, Answered):
                log.result(part.call_id, part.blocks, is_error=part.is_error)
            elif obj.get("type") == "assistant":
                log.assistant(part.blocks, model=model, message_id=_id(obj), sources=parent)
            else:
                typed = obj.get("type") == "user" and obj.get("subtype") in _TYPED
                log.user(
                    part.blocks,
                    USER if typed else _INJECTED,
                    message_id=_id(obj),
                    sources=parent,
                    typed=text_of(payload.get("displayText")),
                )

    def _system(self, obj: dict[str, JSON], payload: dict[str, JSON], parent: Entry | None) -> None:
        subtype = obj.get("subtype")
        if subtype == "custom_title":
            self._title(payload)
        elif subtype == "rewind":
            self._rewind(payload, parent)
        elif subtype == "chat_compression":
            self._compress(payload)

    def _title(self, payload: dict[str, JSON]) -> None:
        """A person's title wins over a generated one, on the branch the session is on."""
        text, state = text_of(payload.get("customTitle")), self._state
        rank = _GENERATED if payload.get("titleSource") == "auto" else _MANUAL
        if not text or rank < state.title_rank or text == state.title:
            return
        state.title_rank, state.title = rank, text
        generated: dict[str, JSON] = {"kind": "provider", "provider": FORMAT}
        self.log.title(text, generated if rank == _GENERATED else {"kind": "user"})

    def _rewind(self, payload: dict[str, JSON], parent: Entry | None) -> None:
        """The named message stays; what the model saw behind it gives way to the next message."""
        target = self._table.get(text_of(payload.get("targetUuid")) or None) or parent
        surface = self.log.state.surface
        self._state.title_rank = 0  # a title of the branch that was left does not outrank later ones
        if target is None or (target.anchor >= 0 and target.anchor not in surface):
            self.log.note(NOTE_REWIND)
            return
        start = surface.index(target.anchor) + 1 if target.anchor >= 0 else 0
        if start < len(surface):
            self.log.visible.abandon_from(surface[start])

    def _compress(self, payload: dict[str, JSON]) -> None:
        """The compressed history is what the model sees from now on, and nothing else."""
        blocks: list[JSON] = [
            text_block(text)
            for content in list_of(payload.get("compressedHistory"))
            for part in list_of(dict_of(content).get("parts"))
            if (text := text_of(dict_of(part).get("text"))) and dict_of(part).get("thought") is not True
        ]
        if blocks:
            self.log.compact(blocks)

    def take(self) -> list[SessionDelta]:
        delta = self.log.take() if self._state.known else None
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        self._state.rows = self._table.rows()
        return pack_state(VERSION, self._state)

    def verdict(self) -> bool | Refusal:
        return self._state.known


def _id(obj: dict[str, JSON]) -> str:
    return text_of(obj.get("uuid"))


def _is_qwen(obj: dict[str, JSON]) -> bool:
    kind = obj.get("type")
    if kind == "system":
        return "systemPayload" in obj or ("subtype" in obj and "sessionId" in obj)
    return kind in ("user", "assistant", "tool_result") and "parts" in dict_of(obj.get("message"))


def _log_text(obj: dict[str, JSON]) -> str:
    """Commands a person ran and what they showed; errors of the service (README.md, "Text")."""
    payload = dict_of(obj.get("systemPayload"))
    if obj.get("subtype") == "slash_command":
        shown = [text_of(dict_of(item).get("text")) for item in list_of(payload.get("outputHistoryItems"))]
        return join_parts([text_of(payload.get("rawCommand")), *shown])
    if obj.get("subtype") == "ui_telemetry":
        return join_parts([text_of(dict_of(payload.get("uiEvent")).get("error_message"))])
    return ""
