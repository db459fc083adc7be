"""The surface fold (SPEC 2): which messages the model currently sees, as a pure function of the log.

``SurfaceFold`` takes one event at a time and costs the same whatever the length of the log: nodes stand
in places that are numbered from head to tail. An appended node gets the next place; a replacement takes
over that of the first node it removes, so positions compare without a walk, and remembers where the run
it removed ended, so that nobody walks over empty places. Each node is removed at most once, so walking
the removed run is paid for by its appends.

A live session keeps its fold for as long as it lives, so places are bytes in arrays and not objects.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
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


_KINDS: Final = ("", "user/message", "assistant/message", "tool/result")
"""What stands in a place, by its byte; the first is an empty place."""
_CODES: Final = {kind: code for code, kind in enumerate(_KINDS) if kind}
_RESULT: Final = _CODES["tool/result"]
_DIGEST_BYTES: Final = 16
_UNKNOWN: Final = bytes(_DIGEST_BYTES)
"""In place of the digest of a tool result whose data was not at hand."""


class SurfaceFold:
    """The fold of one log, event by event (SPEC 2).

    A refused event leaves the fold as it was, so an appending runtime may be told and try again.
    ``compact`` (the default) is for folds that are kept: 17 bytes for a surface event, 24 more for a tool
    result, whose digest E18 compares, 16 more for a replacement. Else the events of tool results are held,
    nothing is digested before it is compared, and past ``replacements`` are remembered.
    """

    def __init__(self, *, compact: bool = True) -> None:
        self._compact = compact
        self._kinds = bytearray()
        """What stands at each place now."""
        self._seqs = array("Q")
        """Its seq. In the first of several empty places instead: the last of them."""
        self._firsts = array("Q")
        """The seq that was appended at each place, ascending."""
        self._replacing = array("Q")
        """The seqs of replacements, ascending, and where each was put."""
        self._put_at = array("Q")
        self._results = array("Q")
        """The places at which tool results were appended, ascending, with a digest each."""
        self._digests = bytearray()
        self._events: dict[int, Event] = {}
        """Instead of digests if not ``compact``, by place."""
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
        return tuple(self._seqs[place] for place in self._occupied(0, len(self._kinds) - 1))

    def is_current(self, seq: int) -> bool:
        """True if the event is on the surface now."""
        return self._place_of(seq) is not None

    def _place_of(self, seq: int) -> int | None:
        """Where an event stands; None if it is not on the surface."""
        for seqs, places in ((self._firsts, None), (self._replacing, self._put_at)):
            at = bisect_left(seqs, seq)
            if at < len(seqs) and seqs[at] == seq:
                place = at if places is None else places[at]
                if self._kinds[place] and self._seqs[place] == seq:
                    return place
        return None

    def _occupied(self, first: int, last: int) -> Iterable[int]:
        """The places from one occupied place to another, both included, without the empty ones."""
        return self._stepping(first, last) if self._replacing else range(first, last + 1)

    def _stepping(self, first: int, last: int) -> Iterator[int]:
        place = first
        while place <= last:
            yield place
            place = self._end_of(place) + 1

    def _end_of(self, place: int) -> int:
        """The last of the empty places behind an occupied one; itself if there are none."""
        behind = place + 1
        return self._seqs[behind] if behind < len(self._kinds) and not self._kinds[behind] else place

    def _append(self, event: Foldable, result: Event | None) -> FoldStep:
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
            self._put(seq, kind, None if result is None or not self._compact else _digest(result))
            if result is not None and not self._compact:
                self._events[len(self._kinds) - 1] = result
            self._length += 1
            return FoldStep("current", (), cited) if cited else _APPENDED
        start, end = _bounds(seq, op)
        first, last = self._range(seq, start, end)
        cited = () if sources is UNSET else _check_sources(seq, kind, sources)
        removed = self._removed(seq, kind, first, last, frozenset(cited), result)
        self._replace(seq, kind, first, last)
        if result is not None:
            self._keep_result(first, result)
        self._length += 1
        if not self._compact:
            self.replacements.append(Replacement(seq, start, end, removed))
        return FoldStep("current", removed, cited)

    def _range(self, seq: int, start: int, end: int) -> tuple[int, int]:
        """The places of both ends."""
        first, last = self._place_of(start), self._place_of(end)
        if first is None:
            raise SurfaceError(7, seq, f"start {start} is not on the surface")
        if last is None:
            raise SurfaceError(8, seq, f"end {end} is not on the surface")
        if first > last:
            raise SurfaceError(9, seq, f"start {start} stands after end {end}")
        return first, last

    def _removed(
        self, seq: int, kind: str, first: int, last: int, cited: frozenset[int], result: Event | None
    ) -> tuple[int, ...]:
        removed: list[int] = []
        for place in self._occupied(first, last):
            gone = self._seqs[place]
            if gone not in cited:
                raise SurfaceError(15, seq, f"removed event {gone} is not among the sources")
            removed.append(gone)
        if kind == "tool/result":
            if first != last:
                raise SurfaceError(16, seq, f"a tool result replaces {len(removed)} events")
            if self._kinds[first] != _RESULT:
                raise SurfaceError(17, seq, f"a tool result replaces {_KINDS[self._kinds[first]]}")
            if result is not None and not self._is_same_result(first, result):
                raise SurfaceError(18, seq, "more than the inner content of the tool result changes")
        return tuple(removed)

    def _put(self, seq: int, kind: str, digest: bytes | None) -> None:
        """Append a node. Only tool results have digests."""
        code = _CODES[kind]
        if code == _RESULT:
            self._results.append(len(self._kinds))
            self._digests += digest or _UNKNOWN
        self._kinds.append(code)
        self._seqs.append(seq)
        self._firsts.append(seq)

    def _replace(self, seq: int, kind: str, first: int, last: int) -> None:
        end = self._end_of(last)
        self._kinds[first : end + 1] = bytes(end + 1 - first)
        self._kinds[first], self._seqs[first] = _CODES[kind], seq
        if end > first:
            self._seqs[first + 1] = end
        self._replacing.append(seq)
        self._put_at.append(first)

    def _is_same_result(self, place: int, result: Event) -> bool:
        if not self._compact:
            held = self._events.get(place)
            return held is None or _digest(held) == _digest(result)
        digest = self._digest_at(place)
        return digest == _UNKNOWN or digest == _digest(result)

    def _keep_result(self, place: int, result: Event) -> None:
        """A tool result stands where another stood: it has the same digest, which may not have been known."""
        if not self._compact:
            self._events[place] = result
        elif self._digest_at(place) == _UNKNOWN:
            at = bisect_left(self._results, place) * _DIGEST_BYTES
            self._digests[at : at + _DIGEST_BYTES] = _digest(result)

    def _digest_at(self, place: int) -> bytes:
        at = bisect_left(self._results, place) * _DIGEST_BYTES
        return bytes(self._digests[at : at + _DIGEST_BYTES])

    def snapshot(self) -> bytes:
        """The state as bytes, for a checkpoint: length and current nodes, not the past replacements."""
        seqs, kinds = self._seqs, self._kinds
        nodes = [
            (seqs[place], _KINDS[kinds[place]], self._told_digest(place) if kinds[place] == _RESULT else None)
            for place in self._occupied(0, len(kinds) - 1)
        ]
        return msgspec.msgpack.encode((self._length, nodes))

    def _told_digest(self, place: int) -> bytes | None:
        if not self._compact:
            return None if (held := self._events.get(place)) is None else _digest(held)
        digest = self._digest_at(place)
        return None if digest == _UNKNOWN else digest

    @classmethod
    def restore(cls, state: bytes) -> SurfaceFold:
        """A fold that goes on where ``snapshot`` was taken. Raises: ValueError for other bytes."""
        try:
            length, nodes = msgspec.msgpack.decode(state, type=_State)
        except msgspec.MsgspecError as exc:
            raise ValueError("not the state of a surface fold") from exc
        fold = cls()
        moved: list[tuple[int, int]] = []
        for place, ((seq, kind, digest), later) in enumerate(zip(nodes, _least_later(nodes), strict=True)):
            if not 0 <= seq < length or kind not in SURFACE_TYPES:
                raise ValueError("not the state of a surface fold")
            fold._put(seq, kind, digest)
            if seq > later:  # a replacement, before nodes that are older than itself
                fold._firsts[place] = fold._firsts[place - 1] if place else 0
                moved.append((seq, place))
        for seq, place in sorted(moved):
            fold._replacing.append(seq)
            fold._put_at.append(place)
        fold._length = length
        return fold


_State = tuple[int, list[tuple[int, str, bytes | None]]]


def _least_later(nodes: Sequence[tuple[int, str, bytes | None]]) -> list[int]:
    """For every node the least seq behind it."""
    least, found = SAFE_INTEGER_MAX + 1, []
    for seq, _, _ in reversed(nodes):
        found.append(least)
        least = min(least, seq)
    return found[::-1]


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


def _digest(event: Event) -> bytes:
    """A digest of everything in a tool result except the inner block's content (SPEC 2.7)."""
    content = canonical_json(_without_inner_content(event.data))
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _without_inner_content(data: JSON) -> JSON:
    if not isinstance(data, dict) or not isinstance(message := data.get("message"), dict):
        return data
    content = message.get("content")
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return data
    block: dict[str, JSON] = {key: value for key, value in content[0].items() if key != "content"}
    return {**data, "message": {**message, "content": [block]}}
