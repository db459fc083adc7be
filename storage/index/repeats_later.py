"""Repeats of a first build's documents, made in idle time: they cost a third of what all else costs.

Until they are made a document may count as one that repeats anything, which costs a look into its text and
never a wrong count. A row says from which document on a block waits; a kill loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol.tokens import prepare
from ..sqlite import Connection
from .bodies import Bodies
from .repeats import repeated
from .schema import BLOCK_BITS, BLOCK_MASK

STEP_DOCUMENTS: Final = 256
STEP_BLOCKS: Final = 32
"""What one idle step looks at, at most: 5 ms."""


class RepeatsLater:
    """The blocks of one writer connection that wait. Every method inside its transaction."""

    def __init__(self, connection: Connection, bodies: Bodies) -> None:
        self._connection = connection
        self._bodies = bodies

    def add(self, rows: Iterable[int]) -> None:
        """Documents were written without their repeats, ascending."""
        firsts: dict[int, int] = {}
        for row in rows:
            firsts.setdefault(row >> BLOCK_BITS, row)
        if firsts:
            self._connection.executemany("INSERT OR IGNORE INTO repeats_todo VALUES(?, ?)", firsts.items())

    def cut(self, first: int, last: int) -> None:
        """The documents ``first``..``last``, to the end of their block, are gone; others may come there."""
        self._connection.execute("DELETE FROM repeats WHERE doc BETWEEN ? AND ?", (first, last))
        self._connection.execute(
            "UPDATE repeats_todo SET next = ?1 WHERE block = ?2 AND next > ?1", (first, first >> BLOCK_BITS)
        )

    def step(self) -> bool:
        """Make the repeats of the next documents. True while more wait."""
        left = STEP_DOCUMENTS
        waiting = self._connection.execute(
            "SELECT block, next FROM repeats_todo ORDER BY block LIMIT ?", (STEP_BLOCKS + 1,)
        ).fetchall()
        for block, start in waiting[:STEP_BLOCKS]:
            left -= self._block(block, start, left)
            if left <= 0:
                return True
        return len(waiting) > STEP_BLOCKS

    def _block(self, block: int, start: int, limit: int) -> int:
        """Up to ``limit`` documents of a block from ``start`` on. Returns: how many there were."""
        high = block << BLOCK_BITS | BLOCK_MASK
        row = self._connection.execute(
            "SELECT count(*), max(doc) FROM"
            " (SELECT doc FROM doc WHERE doc BETWEEN ? AND ? ORDER BY doc LIMIT ?)",
            (start, high, limit),
        ).fetchone()
        assert row is not None, "an aggregate has one row"
        count, last = int(row[0]), row[1]
        if count:
            made = [(doc, repeated(prepare(text))) for doc, text in self._bodies.between(start, last)]
            self._connection.executemany(
                "INSERT OR REPLACE INTO repeats VALUES(?, ?)", [one for one in made if one[1] is not None]
            )
        if count < limit:
            self._connection.execute("DELETE FROM repeats_todo WHERE block = ?", (block,))
        else:
            self._connection.execute("UPDATE repeats_todo SET next = ? WHERE block = ?", (last + 1, block))
        return count
