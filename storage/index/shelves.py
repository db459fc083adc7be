"""Shelves: how text copies lie once idle time has packed them. One row holds a few runs of texts.

A *run* is packed and unpacked as one: texts of documents in ascending order, of whatever sessions, with
their row ids. Small sessions share runs, for a run of one small session alone packs badly. A *shelf* is
the row: runs in order behind a list of where each begins, so that only the one that is wanted is unpacked.

Its key is its first document. All packed documents from there up to the next shelf's first one lie in it,
and in a shelf likewise for its runs: so one look for the greatest key finds a document.

Shares of the text of 2.6 MB of real logs: runs 0.249 (level 15), pages with one run a row 0.279, with three
or four 0.260. SQLite puts what fills no whole page beside other such rests, and rests of 0.5 to 4 KB pack
badly. A row of 18 KB takes 3 us longer to fetch than one of 6 (11 us).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

import attrs

from ..text_codec import TextCodec

RUN_CHARS_MAX: Final = 24_000
"""What one read of a text unpacks at most, unless that text alone is longer: 10 us (see ``text_codec``)."""
SHELF_BYTES_MAX: Final = 24_000
"""Packed bytes of a shelf, unless one run alone is larger."""
SHELF_RUNS_MAX: Final = 32
_FIRSTS: Final = [Struct(f"<{count}q") for count in range(SHELF_RUNS_MAX + 1)]
_SIZES: Final = [Struct(f"<{count}I") for count in range(SHELF_RUNS_MAX + 1)]
"""A shelf begins with the number of its runs, row ids of their first documents, and their packed bytes."""

Numbered: TypeAlias = tuple[int, str]
"""A document's row id and its text."""


class Run(NamedTuple):
    """A packed run and the row id of its first document."""

    first: int
    packed: bytes


def pack_run(codec: TextCodec, documents: Sequence[Numbered]) -> Run:
    """Pack some documents, ascending. If they follow each other, as those of one session do, no steps are."""
    rows = [row for row, _ in documents]
    steps = [later - row for row, later in pairwise(rows)]
    packed = codec.pack_tightly(steps if set(steps) - {1} else [], [text for _, text in documents])
    return Run(rows[0], packed)


def unpack_run(codec: TextCodec, run: Run) -> list[Numbered]:
    """The documents of a run, ascending."""
    opened = open_run(codec, run)
    return list(zip(opened.rows, opened.texts(codec), strict=True))


@attrs.frozen
class OpenRun:
    """A run of which few texts are wanted: making all 30 takes as long as decompressing them."""

    rows: Sequence[int]
    data: bytes

    def holds(self, row: int) -> bool:
        """Whether a document is in this run."""
        if isinstance(self.rows, range):
            return row in self.rows
        place = bisect_left(self.rows, row)
        return place < len(self.rows) and self.rows[place] == row

    def some(self, codec: TextCodec, rows: Iterable[int]) -> list[str]:
        """The texts of some of its documents, ascending."""
        if isinstance(self.rows, range):
            return codec.texts_at(self.data, [row - self.rows.start for row in rows])
        return codec.texts_at(self.data, [bisect_left(self.rows, row) for row in rows])

    def texts(self, codec: TextCodec) -> list[str]:
        """All its texts, in order of ``rows``."""
        return codec.texts_in(self.data)


def open_run(codec: TextCodec, run: Run) -> OpenRun:
    """Decompress a run, and make no text of it yet."""
    steps, data = codec.unpack_steps(run.packed)
    if not steps:
        return OpenRun(range(run.first, run.first + codec.count_in(data)), data)
    return OpenRun(list(accumulate(steps, initial=run.first)), data)


def runs_of(shelf: bytes) -> list[Run]:
    """The runs on a shelf, ascending."""
    firsts, ends = _places(shelf)
    return [Run(first, shelf[at:end]) for first, (at, end) in zip(firsts, pairwise(ends), strict=True)]


def run_with(shelf: bytes, row: int) -> Run:
    """The run on a shelf that holds a document, if any does."""
    firsts, ends = _places(shelf)
    place = max(bisect_right(firsts, row) - 1, 0)
    return Run(firsts[place], shelf[ends[place] : ends[place + 1]])


def _places(shelf: bytes) -> tuple[tuple[int, ...], list[int]]:
    """Of each run its first document; where each begins, and the end."""
    count = shelf[0]
    firsts = _FIRSTS[count].unpack_from(shelf, 1)
    sizes = _SIZES[count].unpack_from(shelf, 1 + 8 * count)
    return firsts, list(accumulate(sizes, initial=1 + 12 * count))


def shelves(runs: Sequence[Run]) -> Iterator[tuple[int, bytes]]:
    """Rows for some runs, ascending: key and what is stored."""
    together: list[Run] = []
    size = 0
    for run in runs:
        if together and (size + len(run.packed) > SHELF_BYTES_MAX or len(together) == SHELF_RUNS_MAX):
            yield _shelf(together)
            together, size = [], 0
        together.append(run)
        size += len(run.packed)
    if together:
        yield _shelf(together)


def _shelf(runs: Sequence[Run]) -> tuple[int, bytes]:
    count = len(runs)
    firsts = _FIRSTS[count].pack(*(run.first for run in runs))
    sizes = _SIZES[count].pack(*(len(run.packed) for run in runs))
    return runs[0].first, b"".join((bytes((count,)), firsts, sizes, *(run.packed for run in runs)))


def chars_of(documents: Iterable[Numbered]) -> int:
    """The characters of some documents."""
    return sum(len(text) for _, text in documents)


def cut_into_runs(documents: Sequence[Numbered]) -> list[list[Numbered]]:
    """Documents divided into what is packed together; at least one each."""
    found: list[list[Numbered]] = []
    chars = 0
    for document in documents:
        size = len(document[1])
        if not found or chars + size > RUN_CHARS_MAX:
            found.append([])
            chars = 0
        found[-1].append(document)
        chars += size
    return found
