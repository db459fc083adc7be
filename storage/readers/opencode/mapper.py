"""An OpenCode session, its messages and their parts, to core events (README.md).

Parts are updated in place and sessions are read whole, so this is a function of the session's records in
order, not of a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from ....protocol.json_value import JSON
from ....protocol.whitespace import is_blank
from ..corelog.foreign_db import json_column
from ..corelog.log_state import LogState
from ..corelog.session_log import SessionLog
from ..corelog.shapes import dict_of, first_text, json_text, text_blocks, text_of
from ..corelog.times import epoch_ms
from ..seam import SessionDelta

FORMAT: Final = "opencode"
VERSION: Final = 2
_DEFAULT_TITLE: Final = re.compile(r"(?:New|Child) session - \d{4}-")
_PROVIDER: Final = {"kind": "provider", "provider": FORMAT}
_DONE: Final = frozenset(("completed", "success", "error"))

Record = dict[str, JSON]


@attrs.frozen
class Message:
    """A message record and its parts, in order."""

    info: Record
    parts: list[Record]


def map_session(info: Record, messages: Iterable[Message], fallback_id: str) -> SessionDelta:
    """The whole session. ``info`` is the session record, whose keys may be spelled as columns."""
    mapping = _Mapping(info, fallback_id)
    for message in messages:
        mapping.message(message)
    return mapping.delta()


class _Mapping:
    def __init__(self, info: Record, fallback_id: str) -> None:
        time = dict_of(info.get("time"))
        created = epoch_ms(time.get("created")) or epoch_ms(info.get("time_created"))
        title = text_of(info.get("title"))
        self._updated = epoch_ms(time.get("updated")) or epoch_ms(info.get("time_updated")) or created or 0
        state = LogState(
            id=first_text(info.get("id"), fallback_id),
            created_at=created if created is not None and created >= 0 else None,
            cwd=text_of(info.get("directory")) or None,
            parent=first_text(info.get("parentID"), info.get("parent_id")) or None,
            origin="subagent" if title.endswith("subagent)") else None,
        )
        self._log = SessionLog(FORMAT, state)
        self._title = "" if _DEFAULT_TITLE.match(title) else title
        self._revert = info.get("revert")
        self._first_seqs: dict[str, int] = {}
        self._part_seqs: dict[str, int] = {}
        self._log.begin(info, created)
        self._log.finish("session")

    def delta(self) -> SessionDelta:
        self._log.report_title(self._title, self._updated, _PROVIDER)
        if self._revert not in (None, ""):
            self._log.note(f"reverted: {self._reverted()} no longer seen by the model")
        delta = self._log.take()
        assert delta is not None, "the first take always has news"
        return delta

    def _reverted(self) -> str:
        """What a revert leaves behind. Nothing takes its place: the next prompt deletes it for good."""
        revert = self._revert
        if isinstance(revert, str):  # the database keeps the object as text
            revert = json_column(revert)
        point = dict_of(revert)
        part, message = text_of(point.get("partID")), text_of(point.get("messageID"))
        seq = self._part_seqs.get(part, self._first_seqs.get(message))
        return "what follows the revert point is" if seq is None else f"events from {seq} on are"

    def message(self, message: Message) -> None:
        info, log = message.info, self._log
        self._first_seqs.setdefault(text_of(info.get("id")), log.state.next_seq)
        time = dict_of(info.get("time"))
        log.begin(info, epoch_ms(time.get("created")))
        log.finish("message")
        if info.get("summary") is True and log.state.abandoned is None:
            log.visible.abandon_before(None)
        said = False
        for part in message.parts:
            said = self._part(info, part, said) or said
        self._error(info.get("error"))

    def _error(self, error: JSON) -> None:
        """How the answer ended, if not well: of the message record, told behind its parts."""
        if not isinstance(error, dict):
            return
        name = text_of(error.get("name"))
        if name == "MessageAbortedError":
            self._log.turn_end("aborted")
        elif name == "MessageOutputLengthError":
            self._log.turn_end("max-tokens")
        else:
            text = first_text(dict_of(error.get("data")).get("message"), error.get("message"), name)
            self._log.turn_end("error", text=text, code=name)

    def _part(self, info: Record, part: Record, said: bool) -> bool:
        """Map one part; returns whether it was a piece of a prompt."""
        log, kind = self._log, text_of(part.get("type"))
        self._part_seqs.setdefault(text_of(part.get("id")), log.state.next_seq)
        begun = epoch_ms(dict_of(part.get("time")).get("start"))
        if kind == "tool":
            begun = epoch_ms(dict_of(dict_of(part.get("state")).get("time")).get("start"))
        log.begin(part, begun)
        prompt = False
        if kind == "text" and not is_blank(text_of(part.get("text"))):
            prompt = self._text(info, part, said)
        elif kind == "tool":
            self._tool(part)
        elif kind == "subtask":
            log.user(
                text_blocks(text_of(part.get("description")), text_of(part.get("prompt"))),
                {"kind": "subtask"},
            )
        elif kind == "step-start":
            log.step_start()
        elif kind == "step-finish":
            log.step_end()
        elif kind == "compaction":
            log.visible.abandon_before(self._first_seqs.get(text_of(part.get("tail_start_id"))))
        log.finish(kind)
        return prompt

    def _text(self, info: Record, part: Record, said: bool) -> bool:
        blocks, part_id = text_blocks(text_of(part.get("text"))), text_of(part.get("id"))
        if info.get("role") != "assistant":
            synthetic = part.get("synthetic") is True or part.get("ignored") is True
            source: Record = {"kind": "synthetic"} if synthetic else {"kind": "user"}
            self._log.user(blocks, source, message_id=part_id, continues=said)
            return not synthetic
        model = dict_of(info.get("model"))
        self._log.assistant(
            blocks,
            provider=first_text(info.get("providerID"), model.get("providerID")),
            model=first_text(info.get("modelID"), model.get("modelID")),
            message_id=part_id,
        )
        return False

    def _tool(self, part: Record) -> None:
        """One part is the call and, once it is over, its result."""
        state, log = dict_of(part.get("state")), self._log
        call_id = first_text(part.get("callID"), part.get("id"), f"{FORMAT}:{log.state.next_seq}")
        log.call(call_id, text_of(part.get("tool")), json_text(state.get("input")))
        status = text_of(state.get("status"))
        if status not in _DONE:
            return
        log.at(epoch_ms(dict_of(state.get("time")).get("end")))
        failed = status == "error"
        output = state.get("error") if failed else state.get("output")
        log.result(call_id, text_blocks(json_text(output)), is_error=True if failed else None)
