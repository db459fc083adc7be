"""Spans: one full-text row for a run of documents, telling which frequent words occur in it, not where.

They answer "which sessions hold this word at all" for a fraction of what single postings cost (1.8 ms
against 1.2 s for ten common words in a million events). Rare words need none: their postings are few.
So spans begin when an index has grown to ``SPANS_FROM_DOCUMENTS``: the words frequent by then are chosen
once, in idle time, and the blocks that stand already are covered one by one; blocks opened later get
their spans with every append. Until all is covered, and for every other word, postings answer.

A chosen word is held by several sessions, so that the list tells nothing about any one of them.
The row id is that of the first document, negative for documents that ordinary searches do not see
(SPEC 16.1.7). Idle time joins small rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from ...protocol.tokens import parts, prepare, split_bytes
from ..sqlite import Connection
from .bodies import Bodies
from .repeats import repeated_of
from .schema import BLOCK_BITS, BLOCK_MASK, SPAN_STATEMENTS, TAG, spans_stand

SPANS_FROM_DOCUMENTS: Final = 20_000
FREQUENT_SHARE: Final = 0.01
"""Share of the documents that hold a word worth a span: below it a million events give 10,000 postings."""
FREQUENT_BLOCKS_MIN: Final = 8
SPAN_DOCUMENTS_MAX: Final = 512
JOINED_BELOW: Final = 128
"""Documents of a row below which idle time joins it with its neighbours: bounds what one step reads."""
COVER_DOCUMENTS: Final = 256
"""Documents of a block that one idle step covers."""
LOOSE_ROWS_MAX: Final = 8
"""Rows of one block above which idle time joins them."""
WAITING_CHARS_MAX: Final = 1 << 18


@attrs.define(eq=False)
class SpanRow:
    """A row being gathered: ``first`` and ``last`` are row ids of documents in one block.

    Texts wait unsplit, as they are prepared: splitting many at once and looking for the frequent words
    among theirs costs 6 us a document of 550 characters, document by document 16.
    """

    first: int
    last: int
    search: bool
    frequent: frozenset[bytes]
    _tokens: set[str] = attrs.field(factory=set)
    _waiting: list[str] = attrs.field(factory=list)
    _waiting_chars: int = 0
    _found: set[bytes] = attrs.field(factory=set)

    @property
    def row_id(self) -> int:
        return -self.first if self.search else self.first

    def add(self, prepared: str, pieces: str) -> None:
        """Take the words of a prepared text and the parts of its identifiers."""
        self._waiting.append(prepared)
        if pieces:
            self._waiting.append(pieces)
        self._waiting_chars += len(prepared)
        if self._waiting_chars > WAITING_CHARS_MAX:
            self._split()

    def add_split(self, words: Iterable[bytes], pieces: str) -> None:
        """The same for a text that was split for other ends already."""
        self._found |= self.frequent.intersection(words)
        if pieces:
            self._found |= self.frequent.intersection(pieces.encode().split())

    def join(self, other: SpanRow) -> None:
        """Take everything of the row that follows."""
        self.last = other.last
        self._tokens |= other.tokens

    def _split(self) -> None:
        self._found |= self.frequent.intersection(split_bytes(" ".join(self._waiting)))
        self._waiting.clear()
        self._waiting_chars = 0

    @property
    def tokens(self) -> set[str]:
        """The frequent ones among its words."""
        if self._waiting:
            self._split()
        if self._found:
            self._tokens.update(token.decode() for token in self._found)
            self._found.clear()
        return self._tokens

    @property
    def text(self) -> str:
        return " ".join(sorted(self.tokens))


class Spans:
    """The span tables of one writer connection."""

    def __init__(self, connection: Connection, bodies: Bodies) -> None:
        self._connection = connection
        self._bodies = bodies
        self.forget()

    def forget(self) -> None:
        """Read again what is remembered: the transaction was rolled back, or this is the beginning."""
        self._loose: dict[int, int] | None = None
        self.made = spans_stand(self._connection)
        """Whether the tables of spans stand."""
        if not self.made:
            self._frequent, self._uncovered = frozenset[bytes](), list[int]()
            return
        chosen = self._connection.execute("SELECT token FROM span_word").fetchall()
        self._frequent = frozenset(token.encode() for (token,) in chosen)
        todo = self._connection.execute("SELECT block FROM span_todo ORDER BY block").fetchall()
        self._uncovered = [block for (block,) in todo]

    @property
    def active(self) -> bool:
        """Whether new documents need spans."""
        return bool(self._frequent)

    def row_for(self, rows: list[SpanRow], row_id: int, search: bool) -> SpanRow:
        """The row that takes this document: the last one of its kind if it goes on there, else a new one."""
        for row in rows[-2:]:
            if row.search == search and row.last >> BLOCK_BITS == row_id >> BLOCK_BITS and row.last < row_id:
                if row_id - row.first >= SPAN_DOCUMENTS_MAX:
                    continue
                row.last = row_id
                return row
        row = SpanRow(row_id, row_id, search, self._frequent)
        rows.append(row)
        return row

    def insert(self, rows: Sequence[SpanRow]) -> None:
        """Write rows of blocks that are covered; the others come with their block."""
        waiting = set(self._uncovered)
        self._write([row for row in rows if row.first >> BLOCK_BITS not in waiting])

    def _write(self, rows: Sequence[SpanRow]) -> None:
        if not rows:
            return
        ordered = sorted(rows, key=lambda row: row.row_id)
        self._connection.executemany(
            "INSERT INTO span(rowid, words) VALUES(?, ?)", [(row.row_id, row.text) for row in ordered]
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

        ``last`` is the block's last document: only tails are cut. A block half covered begins anew.
        """
        if not self.made:
            return
        block = first >> BLOCK_BITS
        begun = block in self._uncovered
        left: list[SpanRow] = []
        for row_id, end in self._rows(block):
            if begun or end >= first:
                self._delete(row_id, end)
                if not begun and abs(row_id) < first:
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
        """Remove a row; the engine must be told exactly what it holds."""
        for row in self._gather(row_id, end):
            self._connection.execute(
                "INSERT INTO span(span, rowid, words) VALUES('delete', ?, ?)",
                (row_id, row.text),
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
            if doc in wanted:
                if not rows:
                    rows.append(SpanRow(doc, doc, search, self._frequent))
                rows[0].last = doc
                prepared = prepare(text)
                rows[0].add(prepared, " ".join(parts(prepared)))
        return rows

    # -- idle work --

    def step(self) -> bool:
        """One piece: choose the words, cover a block, or join the rows of one. True while more waits."""
        if not self._frequent:
            return self.choose() or self._join_step()
        if self._uncovered:
            self._cover(self._uncovered[0])
            return True
        return self._join_step()

    def choose(self) -> bool:
        """Choose the frequent words if the index is large enough and has none. True if it was done."""
        execute = self._connection.execute
        if self.made:
            return False
        row = execute("SELECT sum(documents) FROM session").fetchone()
        documents = 0 if row is None or row[0] is None else row[0]
        if documents < SPANS_FROM_DOCUMENTS:
            return False
        for statement in SPAN_STATEMENTS:
            execute(statement)
        execute("INSERT INTO index_meta VALUES('spans', x'31')")
        self._connection.execute("CREATE VIRTUAL TABLE temp.fts_words USING fts5vocab(main, fts, row)")
        found = self._connection.execute(
            "SELECT term FROM temp.fts_words WHERE doc >= ?", (int(FREQUENT_SHARE * documents),)
        ).fetchall()
        self._connection.execute("DROP TABLE temp.fts_words")
        chosen = [term for (term,) in found if not term.startswith(TAG) and self._is_spread(term)]
        self._connection.executemany("INSERT INTO span_word VALUES(?)", [(term,) for term in chosen])
        self._connection.execute("INSERT INTO span_todo SELECT block FROM block")
        self.forget()
        return True

    def _is_spread(self, term: str) -> bool:
        row = self._connection.execute(
            f"SELECT count(*) FROM (SELECT DISTINCT rowid >> {BLOCK_BITS} FROM fts"
            " WHERE fts MATCH ? LIMIT ?)",
            (f'"{term}"', FREQUENT_BLOCKS_MIN),
        ).fetchone()
        return row is not None and row[0] >= FREQUENT_BLOCKS_MIN

    def _cover(self, block: int) -> None:
        """Make the spans of the next documents of a block, and note when it is done."""
        low, high = block << BLOCK_BITS, block << BLOCK_BITS | BLOCK_MASK
        start = max((end + 1 for _, end in self._rows(block)), default=low)
        found = self._connection.execute(
            "SELECT doc, search FROM doc WHERE doc BETWEEN ? AND ? ORDER BY doc LIMIT ?",
            (start, high, COVER_DOCUMENTS),
        ).fetchall()
        if not found:
            self._connection.execute("DELETE FROM span_todo WHERE block = ?", (block,))
            self._uncovered.remove(block)
            return
        searches: dict[int, int] = dict(found)
        rows: list[SpanRow] = []
        repeats: list[tuple[int, bytes]] = []
        for doc, text in self._bodies.between(start, found[-1][0]):
            prepared = prepare(text)
            counts = Counter(split_bytes(prepared))
            row = self.row_for(rows, doc, bool(searches[doc]))
            row.add_split(counts, " ".join(parts(prepared)))
            if (hashes := repeated_of(counts)) is not None:
                repeats.append((doc, hashes))
        self._write(rows)
        self._connection.executemany("INSERT OR REPLACE INTO repeats VALUES(?, ?)", repeats)

    def _join_step(self) -> bool:
        """Join the small rows of one block. True while another block waits."""
        if not self.made:
            return False
        if self._loose is None:
            counted = f"SELECT abs(doc) >> {BLOCK_BITS}, count(*) FROM span_end GROUP BY 1"
            self._loose = dict(self._connection.execute(counted).fetchall())
        waiting = [block for block, count in self._loose.items() if count > LOOSE_ROWS_MAX]
        if not waiting:
            return False
        self._join(waiting[0])
        del self._loose[waiting[0]]
        return len(waiting) > 1

    def _join(self, block: int) -> None:
        joined: list[SpanRow] = []
        growing: dict[bool, SpanRow] = {}
        for row_id, end in self._rows(block):
            search = row_id < 0
            if end - abs(row_id) >= JOINED_BELOW:
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
                    before.join(row)
        self.insert(joined)

    def drop_unheld(self) -> bool:
        """Take words that no document holds any more off the list (SPEC 16.10). True if there were any."""
        if not self.made:
            return False
        gone = [
            (token,)
            for token in (frequent.decode() for frequent in self._frequent)
            if not self._connection.execute(
                "SELECT 1 FROM fts WHERE fts MATCH ? LIMIT 1", (f'"{token}"',)
            ).fetchall()
        ]
        self._connection.executemany("DELETE FROM span_word WHERE token = ?", gone)
        self.forget()
        return bool(gone)
