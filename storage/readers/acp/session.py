"""One session of a capture: prompts, chunks, tool calls, plans, turns."""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.json_codec import decode_json, encode_json
from ....protocol.json_value import JSON
from ..corelog.log_state import LogState
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, json_text, list_of, text_of
from ..seam import SessionDelta
from .content import chunk_blocks, prompt_blocks, result_blocks, todos_of, tool_name
from .frames import Frame
from .harness import harness_event
from .run import OpenRun, Run

_MESSAGES: Final = frozenset(("user_message_chunk", "agent_message_chunk"))
_BREAKS: Final = frozenset(("agent_thought_chunk", "tool_call"))
"""Updates that end a run of chunks beside chunks of another kind."""
_STOPS: Final = {
    "end_turn": "completed",
    "cancelled": "aborted",
    "max_tokens": "max-tokens",
    "refusal": "blocked",
}
_ENDED: Final = frozenset(("completed", "failed"))
_KEPT_MAX_BYTES: Final = 1 << 18
"""Content of an open call above this is not kept for its end; most agents tell it again then."""


class OpenCall(msgspec.Struct):
    """A tool call that has not ended: whether its input was told, and its last content as JSON text."""

    told: bool = False
    name: str = ""
    content: bytes = b""


class SessionState(msgspec.Struct):
    log: LogState
    run: Run | None = None
    calls: dict[str, OpenCall] = {}
    echo: str = ""
    """What of the last prompt the agent has not yet echoed as ``user_message_chunk``."""
    loading: str = ""
    """The id of the ``session/load`` whose replay is under way."""


class AcpSession:
    """Owned by the capture's mapper."""

    def __init__(self, fmt: str, state: SessionState, fallback_ms: int) -> None:
        """Raises: ValueError: the state holds a damaged run."""
        self._state = state
        self.log = SessionLog(fmt, state.log, fallback_ms)
        self._run = OpenRun(self.log, state.run)

    def take(self) -> SessionDelta | None:
        self._run.keep()
        return self.log.take()

    def saved(self) -> SessionState:
        return msgspec.structs.replace(self._state, run=self._run.saved())

    def report_title(self, title: str, time_ms: int) -> None:
        self.log.report_title(title, time_ms, {"kind": "provider", "provider": self.log.format})

    def request(self, frame: Frame) -> str:
        """A request or notification; returns its native type."""
        method = frame.method
        if method == "session/update":
            return self._update(frame.update)
        if method == "session/prompt":
            self._prompt(list_of(frame.params.get("prompt")))
        elif method in ("session/load", "session/new", "session/resume"):
            self._run.close()
            self.log.state.cwd = self.log.state.cwd or text_of(frame.params.get("cwd")) or None
            if method == "session/load":
                self._state.loading = frame.key
        elif method == "session.event":
            return harness_event(self.log, dict_of(frame.params.get("event")))
        return method

    def response(self, frame: Frame, asked: str) -> str:
        """A response; ``asked`` is the method it answers, if that was captured."""
        stop = text_of(dict_of(frame.result).get("stopReason"))
        if self._state.loading and frame.key == self._state.loading:
            self._state.loading = ""
        elif stop:
            self._run.close()
            self.log.turn_end(_STOPS.get(stop, stop.replace("_", "-")))
        elif frame.error is not None and asked in ("", "session/prompt"):
            self._run.close()
            self.log.turn_end(
                "error", text=text_of(frame.error.get("message")), code=str(frame.error.get("code"))
            )
        return f"{asked}/response" if asked else "response"

    def _prompt(self, prompt: list[JSON]) -> None:
        self._run.close()
        self.log.turn_start()
        typed = "".join(text_of(dict_of(part).get("text")) for part in prompt)
        self.log.user(prompt_blocks(prompt), typed=typed)
        self._state.echo = typed

    def _update(self, update: dict[str, JSON]) -> str:
        kind = text_of(update.get("sessionUpdate")) or "update"
        if self._state.loading:
            self.log.note("the history that session/load replayed is kept without text")
            return f"replay/{kind}"
        if kind in _MESSAGES:
            self._chunk(kind, chunk_blocks(update.get("content")))
            return kind
        if kind in _BREAKS:
            self._run.close()
        if kind in ("tool_call", "tool_call_update"):
            self._tool(update)
        elif kind == "plan":
            self.log.todos(todos_of(update))
        elif kind == "session_info_update":
            self.log.title(text_of(update.get("title")), {"kind": "provider", "provider": self.log.format})
        return kind

    def _chunk(self, kind: str, blocks: list[JSON]) -> None:
        text = "".join(text_of(dict_of(block).get("text")) for block in blocks)
        if kind == "user_message_chunk" and text and self._state.echo.startswith(text):
            self._state.echo = self._state.echo[len(text) :]
            return
        if self._run.continues(kind):
            self._run.extend(blocks)
            return
        if kind == "user_message_chunk":
            seq = self.log.user(blocks)
        else:
            self._state.echo = ""
            seq = self.log.assistant(blocks)
        self._run.begin(kind, seq, len(text))

    def _tool(self, update: dict[str, JSON]) -> None:
        """A call is told when it is first named, again when its input comes later, and once when it ends."""
        call_id = text_of(update.get("toolCallId"))
        call = self._state.calls.setdefault(call_id, OpenCall())
        call.name = tool_name(update) or call.name
        raw = update.get("rawInput")
        is_new = call_id not in self.log.state.calls
        if (is_new and (call.name or raw)) or (raw and not call.told):
            self.log.state.calls.pop(call_id, None)
            title = text_of(update.get("title"))
            arguments = json_text(raw) if raw else title if title != call.name else ""
            self.log.call(call_id, call.name, arguments)
            call.told = bool(raw)
        if isinstance(update.get("content"), list):
            content = encode_json(update["content"])
            call.content = content if len(content) <= _KEPT_MAX_BYTES else b""
        if text_of(update.get("status")) in _ENDED:
            self._end(call_id, call, update)

    def _end(self, call_id: str, call: OpenCall, update: dict[str, JSON]) -> None:
        content: JSON = update.get("content")
        if not list_of(content) and call.content:
            content = decode_json(call.content)
        failed = update.get("status") == "failed"
        blocks = result_blocks(content, update.get("rawOutput"))
        self.log.result(call_id, blocks, is_error=True if failed else None)
        self._state.calls.pop(call_id, None)
