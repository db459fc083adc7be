"""The surface of a session as a reader builds it, so that every replacement it writes is valid (SPEC 2).

Foreign logs name what a rewind or a compaction left behind by their own ids and times; section 2 wants
one contiguous run of current nodes, all cited. What cannot be said that way is not said.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ....protocol.json_value import JSON

NODES_MAX: Final = 16_384
"""More messages than a model's window holds. Beyond it replacements are no longer tracked."""

HUMAN_PROMPT: Final = 2
INJECTED: Final = 1
OTHER: Final = 0
"""What a node is: a message a person wrote, one a program wrote in the user's role, anything else."""

Rows = tuple[list[int], list[int], bool]


class SurfaceStep(msgspec.Struct, frozen=True):
    """What the next surface event has to carry: its ``surfaceOp``, and the nodes it must cite."""

    op: JSON | UnsetType
    removed: tuple[int, ...]


class SurfaceTrack:
    """Current nodes in surface order. Owned by one mapper; bounded by ``NODES_MAX``."""

    def __init__(self, rows: Rows | None = None) -> None:
        gaps, kinds, self.lost = rows if rows is not None else ([], [], False)
        self._kinds = list(kinds)
        self._seqs: list[int] = []
        seq = 0
        for gap in gaps:
            seq += gap
            self._seqs.append(seq)

    def rows(self) -> Rows:
        """For a mapper's state. Gaps instead of seqs: one byte each in msgpack, nearly always."""
        gaps = [seq - before for before, seq in zip([0, *self._seqs], self._seqs, strict=False)]
        return gaps, list(self._kinds), self.lost

    @property
    def last(self) -> int:
        """The seq of the last node, -1 on an empty surface."""
        return self._seqs[-1] if self._seqs else -1

    def __len__(self) -> int:
        return len(self._seqs)

    def position(self, seq: int) -> int | None:
        """The position of a current node; None if ``seq`` is none."""
        if self._seqs and self._seqs[-1] == seq:
            return len(self._seqs) - 1
        try:
            return self._seqs.index(seq)
        except ValueError:
            return None

    def seq_at(self, position: int) -> int:
        """The seq of the node at ``position``; -1 before the first."""
        return self._seqs[position] if position >= 0 else -1

    def kind(self, position: int) -> int:
        return self._kinds[position]

    def append(self, seq: int, kind: int) -> SurfaceStep:
        self._seqs.append(seq)
        self._kinds.append(kind)
        if len(self._seqs) > NODES_MAX:
            self._seqs.clear()
            self._kinds.clear()
            self.lost = True
        return SurfaceStep("append", ())

    def replace(self, first: int, last: int, seq: int, kind: int) -> SurfaceStep:
        """Put ``seq`` in the place of the nodes at positions ``first`` to ``last``, both included."""
        removed = tuple(self._seqs[first : last + 1])
        self._seqs[first : last + 1] = [seq]
        self._kinds[first : last + 1] = [kind]
        return SurfaceStep({"op": "replace", "start": removed[0], "end": removed[-1]}, removed)

    def all_from(self, position: int, seqs: Collection[int]) -> bool:
        """True if the nodes from ``position`` to the end are exactly among ``seqs``."""
        return all(seq in seqs for seq in self._seqs[position:])


LOG_ONLY: Final = SurfaceStep(UNSET, ())
