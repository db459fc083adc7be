"""Links between the records of the main chain, as far as section 2 can say them (SPEC 16.7.4).

``parentUuid`` makes a tree. Parallel calls and hooks branch it all the time, so a branch alone is no
rewind. What is one: a prompt a *person* wrote whose parent is not the end of the chain, when the message
behind that parent is itself one in the user's role. It replaces everything from there on.

A compaction replaces all before it except the messages its boundary names as kept. Kept ones that
stand apart cannot be said with one run; then less is replaced, with a note.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ..corelog.shapes import COMPACTION
from ..record_table import Entry, RecordRows, RecordTable
from .drafts import Draft
from .fields import mapping, string, strings
from .mapping import is_act, is_summary
from .surface_track import HUMAN_PROMPT, INJECTED, Rows, SurfaceStep, SurfaceTrack

NOTE_KEPT: Final = "a compaction kept messages that stand apart; those between count as kept too"
NOTE_NO_SUMMARY: Final = "a compaction is marked in the log, but no summary follows it"
NOTE_OLD_BRANCH: Final = (
    "the log goes on from a branch that was left before; its messages stay marked as left"
)
NOTE_COMPACTED: Final = "the log goes on from before a compaction; the messages there stay marked as replaced"
NOTE_RETRACTED: Final = "messages were retracted that are not the last ones; they stay unmarked"
NOTE_TOO_LONG: Final = "too many messages without a compaction: later rewinds and compactions are not marked"

_GONE: Final = -2
"""The anchor of records before a compaction."""


def _stale(anchor: int) -> int:
    """An anchor on a branch that was left; remembers the node before that branch."""
    return -(anchor + 1) - 10


def _unstale(anchor: int) -> int | None:
    return -(anchor + 10) - 1 if anchor <= -10 else None


class LinksState(msgspec.Struct, array_like=True):
    surface: Rows | None = None
    recent: RecordRows = msgspec.field(default_factory=RecordRows)
    targets: RecordRows = msgspec.field(default_factory=RecordRows)
    boundary: int = -1
    kept: list[int] = []
    retracted: list[int] = []


class Links:
    """What was read of the main chain. ``notes`` are drained by the owner after each record."""

    def __init__(self, state: LinksState) -> None:
        self.surface = SurfaceTrack(state.surface)
        self._recent = RecordTable(state.recent)
        self._targets = RecordTable(state.targets)
        """Parents of prompts: where a rewind leads, however long ago."""
        self._boundary = state.boundary
        self._kept = state.kept
        self._retracted = state.retracted
        self.notes: list[str] = []
        self.cited: list[int] = []
        """Log-only events that the event placed last derives from."""

    def state(self) -> LinksState:
        return LinksState(
            self.surface.rows(),
            self._recent.rows(),
            self._targets.rows(),
            self._boundary,
            self._kept,
            self._retracted,
        )

    def find(self, record_id: str | None) -> Entry | None:
        return self._recent.get(record_id, self._targets)

    def is_repeat(self, entry: Entry, digest: int) -> bool:
        """True if the record is in the log already, with the same content, and still stands there."""
        if entry.digest != digest:
            return False
        return entry.lane != 0 or entry.nodes == 0 or self.surface.position(entry.anchor) is not None

    def remember(self, obj: dict[str, JSON], entry: Entry) -> None:
        self._recent.put(string(obj, "uuid"), entry)

    def anchor_behind(self, parent: Entry | None) -> int:
        """The anchor of a record without a surface node of its own."""
        return parent.anchor if parent is not None and parent.lane == 0 else self.surface.last

    def see_log_only(self, obj: dict[str, JSON], seq: int) -> None:
        """Take what a system record announces: a compaction, or retracted messages."""
        if obj.get("type") != "system":
            return
        if obj.get("subtype") == "compact_boundary":
            self._boundary = seq
            self._kept = self._kept_nodes(mapping(obj, "compactMetadata"))
        self._retracted = self._nodes(strings(obj, "retractedMessageUuids")) or self._retracted

    def place(self, draft: Draft, seq: int, obj: dict[str, JSON], parent: Entry | None) -> SurfaceStep:
        """Give the first surface event of a record its place on the surface."""
        surface, kind = self.surface, draft.node_kind
        self.cited = []
        if surface.lost:
            return surface.append(seq, kind)
        if draft.type == "user/message" and draft.data["source"] == COMPACTION:
            if is_summary(obj) or self._boundary >= 0:
                return self._compact(seq)
        elif self._boundary >= 0 and draft.type != "tool/result":
            self._boundary, self._kept = -1, []
            self.notes.append(NOTE_NO_SUMMARY)
        return self._rewind(draft, seq, obj, parent) or self.append(seq, kind)

    def append(self, seq: int, kind: int) -> SurfaceStep:
        step = self.surface.append(seq, kind)
        if self.surface.lost:
            self.notes.append(NOTE_TOO_LONG)
        return step

    def _rewind(
        self, draft: Draft, seq: int, obj: dict[str, JSON], parent: Entry | None
    ) -> SurfaceStep | None:
        start = self._branch_start(draft, obj, parent)
        if start is None and draft.type != "tool/result":
            start = self._retraction_start(strings(obj, "supersedesUuids"))
        if start is None:
            return None
        self._retracted = []
        before = self.surface.seq_at(start - 1)
        step = self.surface.replace(start, len(self.surface) - 1, seq, draft.node_kind)
        self._move(step.removed, _stale(before))
        return step

    def _branch_start(self, draft: Draft, obj: dict[str, JSON], parent: Entry | None) -> int | None:
        """The position of the first message that a rewind leaves behind; None if this is no rewind."""
        if parent is None or parent.lane != 0:
            return None
        anchor = parent.anchor
        if anchor == _GONE:
            self.notes.append(NOTE_COMPACTED)
            return None
        if (before := _unstale(anchor)) is not None:
            self.notes.append(NOTE_OLD_BRANCH)
            anchor = before
        if not is_act(obj, draft):
            return None
        self._targets.put(string(obj, "parentUuid"), parent._replace(anchor=anchor))
        position = -1 if anchor < 0 else self.surface.position(anchor)
        if position is None or position + 1 >= len(self.surface):
            return None
        left = self.surface.kind(position + 1)
        return position + 1 if left in (HUMAN_PROMPT, INJECTED) else None

    def _retraction_start(self, superseded: list[str]) -> int | None:
        nodes = {*self._retracted, *self._nodes(superseded)}
        self._retracted = []
        if not nodes:
            return None
        positions = [at for node in nodes if (at := self.surface.position(node)) is not None]
        if positions and self.surface.all_from(min(positions), nodes):
            return min(positions)
        if positions:
            self.notes.append(NOTE_RETRACTED)
        return None

    def _compact(self, seq: int) -> SurfaceStep:
        span = self._compacted_span()
        self.cited = [self._boundary] if self._boundary >= 0 else []
        self._boundary, self._kept = -1, []
        if span is None:
            return self.append(seq, INJECTED)
        step = self.surface.replace(*span, seq, INJECTED)
        self._move(step.removed, _GONE)
        return step

    def _compacted_span(self) -> tuple[int, int] | None:
        """First and last position that a summary replaces; None if there is nothing it can."""
        end = len(self.surface) - 1
        kept = sorted(at for seq in self._kept if (at := self.surface.position(seq)) is not None)
        if not kept:
            return (0, end) if end >= 0 else None
        together = kept[-1] - kept[0] == len(kept) - 1
        if together and kept[0] == 0:
            return (kept[-1] + 1, end) if kept[-1] < end else None
        if not (together and kept[-1] == end):
            self.notes.append(NOTE_KEPT)
        return (0, kept[0] - 1) if kept[0] > 0 else None

    def _kept_nodes(self, metadata: dict[str, JSON]) -> list[int]:
        uuids = strings(mapping(metadata, "preservedMessages"), "uuids")
        if uuids:
            return self._nodes(uuids)
        segment = mapping(metadata, "preservedSegment")
        head = self._nodes([string(segment, "headUuid") or ""])
        tail = self._nodes([string(segment, "tailUuid") or ""])
        first = self.surface.position(head[0]) if head else None
        last = self.surface.position(tail[-1]) if tail else len(self.surface) - 1
        if first is None or last is None:
            return []
        return [self.surface.seq_at(at) for at in range(first, last + 1)]

    def _nodes(self, uuids: list[str]) -> list[int]:
        """The current surface nodes of the named records, in the order named."""
        found: list[int] = []
        for uuid in uuids:
            entry = self.find(uuid)
            if entry is None or entry.lane != 0 or entry.nodes == 0:
                continue
            last = self.surface.position(entry.anchor)
            if last is not None:
                found += [self.surface.seq_at(at) for at in range(max(0, last - entry.nodes + 1), last + 1)]
        return found

    def _move(self, removed: tuple[int, ...], to: int) -> None:
        gone = frozenset(removed)

        def moved(anchor: int) -> int:
            return to if anchor in gone else anchor

        self._recent.move_anchors(moved)
        self._targets.move_anchors(moved)
