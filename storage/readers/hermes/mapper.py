"""Hermes sessions to core events: messages in OpenAI style, from a document, lines or rows (README.md)."""

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

FORMAT: Final = "hermes"
VERSION: Final = 1
_PROVIDER: Final = {"kind": "provider", "provider": FORMAT}
_ROLES: Final = frozenset(("user", "assistant", "tool", "system", "session_meta"))


class HermesState(msgspec.Struct):
    log: LogState
    known: bool = False
    model: str = ""
    title: str = ""
    updated: int = 0


class HermesMapper:
    """One session. See ``Mapper``."""

    def __init__(self, fallback_id: str, saved: bytes | None, *, fallback_ms: int = 0) -> None:
        """Raises: ValueError: ``saved`` is no state of this version."""
        if saved is None:
            self._state = HermesState(LogState(id=fallback_id))
        else:
            self._state = unpack_state(VERSION, saved, HermesState)
        self.log = SessionLog(FORMAT, self._state.log, fallback_ms)

    def feed(self, record: Record) -> str | None:
        obj = record.obj
        messages = obj.get("messages")
        if isinstance(messages, list) and "role" not in obj:
            self.header({key: value for key, value in obj.items() if key != "messages"})
            for message in messages:
                if isinstance(message, dict):
                    self.message(message)
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
        """A document without its messages, or the session's row."""
        state, log = self._state, self._state.log
        state.known = state.known or isinstance(obj.get("session_id"), str) or "started_at" in obj
        started = epoch_ms(obj.get("session_start") or obj.get("started_at"))
        log.id = first_text(obj.get("session_id"), obj.get("id"), log.id)
        log.cwd = first_text(obj.get("cwd"), dict_of(obj.get("model_config")).get("cwd")) or None
        log.created_at = started if started is not None and started >= 0 else None
        log.parent = text_of(obj.get("parent_session_id")) or None
        state.model = text_of(obj.get("model"))
        state.title = text_of(obj.get("title"))
        state.updated = epoch_ms(obj.get("last_updated") or obj.get("ended_at")) or started or 0
        self.log.begin(obj, started)
        self.log.finish("session")

    def message(self, obj: dict[str, JSON]) -> None:
        role = text_of(obj.get("role"))
        self._state.known = self._state.known or (
            role in _ROLES and ("timestamp" in obj or role == "session_meta")
        )
        self.log.begin(obj, epoch_ms(obj.get("timestamp")))
        blocks = _blocks(obj.get("content"))
        if role == "user":
            self.log.user(blocks)
        elif role == "system":
            self.log.user(blocks, {"kind": "system"})
        elif role == "assistant":
            self._answer(obj, blocks)
        elif role == "tool":
            failed = obj.get("finish_reason") == "error"
            call_id = first_text(obj.get("tool_call_id"), f"name:{text_of(obj.get('tool_name'))}")
            self.log.result(call_id, blocks, is_error=True if failed else None)
        self.log.finish(role or "unknown")

    def _answer(self, obj: dict[str, JSON], blocks: list[JSON]) -> None:
        calls = list_of(obj.get("tool_calls"))
        if blocks or not calls:
            self.log.assistant(blocks, model=self._state.model)
        for call in map(dict_of, calls):
            function = dict_of(call.get("function"))
            call_id = first_text(call.get("id"), call.get("call_id"))
            arguments = json_text(function.get("arguments"))
            self.log.call(call_id, text_of(function.get("name")), arguments)


def _blocks(content: JSON) -> list[JSON]:
    """Content is text or a list of parts."""
    if isinstance(content, str):
        return text_blocks(content)
    blocks: list[JSON] = []
    for part in map(dict_of, list_of(content)):
        if part.get("type") in ("text", "input_text", "output_text"):
            blocks += text_blocks(text_of(part.get("text")))
        elif part.get("type") in ("image_url", "input_image"):
            blocks.append(image_block(kind=part.get("type")))
    return blocks
