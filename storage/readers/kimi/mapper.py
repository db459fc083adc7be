"""Kimi's logs to core events: the wire of Kimi Code, the wire and the context of Kimi CLI (README.md)."""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.json_value import JSON, is_safe_integer
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, json_text, list_of, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..seam import Refusal, SessionDelta
from .content import blocks_of, output_blocks
from .places import Beside

FORMAT: Final = "kimi"
VERSION: Final = 1
_PROVIDER: Final = {"kind": "provider", "provider": FORMAT}
_GROUPS: Final = (
    "context.",
    "turn.",
    "config.",
    "llm.",
    "usage.",
    "tools.",
    "full_compaction.",
    "permission.",
)
_CONTEXT_ROLES: Final = frozenset(("user", "assistant", "tool", "system", "_checkpoint", "_usage"))


class KimiState(msgspec.Struct):
    log: LogState
    known: bool = False
    model: str = ""


class KimiMapper:
    """One log, one session. See ``Mapper``."""

    def __init__(self, beside: Beside, saved: bytes | None) -> None:
        """Raises: ValueError: ``saved`` is no state of this version."""
        self._beside = beside
        if saved is None:
            log = LogState(id=beside.session_id, parent=beside.parent, created_at=beside.created_ms)
            if beside.parent is not None:
                log.origin, log.depth = "subagent", 1
            self._state = KimiState(log)
        else:
            self._state = unpack_state(VERSION, saved, KimiState)
        self._state.log.cwd = beside.cwd or self._state.log.cwd
        self.log = SessionLog(FORMAT, self._state.log, beside.fallback_ms)

    def feed(self, record: Record) -> str | None:
        obj, message = record.obj, dict_of(record.obj.get("message"))
        kind = text_of(obj.get("type"))
        time = epoch_ms(obj.get("time"))
        time = time if time is not None else epoch_ms(obj.get("created_at") or obj.get("timestamp"))
        self.log.begin(obj, time)
        if not kind and isinstance(message.get("type"), str):
            kind = self._old_wire(text_of(message["type"]), dict_of(message.get("payload")))
        elif not kind and obj.get("role") in _CONTEXT_ROLES:
            kind = self._context(text_of(obj["role"]), obj)
        else:
            kind = self._wire(kind, obj)
        self.log.finish(kind or "unknown")
        return None

    def take(self) -> list[SessionDelta]:
        if not self._state.known:
            return []
        self.log.report_title(self._beside.title, self._beside.updated_ms, _PROVIDER)
        delta = self.log.take()
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        return pack_state(VERSION, self._state)

    def repeats(self) -> bool:
        return self.log.repeats()

    def verdict(self) -> bool | Refusal:
        return self._state.known

    # -- Kimi Code -------------------------------------------------------------------------------

    def _wire(self, kind: str, obj: dict[str, JSON]) -> str:
        is_head = kind == "metadata" and "protocol_version" in obj
        self._state.known = self._state.known or is_head or kind.startswith(_GROUPS)
        if kind == "context.append_message":
            self._appended(dict_of(obj.get("message")))
        elif kind == "context.append_loop_event":
            event = dict_of(obj.get("event"))
            return f"{kind}/{self._loop(text_of(event.get('type')), event)}"
        elif kind == "context.apply_compaction":
            self._compaction(obj)
        elif kind == "turn.prompt":
            self.log.turn_start()
        elif kind == "turn.cancel":
            self.log.turn_end("aborted")
        elif kind == "turn.ended":
            reason = text_of(obj.get("reason")) or "completed"
            self.log.turn_end(
                "aborted" if reason == "cancelled" else reason, text=json_text(obj.get("error"))
            )
        elif kind in ("config.update", "profile.bind"):
            self._config(obj)
        return kind

    def _config(self, obj: dict[str, JSON]) -> None:
        log = self._state.log
        told = first_text(obj.get("cwd"), dict_of(obj.get("environmentDisclosure")).get("cwd"))
        log.cwd = log.cwd or told or None
        self._state.model = text_of(obj.get("modelAlias")) or self._state.model

    def _appended(self, message: dict[str, JSON]) -> None:
        role = text_of(message.get("role"))
        blocks = blocks_of(message.get("content"))
        if role == "assistant":
            self._answer(blocks)
        elif role == "tool":
            self.log.result(text_of(message.get("toolCallId")), blocks)
        else:
            origin = text_of(dict_of(message.get("origin")).get("kind"))
            self.log.user(blocks, {"kind": origin or ("user" if role == "user" else role or "user")})

    def _answer(self, blocks: list[JSON]) -> None:
        provider, _, model = self._state.model.partition("/")
        self.log.assistant(blocks, provider=provider if model else "", model=model or provider)

    def _loop(self, kind: str, event: dict[str, JSON]) -> str:
        if kind == "step.begin":
            step = event.get("step")
            self.log.step_start(step if is_safe_integer(step) and step >= 0 else None)
        elif kind == "step.end":
            self.log.step_end()
        elif kind == "content.part":
            part = dict_of(event.get("part"))
            blocks = blocks_of(part)
            if blocks:
                self._answer(blocks)
            return f"{kind}/{text_of(part.get('type'))}"
        elif kind == "tool.call":
            self.log.call(
                text_of(event.get("toolCallId")), text_of(event.get("name")), json_text(event.get("args"))
            )
        elif kind == "tool.result":
            result = dict_of(event.get("result"))
            failed = result.get("isError") is True
            blocks = output_blocks(result.get("output"))
            self.log.result(text_of(event.get("toolCallId")), blocks, is_error=True if failed else None)
        return kind

    def _compaction(self, obj: dict[str, JSON]) -> None:
        """All that was visible gives way to the summary, as the model is told it and as it was written."""
        told, written = text_of(obj.get("contextSummary")), text_of(obj.get("summary"))
        self.log.compact(text_blocks(told, "" if written in told else written))

    # -- Kimi CLI --------------------------------------------------------------------------------

    def _old_wire(self, kind: str, payload: dict[str, JSON]) -> str:
        """``{"timestamp", "message": {"type", "payload"}}``."""
        self._state.known = True
        if kind == "TurnBegin":
            self.log.turn_start()
            self.log.user(blocks_of(payload.get("user_input")))
        elif kind == "TurnEnd":
            self.log.turn_end("completed")
        elif kind == "StepBegin":
            step = payload.get("n")
            self.log.step_start(step if is_safe_integer(step) and step >= 0 else None)
        elif kind == "StepInterrupted":
            self.log.turn_end("interrupted")
        elif kind in ("ContentPart", "TextPart"):
            blocks = blocks_of(payload)
            if blocks:
                self._answer(blocks)
        elif kind == "ToolCall":
            function = dict_of(payload.get("function"))
            arguments = json_text(function.get("arguments"))
            self.log.call(text_of(payload.get("id")), text_of(function.get("name")), arguments)
        elif kind == "ToolResult":
            value = dict_of(payload.get("return_value")) or dict_of(payload.get("result"))
            failed = value.get("is_error") is True
            blocks = output_blocks(value.get("output")) + text_blocks(text_of(value.get("message")))
            self.log.result(text_of(payload.get("tool_call_id")), blocks, is_error=True if failed else None)
        return kind

    def _context(self, role: str, obj: dict[str, JSON]) -> str:
        """A message in OpenAI style, or a checkpoint."""
        self._state.known = True
        blocks = blocks_of(obj.get("content"))
        if role == "user":
            self.log.user(blocks)
        elif role == "system":
            self.log.user(blocks, {"kind": "system"})
        elif role == "tool":
            self.log.result(text_of(obj.get("tool_call_id")), blocks)
        elif role == "assistant":
            calls = list_of(obj.get("tool_calls"))
            if blocks or not calls:
                self._answer(blocks)
            for call in calls:
                function = dict_of(dict_of(call).get("function"))
                arguments = json_text(function.get("arguments"))
                self.log.call(text_of(dict_of(call).get("id")), text_of(function.get("name")), arguments)
        return role
