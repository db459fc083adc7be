"""The tree of a pi session as a line: which entries the current leaf descends from.

Entries are only ever appended. One whose parent is not the last leaf begins a branch there: what stood
between is left behind. Logs of version 1 have no ids and no branches.
"""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, array_like=True):
    """An entry by its parent and the seq of its first event."""

    parent: str | None
    seq: int


class Tree(msgspec.Struct):
    """All entries by id, and the path from the root to the leaf. Part of the mapper's state."""

    entries: dict[str, Entry] = {}
    path: list[str] = []
    firsts: list[int] = []
    """The first seq of every record, for links by position."""

    def place(self, entry_id: str, parent: str | None, seq: int, *, linked: bool) -> tuple[int | None, bool]:
        """Add an entry that gets ``seq``; ``linked`` tells that the record has a parent key at all.

        Returns: the seq from which on the old branch is left (None: nothing is), and whether a branch
        left before is taken up again.
        """
        left, again = None, False
        if linked and entry_id and self.path and parent != self.path[-1]:
            left, again = self._branch(parent)
        if entry_id:
            self.entries[entry_id] = Entry(parent, seq)
            self.path.append(entry_id)
        return left, again

    def _branch(self, parent: str | None) -> tuple[int | None, bool]:
        chain: list[str] = []
        node, known = parent, set(self.path)
        while node is not None and node not in known:
            if node not in self.entries or len(chain) > len(self.entries):
                return None, False  # a parent that was never written: go on behind the line before
            chain.append(node)
            node = self.entries[node].parent
        keep = 0 if node is None else self.path.index(node) + 1
        left = self.entries[self.path[keep]].seq if keep < len(self.path) else None
        self.path[keep:] = reversed(chain)
        return left, bool(chain)
