"""Text copies: one row holds the texts of a run of consecutive documents of one block.

A row's key is the row id of its first document. An append writes a small row; idle time joins them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import attrs

from ..sqlite import Connection
from ..text_codec import TextCodec
from .schema import BLOCK_BITS, BLOCK_MASK

RUN_CHARS_MAX: Final = 24_000
"""What one read of a text unpacks at most, unless that text alone is longer: 10 us (see ``text_codec``)."""
FULL_BYTES: Final = 3_500
"""A packed row of this size is not worth joining with others."""
_KEPT_CHARS_MAX: Final = 4_000_000
"""Characters of unpacked texts that one reader keeps while it works on one search."""
_RUNS_OF: Final = (
    "SELECT b.doc, b.texts, j.value FROM json_each(?) AS j"
    " CROSS JOIN body AS b ON b.doc = (SELECT max(doc) FROM body WHERE doc <= j.value)"
)
"""With the documents ascending, those of one run stand together."""


@attrs.define(eq=False)
class BodyRun:
    """A row being gathered: the texts of the documents ``first`` and on."""

    first: int
    chars: int
    texts: list[str]

    @staticmethod
    def extend(runs: list[BodyRun], row: int, text: str) -> None:
        """Add a document to the last run if it follows there and fits, else open a new run."""
        if runs:
            run = runs[-1]
            follows = run.first + len(run.texts) == row and run.first >> BLOCK_BITS == row >> BLOCK_BITS
            if follows and run.chars + len(text) <= RUN_CHARS_MAX:
                run.texts.append(text)
                run.chars += len(text)
                return
        runs.append(BodyRun(row, len(text), [text]))


class Bodies:
    """The text copies, read through a few unpacked texts and the run looked at last. One owner at a time."""

    def __init__(self, connection: Connection, codec: TextCodec) -> None:
        self._connection = connection
        self._codec = codec
        self._kept: dict[int, str] = {}
        self.kept_chars = 0
        """Characters of the texts kept now."""
        self.forget()

    def forget(self) -> None:
        """Drop the unpacked texts: another transaction may see others."""
        self._kept.clear()
        self.kept_chars = 0
        self._run_first = 0
        self._run: list[str] = []

    def load(self, wanted: Iterable[int]) -> None:
        """Unpack many documents at once: what is asked for next costs no statement.

        As far as there is room: the rest is read when it is asked for.
        """
        if self.kept_chars >= _KEPT_CHARS_MAX // 2:
            self.forget()
        missing = sorted({row for row in wanted if row not in self._kept and not self._in_run(row)})
        if len(missing) < 2:
            return
        runs = self._connection.execute(_RUNS_OF, (json.dumps(missing),))
        for first, together in groupby(runs, key=itemgetter(0)):
            places = [(row - first, blob) for _, blob, row in together]
            texts = self._codec.unpack_some(places[0][1], [place for place, _ in places])
            for (place, _), text in zip(places, texts, strict=False):
                self._kept[first + place] = text
                self.kept_chars += len(text)
            if self.kept_chars >= _KEPT_CHARS_MAX:
                break
        runs.close()

    def text(self, row: int) -> str:
        """A document's text. Raises: KeyError: there is no such document."""
        text = self._kept.get(row)
        if text is not None:
            return text
        if not self._in_run(row):
            found = self._connection.execute(
                "SELECT doc, texts FROM body WHERE doc <= ? ORDER BY doc DESC LIMIT 1", (row,)
            ).fetchone()
            if found is None:
                raise KeyError(row)
            self._run_first, self._run = found[0], self._codec.unpack(found[1])
            if row - self._run_first >= len(self._run):
                raise KeyError(row)
        return self._run[row - self._run_first]

    def _in_run(self, row: int) -> bool:
        return 0 <= row - self._run_first < len(self._run)

    def between(self, first: int, last: int) -> Iterator[tuple[int, str]]:
        """Row ids and texts of the documents ``first``..``last`` of one block, in order."""
        rows = self._connection.execute(
            "SELECT doc, texts FROM body WHERE doc BETWEEN"
            " coalesce((SELECT max(doc) FROM body WHERE doc <= ?1), ?1) AND ?2 ORDER BY doc",
            (first, last),
        ).fetchall()
        for start, blob in rows:
            for row, text in enumerate(self._codec.unpack(blob), start):
                if first <= row <= last:
                    yield row, text

    def insert(self, runs: Sequence[BodyRun]) -> None:
        self._connection.executemany(
            "INSERT INTO body VALUES(?, ?)", [(run.first, self._codec.pack(run.texts)) for run in runs]
        )

    def cut(self, first: int, last: int) -> None:
        """Remove the documents ``first``..``last``; ``last`` is the last one of its block."""
        kept = self._connection.execute(
            "SELECT doc FROM body WHERE doc < ? AND doc >= ? ORDER BY doc DESC LIMIT 1",
            (first, first & ~BLOCK_MASK),
        ).fetchone()
        runs: list[BodyRun] = []
        if kept is not None:
            for row, text in self.between(kept[0], first - 1):
                BodyRun.extend(runs, row, text)
        low = first if kept is None else kept[0]
        self._connection.execute("DELETE FROM body WHERE doc BETWEEN ? AND ?", (low, last))
        self.insert(runs)

    def join(self, block: int) -> None:
        """Pack neighbouring small rows of one block together; what is full stays unread."""
        low, high = block << BLOCK_BITS, block << BLOCK_BITS | BLOCK_MASK
        rows = self._connection.execute(
            "SELECT doc, length(texts) FROM body WHERE doc BETWEEN ? AND ? ORDER BY doc", (low, high)
        ).fetchall()
        small: list[int] = []
        for doc, size in [*rows, (0, FULL_BYTES)]:
            if size < FULL_BYTES:
                small.append(doc)
            elif len(small) > 1:
                self._join_run(small)
                small = []
            else:
                small = []

    def _join_run(self, rows: list[int]) -> None:
        runs: list[BodyRun] = []
        for first in rows:
            found = self._connection.execute("SELECT texts FROM body WHERE doc = ?", (first,)).fetchone()
            for row, text in enumerate(self._codec.unpack(found[0]) if found else (), first):
                BodyRun.extend(runs, row, text)
        if len(runs) < len(rows):
            self._connection.execute("DELETE FROM body WHERE doc BETWEEN ? AND ?", (rows[0], rows[-1]))
            self.insert(runs)
