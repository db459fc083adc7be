"""Shelves: how text copies lie once idle time has packed them. One row holds a few runs of texts.

A *run* is packed and unpacked as one: texts of documents in ascending order, of whatever sessions, with
their row ids. Small sessions share runs, for a run of one small session alone packs badly. A *shelf* is
the row: runs in order behind a list of where each begins, so that only the one that is wanted is unpacked.

Its key is its first document. All packed documents from there up to the next shelf's first one lie in it,
and in a shelf likewise for its runs: so one look for the greatest key finds a document.

Shares of the text of 2.6 MB of real logs: runs 0.255 (level 9), pages with one run a row 0.286, with three
0.263. SQLite puts what fills no whole page beside other such rests, and rests of 0.5 to 4 KB pack badly.
A row of 18 KB takes 3 us longer to fetch than one of 6 (11 us).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from ..text_codec import TextCodec

RUN_CHARS_MAX: Final = 24_000
"""What one read of a text unpacks at most, unless that text alone is longer: 10 us (see ``text_codec``)."""
SHELF_BYTES_MAX: Final = 20_000
"""Packed bytes of a shelf, unless one run alone is larger."""
SHELF_RUNS_MAX: Final = 32
_HEAD: Final = Struct("<QI")
"""Of each run: row id of its first document, packed bytes."""

Numbered: TypeAlias = tuple[int, str]
"""A document's row id and its text."""


class Run(NamedTuple):
    """A packed run and the row id of its first document."""

    first: int
    packed: bytes


def pack_run(codec: TextCodec, documents: Sequence[Numbered]) -> Run:
    """Pack some documents, ascending."""
    rows = [row for row, _ in documents]
    steps = [later - row for row, later in pairwise(rows)]
    return Run(rows[0], codec.pack_tightly(steps, [text for _, text in documents]))


def unpack_run(codec: TextCodec, run: Run) -> list[Numbered]:
    """The documents of a run, ascending."""
    steps, texts = codec.unpack_stepped(run.packed)
    return list(zip(accumulate(steps, initial=run.first), texts, strict=True))


class OpenRun(NamedTuple):
    """A run of which few texts are wanted: making all 30 takes as long as decompressing them."""

    places: dict[int, int]
    """Of each document in the run, how many stand before it."""
    data: bytes

    def some(self, codec: TextCodec, rows: Sequence[int]) -> list[str]:
        """The texts of some of its documents, ascending. Raises: KeyError: another one is among them."""
        return codec.texts_at(self.data, [self.places[row] for row in rows])

    def all(self, codec: TextCodec) -> dict[int, str]:
        """Every document with its text."""
        return dict(zip(self.places, codec.texts_in(self.data), strict=True))


def open_run(codec: TextCodec, run: Run) -> OpenRun:
    """Decompress a run, and make no text of it yet."""
    steps, data = codec.unpack_steps(run.packed)
    return OpenRun({row: place for place, row in enumerate(accumulate(steps, initial=run.first))}, data)


def runs_of(shelf: bytes) -> list[Run]:
    """The runs on a shelf, ascending."""
    return [Run(first, shelf[at : at + size]) for first, at, size in _places(shelf)]


def run_with(shelf: bytes, row: int) -> Run:
    """The run on a shelf that holds a document, if any does."""
    found = (0, 0, 0)
    for place in _places(shelf):
        if place[0] > row:
            break
        found = place
    first, at, size = found
    return Run(first, shelf[at : at + size])


def _places(shelf: bytes) -> Iterator[tuple[int, int, int]]:
    at = 1 + shelf[0] * _HEAD.size
    for first, size in _HEAD.iter_unpack(shelf[1:at]):
        yield first, at, size
        at += size


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
    heads = b"".join(_HEAD.pack(run.first, len(run.packed)) for run in runs)
    return runs[0].first, b"".join((bytes((len(runs),)), heads, *(run.packed for run in runs)))


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
