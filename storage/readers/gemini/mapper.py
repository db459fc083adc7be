"""Gemini CLI records to core events: a stream that repeats, rewinds and replaces its messages (README.md).

The same id may come again: the last one wins, at the first position. A repeat that says something else
replaces its earlier event; one that only brings tool calls or results adds those.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ....protocol.json_codec import canonical_json
from ....protocol.json_value import JSON
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, json_text, list_of, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..seam import Refusal, SessionDelta
from .content import message_blocks, result_blocks

FORMAT: Final = "gemini"
VERSION: Final = 1
_TYPES: Final = frozenset(("user", "gemini", "info", "error", "warning"))
_PROVIDER: Final = {"kind": "provider", "provider": FORMAT}


class Known(msgspec.Struct):
    """One message as the log now has it: what it says, its surface nodes, its calls (True: answered)."""

    id: str
    said: bytes
    seq: int | None = None
    nodes: list[int] = []
    calls: dict[str, bool] = {}


class GeminiState(msgspec.Struct):
    log: LogState
    messages: list[Known] = []
    known: bool = False
    summary: str = ""
    updated: int = 0


class GeminiMapper:
    """One log, one session. See ``Mapper``."""

    def __init__(
        self,
        fallback_id: str,
        saved: bytes | None,
        *,
        cwd: str | None = None,
        parent: str | None = None,
        fallback_ms: int = 0,
    ) -> None:
        """``cwd`` and ``parent`` are told by the folders the log lies in.

        Raises: ValueError: ``saved`` is no state of this version.
        """
        if saved is None:
            self._state = GeminiState(LogState(id=fallback_id, parent=parent))
            if parent is not None:
                self._state.log.origin, self._state.log.depth = "subagent", 1
        else:
            self._state = unpack_state(VERSION, saved, GeminiState)
        self._state.log.cwd = cwd
        self._by_id = {message.id: message for message in self._state.messages}
        self.log = SessionLog(FORMAT, self._state.log, fallback_ms)

    def feed(self, record: Record) -> str | None:
        obj = record.obj
        messages = obj.get("messages") if isinstance(obj.get("messages"), list) else obj.get("history")
        if isinstance(messages, list) and "type" not in obj:
            rest = {key: value for key, value in obj.items() if value is not messages}
            self._meta(rest)
            for message in messages:
                if isinstance(message, dict):
                    self._message(message, message)
        elif isinstance(obj.get("$set"), dict):
            self._set(obj, dict_of(obj["$set"]))
        elif "$rewindTo" in obj:
            self._known(True)
            self._begin(obj)
            self._rewind(text_of(obj["$rewindTo"]))
            self.log.finish("$rewindTo")
        elif "sessionId" in obj and "type" not in obj:
            self._meta(obj)
        else:
            self._message(obj, obj)
        return None

    def take(self) -> list[SessionDelta]:
        if not self._state.known:
            return []
        self.log.report_title(self._state.summary, self._state.updated, _PROVIDER)
        delta = self.log.take()
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        return pack_state(VERSION, self._state)

    def repeats(self) -> bool:
        return self.log.repeats()

    def verdict(self) -> bool | Refusal:
        return self._state.known

    # -- records ---------------------------------------------------------------------------------

    def _known(self, known: bool) -> None:
        self._state.known = self._state.known or known

    def _begin(self, obj: dict[str, JSON]) -> None:
        self.log.begin(obj, _time(obj))

    def _meta(self, obj: dict[str, JSON]) -> None:
        log = self._state.log
        self._known(isinstance(obj.get("sessionId"), str) or "start_time" in obj or "startTime" in obj)
        session_id = text_of(obj.get("sessionId"))
        if session_id and log.next_seq == 0:
            log.id = session_id
        started = epoch_ms(obj.get("startTime")) or epoch_ms(obj.get("start_time"))
        if log.created_at is None and started is not None and started >= 0:
            log.created_at = started
        self._facts(obj)
        self.log.begin(obj, started if log.time is None else None)
        self.log.finish("session")

    def _facts(self, obj: dict[str, JSON]) -> None:
        """What metadata says of title and kind; it may come at any time."""
        updated = epoch_ms(obj.get("lastUpdated"))
        self._state.updated = updated if updated is not None else self._state.updated
        self._state.summary = text_of(obj.get("summary")) or self._state.summary
        if obj.get("kind") == "subagent":
            self._state.log.origin = "subagent"

    def _set(self, obj: dict[str, JSON], fields: dict[str, JSON]) -> None:
        self._known(True)
        self._facts(fields)
        self._begin(obj)
        self.log.finish("$set")
        messages = fields.get("messages")
        if isinstance(messages, list):
            self._checkpoint([message for message in messages if isinstance(message, dict)])

    def _checkpoint(self, messages: list[dict[str, JSON]]) -> None:
        """The list replaces all messages: what it shares with them at its head stays where it is."""
        known = self._state.messages
        shared = 0
        for message, old in zip(messages, known, strict=False):
            if text_of(message.get("id")) != old.id:
                break
            shared += 1
        self._drop(shared)
        for message in messages:
            self._message(message, UNSET)

    def _rewind(self, message_id: str) -> None:
        """Remove a message and all after it; an unknown one removes everything."""
        ids = [message.id for message in self._state.messages]
        self._drop(ids.index(message_id) if message_id in ids else 0)

    def _drop(self, keep: int) -> None:
        gone = [node for message in self._state.messages[keep:] for node in message.nodes]
        del self._state.messages[keep:]
        self._by_id = {message.id: message for message in self._state.messages}
        visible = set(self._state.log.surface)
        first = next((node for node in gone if node in visible), None)
        if first is not None:
            self.log.visible.abandon_from(first)

    # -- messages --------------------------------------------------------------------------------

    def _message(self, obj: dict[str, JSON], native: JSON | UnsetType) -> None:
        kind = first_text(obj.get("type"), obj.get("role"))
        kind = "gemini" if kind in ("assistant", "model") else kind
        content = obj.get("content") if "content" in obj else obj.get("parts")
        self._known(kind in _TYPES and content is not None)
        blocks = message_blocks(content)
        said = blake2b(canonical_json(blocks), digest_size=8).digest()
        message_id = text_of(obj.get("id"))
        old = self._by_id.get(message_id) if message_id else None
        known = old if old is not None else Known(message_id, said)
        if native is UNSET and old is not None and not self._is_news(old, said, obj):
            return
        self.log.begin(native, _time(obj))
        if kind in ("user", "gemini"):
            self._say(kind, obj, blocks, known, changed=old is None or old.said != said)
        elif kind == "error" and old is None:
            self.log.turn_end("error", text=" ".join(text_of(dict_of(block).get("text")) for block in blocks))
        known.said = said
        if old is None:
            self._state.messages.append(known)
            self._by_id[message_id] = known
        self.log.finish(kind or "unknown")

    def _is_news(self, old: Known, said: bytes, obj: dict[str, JSON]) -> bool:
        calls = [
            self._call_id(obj, at, dict_of(call)) for at, call in enumerate(list_of(obj.get("toolCalls")))
        ]
        return old.said != said or any(not old.calls.get(call) for call in calls)

    def _say(
        self, kind: str, obj: dict[str, JSON], blocks: list[JSON], known: Known, *, changed: bool
    ) -> None:
        calls = list_of(obj.get("toolCalls"))
        if changed and (blocks or (kind == "user" and not calls) or not calls):
            replaces = None if known.seq is None else (known.seq, known.seq)
            if kind == "user":
                typed = message_blocks(obj.get("displayContent"))
                words = text_of(dict_of(typed[0]).get("text")) if typed else ""
                known.seq = self.log.user(
                    blocks,
                    message_id=known.id,
                    replaces=replaces,
                    typed=words,
                    continues=replaces is not None,
                )
            else:
                known.seq = self.log.assistant(
                    blocks,
                    provider="google",
                    model=text_of(obj.get("model")),
                    message_id=known.id,
                    replaces=replaces,
                )
            known.nodes.append(known.seq)
        for at, call in enumerate(calls):
            self._tool(obj, at, dict_of(call), known)

    def _call_id(self, obj: dict[str, JSON], at: int, call: dict[str, JSON]) -> str:
        return first_text(call.get("id"), f"{text_of(obj.get('id'))}#{at}")

    def _tool(self, obj: dict[str, JSON], at: int, call: dict[str, JSON], known: Known) -> None:
        """One call with its result, if it has one; what an earlier repeat told is not told again."""
        call_id = self._call_id(obj, at, call)
        self.log.at(epoch_ms(call.get("timestamp")))
        if call_id not in known.calls:
            self.log.call(
                call_id, first_text(call.get("name"), call.get("displayName")), json_text(call.get("args"))
            )
            known.calls[call_id] = False
        if known.calls[call_id] or call.get("result") is None:
            return
        known.calls[call_id] = True
        failed = call.get("status") == "error"
        seq = self.log.result(call_id, result_blocks(call["result"]), is_error=True if failed else None)
        known.nodes.append(seq)


def _time(obj: dict[str, JSON]) -> int | None:
    found = epoch_ms(obj.get("timestamp"))
    return found if found is not None else epoch_ms(obj.get("ts"))
