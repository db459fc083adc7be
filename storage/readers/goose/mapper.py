"""Goose sessions to core events: JSONL logs of older builds and rows of the database (README.md)."""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, image_block, json_text, list_of, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..seam import Refusal, SessionDelta

FORMAT: Final = "goose"
VERSION: Final = 1
_PROVIDER: Final = {"kind": "provider", "provider": FORMAT}


class GooseState(msgspec.Struct):
    log: LogState
    known: bool = False
    title: str = ""
    updated: int = 0


class GooseMapper:
    """One session. Messages are lines, or rows made to look like them (``database.py``)."""

    def __init__(self, fallback_id: str, saved: bytes | None, *, fallback_ms: int = 0) -> None:
        """Raises: ValueError: ``saved`` is no state of this version."""
        if saved is None:
            self._state = GooseState(LogState(id=fallback_id))
        else:
            self._state = unpack_state(VERSION, saved, GooseState)
        self.log = SessionLog(FORMAT, self._state.log, fallback_ms)

    def feed(self, record: Record) -> str | None:
        obj = record.obj
        if "role" not in obj and ("working_dir" in obj or "description" in obj or "message_count" in obj):
            self.header(obj)
        else:
            self.message(obj)
        return None

    def take(self) -> list[SessionDelta]:
        if not self._state.known:
            return []
        self.log.report_title(self._state.title, self._state.updated, _PROVIDER)
        delta = self.log.take()
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        return pack_state(VERSION, self._state)

    def verdict(self) -> bool | Refusal:
        return self._state.known

    def header(self, obj: dict[str, JSON]) -> None:
        """The first line, or the session's row. A later line of the kind tells the title anew."""
        state, log = self._state, self._state.log
        state.known = True
        created = epoch_ms(obj.get("created_at"))
        if log.next_seq == 0:
            log.id = text_of(obj.get("id")) or log.id
            log.cwd = text_of(obj.get("working_dir")) or None
            log.created_at = created if created is not None and created >= 0 else None
            if obj.get("session_type") == "sub_agent":
                log.origin = "subagent"
        log.parent = log.parent or text_of(obj.get("parent_session_id")) or None
        state.title = first_text(obj.get("description"), obj.get("name"), state.title)
        state.updated = epoch_ms(obj.get("updated_at")) or created or 0
        self.log.begin(obj, created if log.time is None else None)
        self.log.finish("session")

    def message(self, obj: dict[str, JSON]) -> None:
        role, parts = text_of(obj.get("role")), list_of(obj.get("content"))
        if isinstance(obj.get("content"), str):
            parts = [{"type": "text", "text": obj["content"]}]
        self._state.known = self._state.known or (role in ("user", "assistant") and "created" in obj)
        self.log.begin(obj, epoch_ms(obj.get("created")))
        self._say(role, obj, _blocks(parts))
        for part in map(dict_of, parts):
            self._tool(part)
        self.log.finish(role or "unknown")

    def _say(self, role: str, obj: dict[str, JSON], blocks: list[JSON]) -> None:
        message_id = text_of(obj.get("id"))
        if not blocks or role not in ("user", "assistant"):
            return
        if role == "assistant":
            self.log.assistant(blocks, message_id=message_id)
            return
        hidden = dict_of(obj.get("metadata")).get("userVisible") is False
        self.log.user(blocks, {"kind": "context"} if hidden else {"kind": "user"}, message_id=message_id)

    def _tool(self, part: dict[str, JSON]) -> None:
        call_id, kind = text_of(part.get("id")), part.get("type")
        if kind in ("toolRequest", "frontendToolRequest"):
            call = dict_of(part.get("toolCall"))
            value = dict_of(call.get("value"))
            arguments = value.get("arguments") if value else call.get("error")
            self.log.call(call_id, text_of(value.get("name")), json_text(arguments))
        elif kind == "toolResponse":
            result = dict_of(part.get("toolResult"))
            answer = result.get("value")
            content = dict_of(answer).get("content", answer)
            failed = result.get("status") == "error" or dict_of(answer).get("isError") is True
            blocks = _blocks(list_of(content)) + text_blocks(text_of(result.get("error")))
            self.log.result(call_id, blocks, is_error=True if failed else None)


def _blocks(parts: list[JSON]) -> list[JSON]:
    """Text and pictures, in order; thinking, requests and responses are left out."""
    blocks: list[JSON] = []
    for part in map(dict_of, parts):
        kind = part.get("type")
        if kind == "text":
            blocks += text_blocks(text_of(part.get("text")))
        elif kind == "image":
            blocks.append(image_block(mediaType=part.get("mimeType")))
        elif kind == "resource":
            blocks += text_blocks(text_of(dict_of(part.get("resource")).get("text")))
    return blocks
