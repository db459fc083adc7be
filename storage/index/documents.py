"""Documents on their way into and out of the tables: row ids, postings, spans, text copies.

New documents wait in memory until ``flush`` writes them in row-id order: a full-text row out of order
would close the segment being built. Whoever reads the tables inside a transaction flushes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from ...protocol.documents import Document
from ...protocol.event import SURFACES, Surface
from ...protocol.tokens import parts, prepare, split_bytes
from ..sqlite import Connection
from ..text_codec import TextCodec
from .bodies import Bodies, BodyRun
from .packing import Packing
from .repeats import repeated_of
from .repeats_later import RepeatsLater
from .rows import from_sql, to_sql
from .schema import BLOCK_BITS, BLOCK_DOCUMENTS, BLOCK_MASK, SURFACE_NUMBERS, document_kind
from .spans import SpanRow, Spans
from .tagging import Tagging, tags

PENDING_CHARS_MAX: Final = 8_000_000
"""Text waiting in memory. Whole transactions of a first build stay below it."""

SOON_CHARS_MAX: Final = 16_000
"""Text of one transaction that waits uncompressed until idle time packs it (see ``packing``)."""

Posting: TypeAlias = tuple[int, str, str, str, str]
SLOTS_MAX: Final = 4096

_FTS_INSERT: Final = "INSERT INTO fts(rowid, text, parts, search_text, search_parts) VALUES(?, ?, ?, ?, ?)"
_FTS_DELETE: Final = (
    "INSERT INTO fts(fts, rowid, text, parts, search_text, search_parts) VALUES('delete', ?, ?, ?, ?, ?)"
)
_READ: Final = (
    "SELECT d.seq, d.time, t.name, d.surface, d.search FROM doc AS d JOIN type AS t ON t.type = d.type"
    " WHERE d.doc BETWEEN ? AND ? ORDER BY d.doc"
)


@attrs.define(eq=False)
class Slot:
    """What the writer remembers of a session.

    ``numbers``: documents; ``counted``: those that its rows tell of; ``last_seq``: -1 without any.
    """

    sid: int
    ws: int
    counted: int
    numbers: int
    texts: int
    chars: int
    last_seq: int
    blocks: list[int]

    def row_id(self, number: int) -> int:
        return self.blocks[number >> BLOCK_BITS] << BLOCK_BITS | number & BLOCK_MASK


class DocumentStore:
    """The document tables of one writer connection."""

    def __init__(self, connection: Connection, codec: TextCodec) -> None:
        self._connection = connection
        self._codec = codec
        self._types: dict[str, int] = {}
        self._slots: dict[int, Slot] = {}
        self._uncounted: set[int] = set()
        self.most_flushed = 0
        """Most documents written at once since whoever reads this set it to 0."""
        self.bodies = Bodies(connection, codec)
        self.packing = Packing(connection, codec)
        self.tagging = Tagging(connection)
        self.spans = Spans(connection, self.bodies)
        self.repeats_later = RepeatsLater(connection, self.bodies)
        self.is_bulk = False
        """A first build runs: what answers without is made in idle time."""
        self._clear()

    def _clear(self) -> None:
        self._docs: list[tuple[int, int, int, int, int]] = []
        self._runs: list[BodyRun] = []
        self._postings: list[Posting] = []
        self._new_spans: list[SpanRow] = []
        self._repeats: list[tuple[int, bytes]] = []
        self._without_repeats: list[int] = []
        self._pending_chars = 0

    def forget_all(self) -> None:
        """Drop everything remembered: the transaction was rolled back."""
        self._clear()
        self._types.clear()
        self._slots.clear()
        self._uncounted.clear()
        self.spans.forget()
        self.tagging.forget()

    def slot(self, sid: int) -> Slot:
        """The allocation state of a session. Raises: KeyError: there is no such session."""
        slot = self._slots.get(sid)
        if slot is None:
            slot = self._slots[sid] = self._load_slot(sid)
        return slot

    def _load_slot(self, sid: int) -> Slot:
        # What waits is of slots still remembered: new sessions do not break a run of insertions.
        execute = self._connection.execute
        row = execute("SELECT ws, documents, texts, chars FROM session WHERE sid = ?", (sid,)).fetchone()
        if row is None:
            raise KeyError(sid)
        blocks = [b for (b,) in execute("SELECT block FROM block WHERE sid = ? ORDER BY block", (sid,))]
        slot = Slot(sid, row[0], row[1], row[1], row[2], row[3], -1, blocks)
        if slot.numbers:
            last = execute("SELECT seq FROM doc WHERE doc = ?", (slot.row_id(slot.numbers - 1),)).fetchone()
            slot.last_seq = last[0] if last else -1
        return slot

    def add(self, sid: int, documents: Sequence[Document]) -> None:
        """Add documents, ascending and above every stored seq. Raises: ValueError otherwise."""
        slot = self.slot(sid)
        if documents:
            self._uncounted.add(sid)
        for document in documents:
            if document.seq <= slot.last_seq:
                raise ValueError(f"document {document.seq} of session {sid} after {slot.last_seq}")
            self._add(slot, document)
        if self._pending_chars > PENDING_CHARS_MAX:
            self.flush()

    def _add(self, slot: Slot, document: Document) -> None:
        number = slot.numbers
        if number >> BLOCK_BITS >= len(slot.blocks):
            slot.blocks.append(self._new_block(slot.sid))
        row_id = slot.row_id(number)
        text = document.text
        prepared = prepare(text)
        pieces = " ".join(parts(prepared))
        spans, counts = self.spans.active, None
        if spans and not self.is_bulk:  # two things are made of the same words
            counts = Counter(split_bytes(prepared))
        search = document.is_search
        kind = document_kind(self._type(document.type), search, document.surface)
        self._docs.append((row_id, document.seq, document.time, kind, len(text)))
        BodyRun.extend(self._runs, row_id, text)
        self._postings.append(self._posting(row_id, slot.ws, search, prepared, pieces, len(text)))
        if spans:
            row = self.spans.row_for(self._new_spans, row_id, search)
            if counts is None:
                row.add(prepared, pieces)
                self._without_repeats.append(row_id)
            else:
                row.add_split(counts, pieces)
                if (hashes := repeated_of(counts)) is not None:
                    self._repeats.append((row_id, hashes))
        slot.numbers, slot.last_seq = number + 1, document.seq
        if not search:
            slot.texts += 1
            slot.chars += len(text)
        self._pending_chars += len(text)

    def _new_block(self, sid: int) -> int:
        block = self._connection.execute("INSERT INTO block(sid) VALUES(?)", (sid,)).lastrowid
        assert block is not None, "an INSERT has a row id"
        return block

    def _type(self, name: str) -> int:
        number = self._types.get(name)
        if number is None:
            self._connection.execute("INSERT OR IGNORE INTO type(name) VALUES(?)", (to_sql(name),))
            row = self._connection.execute("SELECT type FROM type WHERE name = ?", (to_sql(name),)).fetchone()
            assert row is not None, "it was just inserted"
            number = self._types[name] = row[0]
        return number

    def read(self, sid: int) -> list[Document]:
        """All documents of a session, ascending."""
        slot = self.slot(sid)
        self.flush()
        return read_documents(self._connection, self.bodies, ranges(slot.blocks, 0, slot.numbers))

    def flush(self) -> None:
        """Write what waits in memory."""
        if not self._docs:
            return
        self.most_flushed = max(self.most_flushed, len(self._docs))
        self._docs.sort()
        self._postings.sort()
        many = self._connection.executemany
        many("INSERT INTO doc VALUES(?, ?, ?, ?, ?)", self._docs)
        soon = not self.is_bulk and self._pending_chars <= SOON_CHARS_MAX
        self.packing.wrote(len(self._runs))
        self.bodies.insert(sorted(self._runs, key=lambda run: run.first), soon=soon)
        many(_FTS_INSERT, self._postings)
        self.spans.insert(self._new_spans)
        if self._repeats:
            many("INSERT OR REPLACE INTO repeats VALUES(?, ?)", self._repeats)
        self.repeats_later.add(sorted(self._without_repeats))
        self._clear()

    def reclassify(self, sid: int, surfaces: Mapping[int, Surface]) -> None:
        """Change the surface of stored documents."""
        slot = self.slot(sid)
        self.flush()
        for seq, surface in surfaces.items():
            number = self.number_at(slot, seq)
            if number < slot.numbers:
                self._connection.execute(
                    "UPDATE doc SET kind = kind - surface + ? WHERE doc = ? AND seq = ?",
                    (SURFACE_NUMBERS[surface], slot.row_id(number), seq),
                )

    def number_at(self, slot: Slot, seq: int) -> int:
        """The number of the first document at or after ``seq``."""
        low, high = 0, slot.numbers
        while low < high:
            middle = (low + high) // 2
            row = self._connection.execute(
                "SELECT seq FROM doc WHERE doc = ?", (slot.row_id(middle),)
            ).fetchone()
            if row is not None and row[0] < seq:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate(self, sid: int, from_seq: int) -> bool:
        """Remove the documents from ``from_seq`` on. True if there were any."""
        slot = self.slot(sid)
        self.flush()
        number = self.number_at(slot, from_seq)
        if number == slot.numbers:
            return False
        for first, last in reversed(list(ranges(slot.blocks, number, slot.numbers))):
            self._remove(first, last, slot.ws)
        del slot.blocks[-(-number // BLOCK_DOCUMENTS) :]
        keep = slot.blocks[-1] if slot.blocks else -1
        self._connection.execute("DELETE FROM block WHERE sid = ? AND block > ?", (sid, keep))
        del self._slots[sid]
        left = [0, 0]
        for first, last in ranges(slot.blocks, 0, number):
            row = self._connection.execute(
                "SELECT count(*), coalesce(sum(chars), 0) FROM doc WHERE doc BETWEEN ? AND ? AND search = 0",
                (first, last),
            ).fetchone()
            assert row is not None, "an aggregate has one row"
            left[0] += row[0]
            left[1] += row[1]
        self.store_counts(attrs.evolve(slot, numbers=number, texts=left[0], chars=left[1]))
        return True

    def _remove(self, first: int, last: int, ws: int) -> None:
        self.spans.cut(first, last)
        searches = {
            doc
            for (doc,) in self._connection.execute(
                "SELECT doc FROM doc WHERE doc BETWEEN ? AND ? AND search = 1", (first, last)
            ).fetchall()
        }
        postings = []
        for row_id, text in self.bodies.between(first, last):
            prepared = prepare(text)
            pieces = " ".join(parts(prepared))
            postings.append(self._posting(row_id, ws, row_id in searches, prepared, pieces, len(text)))
        self._connection.executemany(_FTS_DELETE, postings)
        self._connection.execute("DELETE FROM doc WHERE doc BETWEEN ? AND ?", (first, last))
        self.bodies.cut(first, last)
        if self.spans.made:
            self.repeats_later.cut(first, last)

    def _posting(self, row_id: int, ws: int, search: bool, prepared: str, pieces: str, chars: int) -> Posting:
        """What the full-text table is given for a document; to the letter the same when it is deleted."""
        tag = tags(ws, chars) if row_id <= self.tagging.through else ""
        return (
            (row_id, "", tag, prepared, pieces) if search else (row_id, prepared, f"{tag} {pieces}", "", "")
        )

    def store_counts(self, slot: Slot) -> None:
        """Write a session's document counts to its row, and to its workspace's."""
        execute = self._connection.execute
        execute(
            "UPDATE session SET documents = ?, texts = ?, chars = ? WHERE sid = ?",
            (slot.numbers, slot.texts, slot.chars, slot.sid),
        )
        more = slot.numbers - slot.counted
        execute("UPDATE workspace SET documents = documents + ? WHERE ws = ?", (more, slot.ws))
        slot.counted = slot.numbers

    def store_all_counts(self) -> None:
        """Write the counts of those sessions that were appended to since this was last asked for."""
        for sid in self._uncounted:
            if (slot := self._slots.get(sid)) is not None:
                self.store_counts(slot)
        self._uncounted.clear()

    def committed(self) -> None:
        """Bound what is remembered; only now nothing in it waits to be written."""
        if len(self._slots) > SLOTS_MAX:
            self._slots.clear()

    def drop_slot(self, sid: int) -> None:
        """Forget a session's allocation state; it is read again when needed."""
        if sid in self._slots:
            self.flush()
            self.store_all_counts()
            del self._slots[sid]


def read_documents(
    connection: Connection, bodies: Bodies, wanted: Iterable[tuple[int, int]]
) -> list[Document]:
    """The documents in row-id ranges, in that order."""
    return [
        Document(
            seq=seq,
            type=from_sql(kind),
            time=time,
            surface=SURFACES[surface],
            text=text,
            is_search=bool(search),
        )
        for first, last in wanted
        for (seq, time, kind, surface, search), (_, text) in zip(
            connection.execute(_READ, (first, last)).fetchall(), bodies.between(first, last), strict=True
        )
    ]


def ranges(blocks: Sequence[int], start: int, stop: int) -> list[tuple[int, int]]:
    """Row-id ranges (first, last) of the document numbers ``start``..``stop - 1``, one a block."""
    found = []
    for index, block in enumerate(blocks):
        low = max(start - index * BLOCK_DOCUMENTS, 0)
        high = min(stop - index * BLOCK_DOCUMENTS, BLOCK_DOCUMENTS) - 1
        if low <= high:
            found.append((block << BLOCK_BITS | low, block << BLOCK_BITS | high))
    return found
