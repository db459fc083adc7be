"""Documents (SPEC 3.3): the searchable events of a log, built event by event.

Searches do not find searches (16.1.7): calls to the five tools, by whatever prefix a host gives the
names, and their results are marked ``is_search``; a search leaves such documents out unless its event
types name their type. An assistant message that also says something keeps that part as an ordinary
document, without the calls; one that consists of such calls alone is marked like them, whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from .event import Event, Surface
from .json_codec import JsonError, decode_json, encode_json
from .json_value import JSON
from .surface import SurfaceFold
from .text import block_parts, event_text, join_parts, member

TOOL_NAMES: Final = (
    "session_search",
    "session_event_search",
    "session_trace",
    "session_event_trace",
    "session_event_read",
)
"""The five tools, in registry order (SPEC 10.1)."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One searchable event. ``surface`` is as known when the event was fed; later ones may shadow it.

    ``is_search``: only found when the request's event types name ``type`` (SPEC 16.1.7).
    """

    seq: int
    type: str
    time: int
    surface: Surface
    text: str
    is_search: bool = False


def is_search_tool(name: JSON) -> bool:
    """True for one of the five tools under any prefix (``mcp__session-query__session_search``)."""
    return isinstance(name, str) and name.endswith(TOOL_NAMES)


class DocumentBuilder:
    """Turns the events of one log, fed in order, into documents.

    After each ``feed``, ``shadowed`` holds the seqs that this event removed from the surface. The
    builder remembers the surface and the ids of calls to the five tools, never the log.
    """

    def __init__(self) -> None:
        self._fold = SurfaceFold()
        self._calls: set[str] = set()
        self.shadowed: tuple[int, ...] = ()

    def __len__(self) -> int:
        """How many events were fed: the seq expected next."""
        return len(self._fold)

    def feed(self, event: Event) -> Document | None:
        """Take the next event; returns its document, or None if it has no text.

        Raises: SurfaceError: the log breaks SPEC 2 here; the builder stays as it was.
        """
        step = self._fold.append(event)
        self.shadowed = step.shadowed
        text, is_search = self._text(event)
        if not text:
            return None
        return Document(
            seq=event.seq,
            type=event.type,
            time=event.time,
            surface=step.surface,
            text=text,
            is_search=is_search,
        )

    def _text(self, event: Event) -> tuple[str, bool]:
        kind = event.type
        if kind == "assistant/message":
            return self._message_text(event, member(member(event.data, "message"), "content"))
        if kind == "user/message":
            return self._message_text(event, member(event.data, "content"))
        if kind == "tool/call":
            if is_search_tool(member(event.data, "name")):
                self._remember(member(event.data, "callId"))
                return event_text(event), True
        elif kind == "tool/result" and self._calls and self._answers_search(event.data):
            return event_text(event), True
        return event_text(event), False

    def _message_text(self, event: Event, content: JSON) -> tuple[str, bool]:
        """A message's text without its searches; all of it, marked, if nothing else is in it."""
        found = False
        for block in content if isinstance(content, list) else ():
            if _is_search_call(block):
                self._remember(member(block, "id"))
                found = True
            elif self._calls and self._is_search_result(block):
                found = True
        if not found:
            return event_text(event), False
        rest = join_parts(block_parts(content, skip=self._is_search_block))
        return (rest, False) if rest else (event_text(event), True)

    def _remember(self, call_id: JSON) -> None:
        if isinstance(call_id, str):
            self._calls.add(call_id)

    def _is_search_block(self, block: JSON) -> bool:
        return _is_search_call(block) or self._is_search_result(block)

    def _is_search_result(self, block: JSON) -> bool:
        """True for a ``tool-result`` block that answers a known search."""
        call_id = member(block, "toolCallId")
        return isinstance(call_id, str) and call_id in self._calls and member(block, "type") == "tool-result"

    def _answers_search(self, data: JSON) -> bool:
        message = member(data, "message")
        call_id = member(member(message, "source"), "callId")
        if isinstance(call_id, str):
            return call_id in self._calls
        content = member(message, "content")
        return isinstance(content, list) and any(self._is_search_result(block) for block in content)

    @property
    def search_calls(self) -> frozenset[str]:
        """The ids of calls to the five tools so far: the state beside the surface fold."""
        return frozenset(self._calls)

    @classmethod
    def going_on(cls, fold: SurfaceFold, search_calls: Iterable[str]) -> DocumentBuilder:
        """A builder behind events that were folded elsewhere, from stored skeletons for instance."""
        builder = cls()
        builder._fold = fold
        builder._calls = set(search_calls)
        return builder

    def snapshot(self) -> bytes:
        """The state as bytes, to go on later without the log."""
        return msgspec.msgpack.encode((self._fold.snapshot(), encode_json(list[JSON](sorted(self._calls)))))

    @classmethod
    def restore(cls, state: bytes) -> DocumentBuilder:
        """A builder that goes on where ``snapshot`` was taken. Raises: ValueError for other bytes."""
        try:
            fold, raw_calls = msgspec.msgpack.decode(state, type=tuple[bytes, bytes])
            calls = msgspec.convert(decode_json(raw_calls), list[str])
        except (msgspec.MsgspecError, JsonError) as exc:
            raise ValueError("not the state of a document builder") from exc
        builder = cls()
        builder._fold = SurfaceFold.restore(fold)
        builder._calls = set(calls)
        return builder


def _is_search_call(block: JSON) -> bool:
    return member(block, "type") == "tool-call" and is_search_tool(member(block, "name"))


def build_documents(events: Iterable[Event]) -> list[Document]:
    """All documents of a log with their final surface, ascending by seq (SPEC 3.3).

    Raises: SurfaceError: the log breaks SPEC 2.
    """
    builder = DocumentBuilder()
    found: dict[int, Document] = {}
    for event in events:
        document = builder.feed(event)
        if document is not None:
            found[document.seq] = document
        for seq in builder.shadowed:
            if seq in found:
                found[seq] = msgspec.structs.replace(found[seq], surface="shadowed")
    return list(found.values())


def searchable(documents: Iterable[Document], event_types: frozenset[str]) -> Iterator[Document]:
    """The documents a search may find when its filters name ``event_types`` (SPEC 16.1.7)."""
    return (document for document in documents if not document.is_search or document.type in event_types)
