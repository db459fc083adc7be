"""The surface fold (SPEC 2): which messages the model currently sees, as a pure function of the log.

``SurfaceFold`` takes one event at a time and costs the same whatever the length of the log: nodes stand
in a linked list whose labels grow from head to tail. An appended node gets the next label; a
replacement takes over the label of the first node it removes, so positions compare without a walk.
Each node is removed at most once, so walking the removed run is paid for by its appends.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Protocol

import attrs
import msgspec
from msgspec import UNSET

from .errors import Code, QueryError
from .event import Event, Surface
from .json_codec import canonical_json
from .json_value import JSON, SAFE_INTEGER_MAX, is_safe_integer, whole

SURFACE_TYPES: Final = frozenset(("user/message", "assistant/message", "tool/result"))


class SurfaceError(QueryError):
    """The log's surface is invalid: ``rule`` is 1..18 for E1..E18 of SPEC 2, ``seq`` the place in the log.

    Says nothing about the rest of the event: a log with a broken surface can still be read event by event.
    """

    def __init__(self, rule: int, seq: int, message: str) -> None:
        super().__init__(Code.INVALID_SURFACE, f"E{rule} at event {seq}: {message}")
        self.rule = rule
        self.seq = seq


class Foldable(Protocol):
    """What the fold looks at. An ``Event`` is one; so is a stored skeleton without ``data``."""

    @property
    def type(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def surface_op(self) -> object: ...
    @property
    def source_event_seqs(self) -> object: ...


@attrs.frozen(slots=True)
class Replacement:
    """One replacement: its seq, the declared bounds, and the removed seqs in surface order."""

    seq: int
    start: int
    end: int
    removed: tuple[int, ...]


@attrs.frozen(slots=True)
class FoldStep:
    """What one event did to the surface. ``surface`` is its own classification as of now."""

    surface: Surface
    shadowed: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()


_LOG_ONLY: Final = FoldStep("log-only")
_APPENDED: Final = FoldStep("current")


class _Node:
    """A surface node. ``identity`` is the digest E18 compares, or the event to take it from."""

    __slots__ = ("identity", "label", "next", "previous", "seq", "type")

    def __init__(self, seq: int, type_: str, label: int, identity: Event | bytes | None) -> None:
        self.seq = seq
        self.type = type_
        self.label = label
        self.identity = identity
        self.previous: _Node | None = None
        self.next: _Node | None = None


class SurfaceFold:
    """The fold of one log, event by event (SPEC 2).

    A refused event leaves the fold as it was, so an appending runtime may be told and try again.
    ``compact`` (the default) keeps a digest of each current tool result for E18 instead of the event.
    """

    def __init__(self, *, compact: bool = True) -> None:
        self._compact = compact
        self._nodes: dict[int, _Node] = {}
        self._head: _Node | None = None
        self._tail: _Node | None = None
        self._labels = 0
        self._length = 0
        self.replacements: list[Replacement] = []

    def __len__(self) -> int:
        """How many events were folded; the next event must carry this seq."""
        return self._length

    def append(self, event: Event) -> FoldStep:
        """Fold the next event.

        Returns: its classification now, the seqs it removed (in surface order), its sources.
        Raises: SurfaceError: the first of E1..E18 that rejects it.
        """
        return self._append(event, event if event.type == "tool/result" else None)

    def append_skeleton(self, event: Foldable) -> FoldStep:
        """Fold an event that was accepted before and whose data is not at hand: E18 is taken as passed."""
        return self._append(event, None)

    def pass_over(self, count: int) -> None:
        """Fold ``count`` events at once that are no surface events and carry neither key (chunks)."""
        self._length += count

    def nodes(self) -> tuple[int, ...]:
        """The current surface, in order. Costs its length."""
        found, node = [], self._head
        while node is not None:
            found.append(node.seq)
            node = node.next
        return tuple(found)

    def is_current(self, seq: int) -> bool:
        """True if the event is on the surface now."""
        return seq in self._nodes

    def _append(self, event: Foldable, identity: Event | bytes | None) -> FoldStep:
        seq, kind, op, sources = event.seq, event.type, event.surface_op, event.source_event_seqs
        if seq != self._length:
            raise SurfaceError(1, self._length, f"it carries seq {seq}")
        if kind not in SURFACE_TYPES:
            if op is not UNSET:
                raise SurfaceError(2, seq, "surfaceOp on an event that is no surface event")
            if sources is not UNSET:
                raise SurfaceError(3, seq, "sourceEventSeqs on an event that is no surface event")
            self._length += 1
            return _LOG_ONLY
        if op == "append":
            cited = () if sources is UNSET else _check_sources(seq, kind, sources)
            self._put(seq, kind, identity)
            return FoldStep("current", (), cited) if cited else _APPENDED
        start, end = _bounds(seq, op)
        first, last = self._range(seq, start, end)
        cited = () if sources is UNSET else _check_sources(seq, kind, sources)
        removed = self._removed(seq, kind, first, last, frozenset(cited), identity)
        self._replace(seq, kind, first, last, identity)
        for gone in removed:
            del self._nodes[gone]
        self.replacements.append(Replacement(seq, start, end, removed))
        return FoldStep("current", removed, cited)

    def _range(self, seq: int, start: int, end: int) -> tuple[_Node, _Node]:
        first, last = self._nodes.get(start), self._nodes.get(end)
        if first is None:
            raise SurfaceError(7, seq, f"start {start} is not on the surface")
        if last is None:
            raise SurfaceError(8, seq, f"end {end} is not on the surface")
        if first.label > last.label:
            raise SurfaceError(9, seq, f"start {start} stands after end {end}")
        return first, last

    def _removed(
        self,
        seq: int,
        kind: str,
        first: _Node,
        last: _Node,
        cited: frozenset[int],
        identity: Event | bytes | None,
    ) -> tuple[int, ...]:
        removed: list[int] = []
        node: _Node | None = first
        while node is not None:
            if node.seq not in cited:
                raise SurfaceError(15, seq, f"removed event {node.seq} is not among the sources")
            removed.append(node.seq)
            node = None if node is last else node.next
        if kind == "tool/result":
            if first is not last:
                raise SurfaceError(16, seq, f"a tool result replaces {len(removed)} events")
            if first.type != "tool/result":
                raise SurfaceError(17, seq, f"a tool result replaces {first.type}")
            if not _same_result(first.identity, identity):
                raise SurfaceError(18, seq, "more than the inner content of the tool result changes")
        return tuple(removed)

    def _put(self, seq: int, kind: str, identity: Event | bytes | None) -> None:
        node = _Node(seq, kind, self._labels, self._kept(identity))
        self._labels += 1
        node.previous = self._tail
        if self._tail is None:
            self._head = node
        else:
            self._tail.next = node
        self._tail = node
        self._nodes[seq] = node
        self._length += 1

    def _replace(
        self, seq: int, kind: str, first: _Node, last: _Node, identity: Event | bytes | None
    ) -> None:
        node = _Node(seq, kind, first.label, self._kept(identity))
        node.previous, node.next = first.previous, last.next
        if node.previous is None:
            self._head = node
        else:
            node.previous.next = node
        if node.next is None:
            self._tail = node
        else:
            node.next.previous = node
        self._nodes[seq] = node
        self._length += 1

    def _kept(self, identity: Event | bytes | None) -> Event | bytes | None:
        return _result_identity(identity) if self._compact and identity is not None else identity

    def snapshot(self) -> bytes:
        """The state as bytes, for a checkpoint: length and current nodes, not the past replacements."""
        nodes, node = [], self._head
        while node is not None:
            identity = None if node.identity is None else _result_identity(node.identity)
            nodes.append((node.seq, node.type, identity))
            node = node.next
        return msgspec.msgpack.encode((self._length, nodes))

    @classmethod
    def restore(cls, state: bytes) -> SurfaceFold:
        """A fold that goes on where ``snapshot`` was taken. Raises: ValueError for other bytes."""
        try:
            length, nodes = msgspec.msgpack.decode(state, type=_State)
        except msgspec.MsgspecError as exc:
            raise ValueError("not the state of a surface fold") from exc
        fold = cls()
        for seq, kind, identity in nodes:
            fold._put(seq, kind, identity)
        fold._length = length
        return fold


_State = tuple[int, list[tuple[int, str, bytes | None]]]


@attrs.frozen
class SurfaceResult:
    """The fold of a whole log: current nodes in surface order, and every replacement in log order."""

    length: int
    nodes: tuple[int, ...]
    replacements: tuple[Replacement, ...]
    surfaces: tuple[Surface, ...]
    """The classification of every event, by seq (SPEC 2.9)."""


def fold(events: Iterable[Event]) -> SurfaceResult:
    """Fold a whole log; there is no partial result.

    Raises: SurfaceError: for the first event that breaks a rule.
    """
    folder = SurfaceFold(compact=False)
    surfaces: list[Surface] = []
    for event in events:
        step = folder.append(event)
        surfaces.append(step.surface)
        for seq in step.shadowed:
            surfaces[seq] = "shadowed"
    return SurfaceResult(len(folder), folder.nodes(), tuple(folder.replacements), tuple(surfaces))


def _bounds(seq: int, op: object) -> tuple[int, int]:
    """Judge ``surfaceOp`` of a surface event that is not ``append``: E4, E5, E6."""
    if op is UNSET:
        raise SurfaceError(4, seq, "a surface event without surfaceOp")
    if not isinstance(op, dict):
        raise SurfaceError(5, seq, "surfaceOp is neither append nor an object")
    if op.keys() != {"op", "start", "end"} or op["op"] != "replace":
        raise SurfaceError(6, seq, "surfaceOp is no replace object with exactly op, start, end")
    start, end = whole(op["start"]), whole(op["end"])
    if not (is_safe_integer(start) and is_safe_integer(end) and start >= 0 and end >= 0):
        raise SurfaceError(6, seq, "a bound of surfaceOp is no event number")
    return start, end


def _check_sources(seq: int, kind: str, sources: object) -> tuple[int, ...]:
    """Judge ``sourceEventSeqs`` that are present: E10 to E14."""
    if not isinstance(sources, list):
        raise SurfaceError(10, seq, "sourceEventSeqs is no array")
    if not sources and kind != "assistant/message":
        raise SurfaceError(11, seq, "sourceEventSeqs is empty")
    cited: list[int] = []
    if set(map(type, sources)) == {int} and min(sources) >= 0 and max(sources) <= SAFE_INTEGER_MAX:
        cited = sources  # as writers write them: answers cite hundreds of chunks
        sources = []
    for raw in sources:
        source = whole(raw)
        if not is_safe_integer(source) or source < 0:
            raise SurfaceError(12, seq, "a source is no event number")
        cited.append(source)
    if len(set(cited)) != len(cited):
        raise SurfaceError(13, seq, "a source is named twice")
    if cited and max(cited) >= seq:
        raise SurfaceError(14, seq, "a source is not earlier than the event")
    return tuple(cited)


def _same_result(old: Event | bytes | None, new: Event | bytes | None) -> bool:
    return old is None or new is None or _result_identity(old) == _result_identity(new)


def _result_identity(event: Event | bytes) -> bytes:
    """A digest of everything in a tool result except the inner block's content (SPEC 2.7)."""
    if isinstance(event, bytes):
        return event
    return blake2b(canonical_json(_without_inner_content(event.data)), digest_size=16).digest()


def _without_inner_content(data: JSON) -> JSON:
    if not isinstance(data, dict) or not isinstance(message := data.get("message"), dict):
        return data
    content = message.get("content")
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return data
    block: dict[str, JSON] = {key: value for key, value in content[0].items() if key != "content"}
    return {**data, "message": {**message, "content": [block]}}
