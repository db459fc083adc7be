"""Text copies: rows as they were written (``body_new``), and shelves that idle time packs (``body``).

A row of ``body_new`` holds the texts of consecutive documents of one block, ``doc`` to ``last``. An append
writes a small one. ``packing`` moves them into ``shelves``; a document lies in one of the two tables.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final

import attrs

from ..sqlite import Connection
from ..text_codec import TextCodec
from .schema import BLOCK_BITS
from .shelves import RUN_CHARS_MAX, Numbered, OpenRun, Run, open_run, run_with, runs_of, shelves, unpack_run

_KEPT_CHARS_MAX: Final = 4_000_000
"""Characters of unpacked texts that one reader keeps while it works on one search."""
_NEW_WITH: Final = (
    "SELECT doc, texts FROM body_new"
    " WHERE doc = (SELECT max(doc) FROM body_new WHERE doc <= ?1) AND last >= ?1"
)
_SHELF_WITH: Final = "SELECT texts FROM body WHERE doc <= ? ORDER BY doc DESC LIMIT 1"
_NEW_WITH_MANY: Final = (
    "SELECT b.doc, b.texts, j.value FROM json_each(?) AS j CROSS JOIN body_new AS b"
    " ON b.doc = (SELECT max(doc) FROM body_new WHERE doc <= j.value) AND b.last >= j.value"
)
_SHELVES_WITH_MANY: Final = (
    "WITH place AS MATERIALIZED (SELECT (SELECT max(doc) FROM body WHERE doc <= value) AS shelf,"
    " json_group_array(value) AS held FROM json_each(?) GROUP BY 1)"
    " SELECT b.texts, p.held FROM place AS p CROSS JOIN body AS b ON b.doc = p.shelf"
)
"""Each shelf once: fetching one takes 5 to 15 us."""
_FROM: Final = "doc BETWEEN coalesce((SELECT max(doc) FROM {0} WHERE doc <= ?1), ?1) AND ?2"
_NEW_BETWEEN: Final = f"SELECT doc, texts FROM body_new WHERE {_FROM.format('body_new')} ORDER BY doc"
_SHELVES_BETWEEN: Final = f"SELECT texts FROM body WHERE {_FROM.format('body')} ORDER BY doc"


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
        self._run: dict[int, str] = {}
        self._opened = OpenRun((), b"")

    def load(self, wanted: Iterable[int]) -> None:
        """Unpack many documents at once: what is asked for next costs no statement.

        As far as there is room: the rest is read when it is asked for.
        """
        if self.kept_chars >= _KEPT_CHARS_MAX // 2:
            self.forget()
        missing = sorted({row for row in wanted if row not in self._kept and row not in self._run})
        if len(missing) < 2:
            return
        self._keep(self._new(missing))
        left = [row for row in missing if row not in self._kept]
        if left and self.kept_chars < _KEPT_CHARS_MAX:
            self._keep(self._packed(left))

    def _keep(self, runs: Generator[list[Numbered], None, None]) -> None:
        for documents in runs:
            for row, text in documents:
                self._kept[row] = text
                self.kept_chars += len(text)
            if self.kept_chars >= _KEPT_CHARS_MAX:
                break
        runs.close()

    def _new(self, wanted: list[int]) -> Generator[list[Numbered], None, None]:
        """Those of some documents that wait to be packed, row by row."""
        rows = self._connection.execute(_NEW_WITH_MANY, (json.dumps(wanted),))
        for first, together in groupby(rows, key=itemgetter(0)):
            places = [(row - first, blob) for _, blob, row in together]
            texts = self._codec.unpack_some(places[0][1], [place for place, _ in places])
            yield [(first + place, text) for (place, _), text in zip(places, texts, strict=False)]

    def _packed(self, wanted: list[int]) -> Generator[list[Numbered], None, None]:
        """Those of some documents that are packed, run by run."""
        for shelf, rows in self._connection.execute(_SHELVES_WITH_MANY, (json.dumps(wanted),)):
            runs: dict[Run, list[int]] = {}
            for row in json.loads(rows):
                runs.setdefault(run_with(shelf, row), []).append(row)
            for run, held in runs.items():
                opened = open_run(self._codec, run)
                there = [row for row in sorted(held) if opened.holds(row)]
                yield list(zip(there, opened.some(self._codec, there), strict=True))

    def text(self, row: int) -> str:
        """A document's text. Raises: KeyError: there is no such document."""
        text = self._kept.get(row)
        if text is not None:
            return text
        if row in self._run:
            return self._run[row]
        if self._opened.holds(row):  # a second one of this run: now all of it
            opened = self._opened
            self._run = dict(zip(opened.rows, opened.texts(self._codec), strict=True))
            return self._run[row]
        found = self._connection.execute(_NEW_WITH, (row,)).fetchone()
        if found is not None:
            self._run = dict(enumerate(self._codec.unpack(found[1]), found[0]))
            return self._run[row]
        found = self._connection.execute(_SHELF_WITH, (row,)).fetchone()
        if found is None:
            raise KeyError(row)
        self._opened = open_run(self._codec, run_with(found[0], row))
        if not self._opened.holds(row):
            raise KeyError(row)
        return self._opened.some(self._codec, (row,))[0]

    def between(self, first: int, last: int) -> Iterator[Numbered]:
        """Row ids and texts of the documents ``first``..``last``, in order."""
        execute = self._connection.execute
        new = execute(_NEW_BETWEEN, (first, last)).fetchall()
        packed = execute(_SHELVES_BETWEEN, (first, last)).fetchall()
        for row, text in merge(self._each_new(new), self._each_packed(packed, first, last)):
            if first <= row <= last:
                yield row, text

    def _each_new(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[Numbered]:
        for start, blob in rows:
            yield from enumerate(self._codec.unpack(blob), start)

    def _each_packed(self, rows: Iterable[tuple[bytes]], first: int, last: int) -> Iterator[Numbered]:
        for (shelf,) in rows:
            runs = runs_of(shelf)
            for place, run in enumerate(runs):
                ends_before = place + 1 < len(runs) and runs[place + 1].first <= first
                if not ends_before and run.first <= last:
                    yield from unpack_run(self._codec, run)

    def insert(self, runs: Sequence[BodyRun], *, soon: bool = False) -> None:
        """Add texts to those that wait to be packed. ``soon``: they will not wait long.

        What is packed soon lies as it is: compressing it twice costs an append of sixteen events 80-190 us,
        another two pages in the log 15.
        """
        pack = self._codec.leave if soon else self._codec.pack
        self._connection.executemany(
            "INSERT INTO body_new VALUES(?, ?, ?)",
            [(run.first, run.first + len(run.texts) - 1, pack(run.texts)) for run in runs],
        )

    def cut(self, first: int, last: int) -> None:
        """Remove the documents ``first``..``last``; ``last`` is the last one of its block.

        What was packed with them waits to be packed again: the least that can be done now.
        """
        execute = self._connection.execute
        left: list[BodyRun] = []
        found = execute(_NEW_WITH, (first,)).fetchone()
        if found is not None:
            for row, text in enumerate(self._codec.unpack(found[1]), found[0]):
                if row < first:
                    BodyRun.extend(left, row, text)
            execute("DELETE FROM body_new WHERE doc = ?", (found[0],))
        execute("DELETE FROM body_new WHERE doc BETWEEN ? AND ?", (first, last))
        self._cut_shelves(first, last, left)
        self.insert(left)

    def _cut_shelves(self, first: int, last: int, left: list[BodyRun]) -> None:
        """Take the documents off their shelves. What shared a run with them goes to ``left``."""
        execute = self._connection.execute
        keys = [
            key
            for (key,) in execute(
                f"SELECT doc FROM body WHERE {_FROM.format('body')} ORDER BY doc", (first, last)
            ).fetchall()
        ]
        for key in dict.fromkeys((*keys[:1], *keys[-1:])):  # no other shelf holds anything else
            ((shelf,),) = execute("SELECT texts FROM body WHERE doc = ?", (key,)).fetchall()
            runs = runs_of(shelf)
            kept = [run for run in runs if self._stays(run, first, last, left)]
            if len(kept) < len(runs):
                execute("DELETE FROM body WHERE doc = ?", (key,))
                self._connection.executemany("INSERT INTO body VALUES(?, ?)", shelves(kept))
        for key in keys[1:-1]:
            execute("DELETE FROM body WHERE doc = ?", (key,))

    def _stays(self, run: Run, first: int, last: int, left: list[BodyRun]) -> bool:
        """Whether a run holds none of the documents ``first``..``last``."""
        if run.first > last:
            return True
        documents = unpack_run(self._codec, run)
        if documents[-1][0] < first or not any(first <= row <= last for row, _ in documents):
            return True
        for row, text in documents:
            if not first <= row <= last:
                BodyRun.extend(left, row, text)
        return False
