"""pi entries to core events: header, messages, compactions, branches (README.md)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ....protocol.json_value import JSON, is_safe_integer
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, json_text, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..seam import Refusal, SessionDelta
from .content import blocks_of, calls_of
from .tree import Tree

FORMAT: Final = "pi"
VERSION: Final = 1
_ROLES: Final = frozenset(("user", "assistant", "toolResult"))


def id_from_name(name: str) -> str:
    """``<time>_<id>.jsonl``, also as the last part of a path of either kind."""
    return re.split(r"[/\\]", name)[-1].removesuffix(".jsonl").rpartition("_")[2]


class PiState(msgspec.Struct):
    log: LogState
    tree: Tree
    known: bool = False
    named: bool = False
    copying: bool = False
    begun: int | None = None
    provider: str = ""
    model: str = ""


class PiMapper:
    """One log, one session. See ``Mapper``."""

    def __init__(self, fallback_id: str, saved: bytes | None, *, fallback_ms: int = 0) -> None:
        """Raises: ValueError: ``saved`` is no state of this version."""
        if saved is None:
            self._state = PiState(LogState(id=fallback_id), Tree())
        else:
            self._state = unpack_state(VERSION, saved, PiState)
        self.log = SessionLog(FORMAT, self._state.log, fallback_ms)

    def feed(self, record: Record) -> str | None:
        obj, state = record.obj, self._state
        kind = text_of(obj.get("type"))
        message = dict_of(obj.get("message"))
        time = epoch_ms(obj.get("timestamp"))
        time = time if time is not None else epoch_ms(message.get("timestamp"))
        first = state.log.next_seq
        if kind == "session":
            self._header(obj, time)
        elif kind == "message" and text_of(message.get("role")) in _ROLES:
            state.known = True
        self._branch(obj, first)
        self.log.begin(obj, time)
        self._entry(kind, obj, message)
        self.log.finish(kind or "unknown")
        state.tree.firsts.append(first)
        self._count_copy(time)
        return None

    def take(self) -> list[SessionDelta]:
        delta = self.log.take() if self._state.known else None
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        return pack_state(VERSION, self._state)

    def repeats(self) -> bool:
        return self.log.repeats()

    def verdict(self) -> bool | Refusal:
        return self._state.known

    # -- header and tree -------------------------------------------------------------------------

    def _header(self, obj: dict[str, JSON], time: int | None) -> None:
        state, log = self._state, self._state.log
        session_id = text_of(obj.get("id"))
        state.known = state.known or bool(session_id)
        if state.named or log.next_seq > 0:
            return
        state.named = True
        log.id = session_id or log.id
        log.cwd = text_of(obj.get("cwd")) or None
        log.created_at = time if time is not None and time >= 0 else None
        parent = first_text(obj.get("parentSession"), obj.get("branchedFrom"))
        log.parent = id_from_name(parent) or None
        state.copying, state.begun = log.parent is not None and time is not None, time
        state.provider, state.model = text_of(obj.get("provider")), text_of(obj.get("modelId"))

    def _count_copy(self, time: int | None) -> None:
        """Entries a fork was made with are older than the fork."""
        state = self._state
        if not state.copying or state.begun is None or len(state.tree.firsts) == 1:
            return
        if time is not None and time >= state.begun:
            state.copying = False
        else:
            state.log.inherited = state.log.next_seq

    def _branch(self, obj: dict[str, JSON], seq: int) -> None:
        parent = obj.get("parentId")
        if obj.get("type") == "session":
            return
        left, again = self._state.tree.place(
            text_of(obj.get("id")),
            parent if isinstance(parent, str) else None,
            seq,
            linked="parentId" in obj,
        )
        if left is not None:
            self.log.visible.abandon_since(left)
        if again:
            self.log.note("a branch left before was taken up again; its earlier messages stay shadowed")

    # -- entries ---------------------------------------------------------------------------------

    def _entry(self, kind: str, obj: dict[str, JSON], message: dict[str, JSON]) -> None:
        if kind == "message":
            self._message(obj, message)
        elif kind == "compaction":
            self._compaction(obj)
        elif kind == "branch_summary":
            self.log.user(text_blocks(text_of(obj.get("summary"))), {"kind": "branch-summary"})
        elif kind == "custom_message":
            self._injected(obj, obj.get("content"))
        elif kind == "session_info":
            self.log.title(text_of(obj.get("name")), {"kind": "user"})
        elif kind == "title":
            self.log.title(text_of(obj.get("title")), {"kind": "provider", "provider": FORMAT})
        elif kind == "model_change":
            self._state.provider = text_of(obj.get("provider")) or self._state.provider
            self._state.model = text_of(obj.get("modelId")) or self._state.model

    def _message(self, obj: dict[str, JSON], message: dict[str, JSON]) -> None:
        role, entry_id = text_of(message.get("role")), text_of(obj.get("id"))
        content = message.get("content")
        if role == "user":
            self.log.user(blocks_of(content), message_id=entry_id)
        elif role == "assistant":
            self._answer(message, entry_id)
        elif role == "toolResult":
            failed = message.get("isError")
            self.log.result(
                text_of(message.get("toolCallId")),
                blocks_of(content),
                is_error=failed if isinstance(failed, bool) else None,
            )
        elif role == "bashExecution":
            self._bash(message)
        elif role in ("custom", "hookMessage"):
            self._injected(message, content)
        elif role:
            self.log.user(blocks_of(content), {"kind": role}, message_id=entry_id)

    def _injected(self, owner: dict[str, JSON], content: JSON) -> None:
        name = first_text(owner.get("customType"), "extension")
        self.log.user(blocks_of(content), {"kind": "plugin", "plugin": name})

    def _answer(self, message: dict[str, JSON], entry_id: str) -> None:
        state, content = self._state, message.get("content")
        blocks, calls = blocks_of(content), calls_of(content)
        if blocks or not calls:
            self.log.assistant(
                blocks,
                provider=first_text(message.get("provider"), state.provider),
                model=first_text(message.get("model"), state.model),
                message_id=entry_id,
            )
        for call in calls:
            arguments = json_text(call.get("arguments"))
            self.log.call(text_of(call.get("id")), text_of(call.get("name")), arguments)
        stop = message.get("stopReason")
        if stop == "aborted":
            self.log.turn_end("aborted")
        elif stop == "length":
            self.log.turn_end("max-tokens")
        elif stop == "error":
            self.log.turn_end("error", text=text_of(message.get("errorMessage")))

    def _bash(self, message: dict[str, JSON]) -> None:
        """A command the person ran: the call and its result in one record."""
        call_id = f"{FORMAT}:{self.log.state.next_seq}"
        self.log.call(call_id, "bash", text_of(message.get("command")))
        code = message.get("exitCode")
        failed = code != 0 if is_safe_integer(code) else None
        self.log.result(call_id, text_blocks(text_of(message.get("output"))), is_error=failed)

    def _compaction(self, obj: dict[str, JSON]) -> None:
        tree = self._state.tree
        kept = tree.entries.get(text_of(obj.get("firstKeptEntryId")))
        index = obj.get("firstKeptEntryIndex")
        keep_from = None if kept is None else kept.seq
        if kept is None and is_safe_integer(index) and 0 <= index < len(tree.firsts):
            keep_from = tree.firsts[index]
        blocks = text_blocks(text_of(obj.get("summary")))
        self.log.compact(blocks, keep_from, message_id=text_of(obj.get("id")))
