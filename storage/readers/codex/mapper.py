"""Codex records to core events: envelopes, bare items, ``exec --json`` lines, documents (README.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from ....protocol.json_value import JSON, is_safe_integer
from ..corelog.log_state import LogState
from ..corelog.saved import pack_state, unpack_state
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, list_of, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..driver import Record
from ..seam import Refusal, SessionDelta
from .content import message_blocks, source_of, texts
from .copied import Copied
from .exec_stream import is_stream_type, stream_line
from .items import BARE_ITEMS, TOOL_ITEMS
from .twins import Role, Seen, Twins, digest_of, request_of

FORMAT: Final = "codex"
VERSION: Final = 1
TitleOf: TypeAlias = Callable[[str], "tuple[str, int] | None"]
_ENVELOPES: Final = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
)
_SCREEN_ITEMS: Final[dict[str, Role]] = {
    "UserMessage": "user",
    "AgentMessage": "assistant",
    "Plan": "assistant",
}


class CodexState(msgspec.Struct):
    log: LogState
    twins: Twins
    copied: Copied
    identified: bool = False
    known: bool = False
    has_meta: bool = False
    model: str = ""
    provider: str = ""
    said: set[bytes] = set()
    """Digests of the user-role messages so far: a compaction repeats them."""


def _no_title(_: str) -> tuple[str, int] | None:
    return None


def _is_bare(obj: dict[str, JSON], kind: str) -> bool:
    """An item without an envelope: as builds of mid-2025 and some exports write it."""
    if isinstance(obj.get("role"), str):
        return kind == "message" or (not kind and ("timestamp" in obj or "created_at" in obj))
    return kind in BARE_ITEMS and kind != "message"


class CodexMapper:
    """One log, one session. See ``Mapper``."""

    def __init__(
        self, fallback_id: str, saved: bytes | None, *, fallback_ms: int = 0, title_of: TitleOf = _no_title
    ) -> None:
        """``title_of`` is asked for the title kept beside the log each time there is news to take.

        Raises: ValueError: ``saved`` is no state of this version.
        """
        if saved is None:
            self._state = CodexState(LogState(id=fallback_id), Twins(), Copied())
        else:
            self._state = unpack_state(VERSION, saved, CodexState)
        self.log = SessionLog(FORMAT, self._state.log, fallback_ms)
        self._title_of = title_of

    def feed(self, record: Record) -> str | None:
        obj = record.obj
        if isinstance(obj.get("items"), list) and isinstance(obj.get("session"), dict):
            self._document(obj)
        else:
            self._record(obj)
        return None

    def take(self) -> list[SessionDelta]:
        if not self._state.known:
            return []
        title, time = self._title_of(self._state.log.id) or ("", 0)
        self.log.report_title(title, time, {"kind": "provider", "provider": FORMAT})
        delta = self.log.take()
        return [] if delta is None else [delta]

    def state(self) -> bytes:
        return pack_state(VERSION, self._state)

    def repeats(self) -> bool:
        return self.log.repeats()

    def verdict(self) -> bool | Refusal:
        return self._state.known

    # -- one record ------------------------------------------------------------------------------

    def _document(self, obj: dict[str, JSON]) -> None:
        session = dict_of(obj["session"])
        time = epoch_ms(session.get("timestamp"))
        self._known(True)
        self._meta(session, time)
        self._begin(session, time)
        self.log.finish("session")
        for item in list_of(obj["items"]):
            if isinstance(item, dict):
                self._record(item)

    def _record(self, obj: dict[str, JSON]) -> None:
        payload, kind = obj.get("payload"), text_of(obj.get("type"))
        time = epoch_ms(obj.get("timestamp"))
        if time is None:
            time = epoch_ms(dict_of(payload).get("timestamp")) or epoch_ms(obj.get("created_at"))
        if isinstance(payload, dict):
            self._envelope(obj, kind, payload, time)
        elif is_stream_type(kind):
            self._stream(obj, kind, time)
        elif _is_bare(obj, kind):
            self._known(True)
            self._begin(obj, time)
            self._item(obj)
            self.log.finish(kind or "message")
        else:
            self._other(obj, kind, time)

    def _envelope(self, obj: dict[str, JSON], kind: str, payload: dict[str, JSON], time: int | None) -> None:
        self._known(kind in _ENVELOPES)
        if kind == "session_meta":
            self._meta(payload, time)
        self._begin(obj, time)
        inner = text_of(payload.get("type"))
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(inner, payload)
        elif kind == "turn_context":
            self._context(payload)
        elif kind == "compacted":
            self._compacted(payload)
        self.log.finish(f"{kind}/{inner}" if inner else kind)
        self._settle(kind, inner)

    def _stream(self, obj: dict[str, JSON], kind: str, time: int | None) -> None:
        self._known(True)
        if kind == "thread.started" and not self._state.identified:
            self._identify(text_of(obj.get("thread_id")))
        self._begin(obj, time)
        self.log.finish(stream_line(self.log, kind, obj))

    def _other(self, obj: dict[str, JSON], kind: str, time: int | None) -> None:
        """A first line without envelope, a state marker, or something unknown."""
        record_type = text_of(obj.get("record_type"))
        is_meta = not kind and not record_type and isinstance(obj.get("id"), str) and time is not None
        if is_meta:
            self._known("instructions" in obj or "git" in obj)
            self._meta(obj, time)
        self._begin(obj, time)
        self.log.finish(kind or ("session_meta" if is_meta else record_type) or "unknown")

    def _known(self, known: bool) -> None:
        self._state.known = self._state.known or known

    def _begin(self, obj: dict[str, JSON], time: int | None) -> None:
        state = self._state
        if state.copied.copying:
            count = state.copied.inherited(time, state.log.next_seq)
            state.log.inherited = state.log.next_seq + 1 if count is None else count
        self.log.begin(obj, time)

    # -- header ----------------------------------------------------------------------------------

    def _identify(self, session_id: str) -> None:
        """The first id seen is the session's, if it is seen before anything was numbered."""
        self._state.identified = True
        if session_id and self._state.log.next_seq == 0:
            self._state.log.id = session_id

    def _meta(self, payload: dict[str, JSON], time: int | None) -> None:
        state, log = self._state, self._state.log
        session_id = first_text(payload.get("id"), payload.get("session_id"))
        if state.has_meta:
            if log.parent and session_id != log.id and not log.surface and not state.copied.copying:
                state.copied.begin(log.created_at, log.time)
            return
        state.has_meta = True
        if not state.identified:
            self._identify(session_id)
        created = epoch_ms(payload.get("timestamp"))
        log.created_at = (
            log.created_at if log.created_at is not None else created if created is not None else time
        )
        log.cwd = log.cwd or text_of(payload.get("cwd")) or None
        state.provider = text_of(payload.get("model_provider"))
        self._lineage(payload)

    def _lineage(self, payload: dict[str, JSON]) -> None:
        log = self._state.log
        source = dict_of(payload.get("source")).get("subagent")
        spawn = dict_of(dict_of(source).get("thread_spawn"))
        parent = first_text(
            payload.get("forked_from_id"), payload.get("parent_thread_id"), spawn.get("parent_thread_id")
        )
        log.parent = parent if parent and parent != log.id else None
        if source is not None or payload.get("thread_source") == "subagent":
            log.origin = "subagent"
        depth = spawn.get("depth")
        log.depth = depth if is_safe_integer(depth) and depth >= 0 else None
        log.preset = text_of(payload.get("agent_role")) or None

    def _context(self, payload: dict[str, JSON]) -> None:
        context = dict_of(payload.get("turn_context")) or payload
        self._state.log.cwd = self._state.log.cwd or text_of(context.get("cwd")) or None
        self._state.model = text_of(context.get("model")) or self._state.model

    # -- content ---------------------------------------------------------------------------------

    def _item(self, item: dict[str, JSON]) -> None:
        kind = text_of(item.get("type"))
        if isinstance(item.get("role"), str) and kind in ("message", ""):
            content = item.get("content") if item.get("content") is not None else item.get("message")
            self._message(text_of(item["role"]), message_blocks(content), text_of(item.get("id")))
        elif kind in TOOL_ITEMS:
            TOOL_ITEMS[kind](self.log, item)

    def _message(self, role: str, blocks: list[JSON], message_id: str) -> None:
        text = texts(blocks)
        twin_role: Role = "assistant" if role == "assistant" else "user"
        verdict = self._state.twins.judge(
            response=True, role=twin_role, text=text, seq=self._state.log.next_seq
        )
        if verdict == "message":
            self._say(role, blocks, message_id)

    def _say(
        self, role: str, blocks: list[JSON], message_id: str = "", sources: tuple[int, ...] = ()
    ) -> None:
        if role == "assistant":
            state = self._state
            self.log.assistant(
                blocks, provider=state.provider, model=state.model, message_id=message_id, sources=sources
            )
        else:
            text = texts(blocks)
            self._state.said.add(digest_of(text))
            source = source_of(role, text)
            self.log.user(blocks, source, message_id=message_id, sources=sources, typed=request_of(text))

    def _event(self, kind: str, payload: dict[str, JSON]) -> None:
        if kind in ("user_message", "agent_message"):
            role: Role = "user" if kind == "user_message" else "assistant"
            self._screen_message(role, text_of(payload.get("message")))
        elif kind == "item_completed":
            self._item_completed(dict_of(payload.get("item")))
        elif kind in ("task_started", "turn_started"):
            self._state.copied.turn(self._state.log.next_seq)
            self.log.turn_start()
        elif kind in ("task_complete", "turn_complete", "turn_aborted", "error"):
            self._turn_end(kind, payload)
        elif kind == "thread_name_updated":
            name = first_text(payload.get("thread_name"), payload.get("name"), payload.get("title"))
            self.log.title(name, {"kind": "provider", "provider": FORMAT})
        elif kind == "thread_rolled_back":
            turns = payload.get("num_turns")
            self.log.visible.abandon_prompts(turns if is_safe_integer(turns) else 0)

    def _turn_end(self, kind: str, payload: dict[str, JSON]) -> None:
        error = payload.get("error")
        self._state.copied.turn(None)
        if kind == "turn_aborted":
            self.log.turn_end("aborted")
        elif kind == "error" or isinstance(error, dict):
            cause = dict_of(error)
            text = first_text(payload.get("message"), cause.get("message"))
            code = first_text(
                payload.get("codex_error_info"), cause.get("codex_error_info"), cause.get("kind")
            )
            self.log.turn_end("error", text=text, code=code)
        else:
            self.log.turn_end("completed")

    def _screen_message(self, role: Role, text: str) -> None:
        seq = self._state.log.next_seq
        if self._state.twins.judge(response=False, role=role, text=text, seq=seq) == "message":
            self._say(role, text_blocks(text))

    def _item_completed(self, item: dict[str, JSON]) -> None:
        role: Role | None = {"UserMessage": "user", "AgentMessage": "assistant"}.get(
            text_of(item.get("type"))
        )  # type: ignore[assignment]
        if role is not None:
            text = text_of(item.get("text")) or texts(message_blocks(item.get("content")))
            self._screen_message(role, text)

    def _settle(self, kind: str, inner: str) -> None:
        """Give words to screen messages whose response item will not come."""
        twins, last = self._state.twins, self._state.log.next_seq - 1
        late: list[Seen] = []
        if inner in ("task_started", "task_complete", "turn_aborted") or kind == "compacted":
            late = twins.give_up()
        elif kind == "event_msg" and inner in ("user_message", "agent_message"):
            late = twins.give_up("user" if inner == "user_message" else "assistant", but=last)
        for item in late:
            self._say(item.role, text_blocks(item.text), sources=(item.seq,))

    def _compacted(self, payload: dict[str, JSON]) -> None:
        """A checkpoint for all that was visible: its summary, and what its new history says anew.

        The earlier prompts that the history keeps are not said again: they would be found twice.
        """
        blocks = text_blocks(text_of(payload.get("message")))
        fresh = set(self._state.said)
        for item in list_of(payload.get("replacement_history")):
            kept = message_blocks(dict_of(item).get("content"))
            digest = digest_of(texts(kept))
            if kept and digest not in fresh:
                fresh.add(digest)
                blocks += kept
        self.log.compact(blocks)
