"""Spans: one full-text row for a run of a session's documents, telling that a word occurs, not where.

They answer "which sessions hold this word at all" for a fraction of what single postings cost (1.8 ms
against 1.2 s for ten common words in a million events). Every append adds a row, so spans are always
complete; idle time joins small rows. The row id is that of the first document, negative for documents
that ordinary searches do not see (SPEC 16.1.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ...protocol.tokens import parts, prepare
from ..sqlite import Connection
from .bodies import Bodies
from .schema import BLOCK_BITS, BLOCK_MASK

SPAN_DOCUMENTS_MAX: Final = 512
SPAN_CHARS_MAX: Final = 2_000_000
LOOSE_ROWS_MAX: Final = 8
"""Rows of one block above which idle time joins them."""


@attrs.define(eq=False)
class SpanRow:
    """A row being gathered: ``first`` and ``last`` are row ids of documents in one block."""

    first: int
    last: int
    search: bool
    chars: int
    words: set[str]

    @property
    def row_id(self) -> int:
        return -self.first if self.search else self.first

    @staticmethod
    def extend(rows: list[SpanRow], row_id: int, search: bool, prepared: str, pieces: str) -> None:
        """Add a document to the last row of its kind if it goes on there, else open a new row."""
        for row in rows[-2:]:
            if row.search == search and row.last >> BLOCK_BITS == row_id >> BLOCK_BITS and row.last < row_id:
                if row_id - row.first >= SPAN_DOCUMENTS_MAX or row.chars > SPAN_CHARS_MAX:
                    continue
                row.last = row_id
                break
        else:
            row = SpanRow(row_id, row_id, search, 0, set())
            rows.append(row)
        row.words.update(prepared.split())  # each distinct word once: half the work for the engine
        row.words.update(pieces.split())
        row.chars += len(prepared)


class Spans:
    """The span tables of one writer connection."""

    def __init__(self, connection: Connection, bodies: Bodies) -> None:
        self._connection = connection
        self._bodies = bodies
        self._loose: dict[int, int] | None = None

    def forget(self) -> None:
        """Drop what is remembered: the transaction was rolled back."""
        self._loose = None

    def insert(self, rows: Sequence[SpanRow]) -> None:
        ordered = sorted(rows, key=lambda row: row.row_id)
        self._connection.executemany(
            "INSERT INTO span(rowid, words) VALUES(?, ?)",
            [(row.row_id, " ".join(row.words)) for row in ordered],
        )
        self._connection.executemany(
            "INSERT INTO span_end VALUES(?, ?)", [(row.row_id, row.last) for row in ordered]
        )
        if self._loose is not None:
            for row in ordered:
                block = row.first >> BLOCK_BITS
                self._loose[block] = self._loose.get(block, 0) + 1

    def cut(self, first: int, last: int) -> None:
        """Take the documents ``first``..``last`` out of the spans of their block. Their bodies still stand.

        ``last`` is the block's last document: only tails are cut.
        """
        block = first >> BLOCK_BITS
        left: list[SpanRow] = []
        for row_id, end in self._rows(block):
            if end >= first:
                self._delete(row_id, end)
                if abs(row_id) < first:
                    left += self._gather(row_id, first - 1)
        self.insert(left)

    def _rows(self, block: int) -> list[tuple[int, int]]:
        low, high = block << BLOCK_BITS, block << BLOCK_BITS | BLOCK_MASK
        return [
            (row_id, end)
            for row_id, end in self._connection.execute(
                "SELECT doc, last FROM span_end WHERE doc BETWEEN ? AND ? OR doc BETWEEN ? AND ?"
                " ORDER BY abs(doc)",
                (low, high, -high, -low),
            ).fetchall()
        ]

    def _delete(self, row_id: int, end: int) -> None:
        words = [word for row in self._gather(row_id, end) for word in row.words]
        self._connection.execute(
            "INSERT INTO span(span, rowid, words) VALUES('delete', ?, ?)", (row_id, " ".join(words))
        )
        self._connection.execute("DELETE FROM span_end WHERE doc = ?", (row_id,))

    def _gather(self, row_id: int, end: int) -> list[SpanRow]:
        """The row made anew from the text copies of its documents up to ``end``; none without any."""
        search = row_id < 0
        wanted = {
            doc
            for (doc,) in self._connection.execute(
                "SELECT doc FROM doc WHERE doc BETWEEN ? AND ? AND search = ?",
                (abs(row_id), end, int(search)),
            ).fetchall()
        }
        rows: list[SpanRow] = []
        for doc, text in self._bodies.between(abs(row_id), end):
            if doc not in wanted:
                continue
            prepared = prepare(text)
            if not rows:
                rows.append(SpanRow(doc, doc, search, 0, set()))
            rows[0].last = doc
            rows[0].words.update(prepared.split(), parts(prepared))
        return rows

    def join_step(self) -> bool:
        """Join the small rows of one block, and its text copies. True while another block waits."""
        if self._loose is None:
            self._loose = dict(
                self._connection.execute(
                    "SELECT abs(doc) >> 12, count(*) FROM span_end GROUP BY 1"
                ).fetchall()
            )
        waiting = [block for block, count in self._loose.items() if count > LOOSE_ROWS_MAX]
        if not waiting:
            return False
        self._bodies.join(waiting[0])
        self._join(waiting[0])
        self._loose[waiting[0]] = 0
        return len(waiting) > 1

    def _join(self, block: int) -> None:
        joined: list[SpanRow] = []
        growing: dict[bool, SpanRow] = {}
        for row_id, end in self._rows(block):
            search = row_id < 0
            if end - abs(row_id) >= SPAN_DOCUMENTS_MAX // 2:
                growing.pop(search, None)  # no row may reach across another one of its kind
                continue
            gathered = self._gather(row_id, end)
            self._delete(row_id, end)
            for row in gathered:
                before = growing.get(search)
                if before is None or row.last - before.first >= SPAN_DOCUMENTS_MAX:
                    joined.append(row)
                    growing[search] = row
                else:
                    before.last = row.last
                    before.words |= row.words
        self.insert(joined)
