"""Idle work on text copies: what appends and a first build wrote is packed tightly, small sessions together.

A small row for each append is what an append can afford; a session of one screen of text packed alone
weighs a third more than beside others. So documents begin in ``body_new``, as they came, and move to
``body`` (see ``shelves``) when there are enough of them to be worth it. Nothing is packed twice without a
change beside it: a step ends with fewer rows in ``body_new``, and none is put there but by new documents
and by deletions, which leave the neighbours of what is gone there.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Final

from ..sqlite import Connection
from ..text_codec import TextCodec
from .shelves import (
    RUN_CHARS_MAX,
    SHELF_BYTES_MAX,
    Numbered,
    Run,
    chars_of,
    cut_into_runs,
    pack_run,
    runs_of,
    shelves,
    unpack_run,
)

NEW_ROWS_MAX: Final = 8
"""Rows that may wait. With more, all are packed: the last run of a session is packed anew each time."""
PRESSED_ROWS_MAX: Final = 2_000
"""Rows that may wait where there is never silence: 2 to 20 MB as they came. To pack takes some 20 us an event
and holds the writer for 8 to 14 ms, where a merge takes 2 to 7."""
STEP_CHARS: Final = 72_000
"""Characters that one step takes, and packs: 6 ms."""

_row_of: Final = itemgetter(0)


class Packing:
    """The waiting text copies of one writer connection. Every method inside its transaction."""

    def __init__(self, connection: Connection, codec: TextCodec) -> None:
        self._connection = connection
        self._codec = codec
        self._going = False
        self._written = 0
        """Rows written since nothing was left to pack, as far as this connection knows."""

    def wrote(self, rows: int) -> None:
        """Hear of new rows that wait."""
        self._written += rows

    def step(self, *, pressed: bool = False) -> bool:
        """Pack some documents that wait. True while more are to be packed now.

        ``pressed``: only if very many do, and silence sees to the rest.
        """
        if pressed and 0 < self._written <= PRESSED_ROWS_MAX:
            return True
        execute = self._connection.execute
        if not self._going:
            many = execute("SELECT 1 FROM body_new LIMIT 1 OFFSET ?", (NEW_ROWS_MAX,)).fetchone()
            self._going = many is not None
        waiting = self._waiting() if self._going else []
        at = packed = 0
        while at < len(waiting) and packed < STEP_CHARS:
            at, chars = self._place(waiting, at)
            packed += chars
        if at:
            execute("DELETE FROM body_new WHERE doc <= ?", (waiting[at - 1][0],))
        self._going = bool(waiting)
        if not self._going:
            self._written = 0
        return self._going

    def _waiting(self) -> list[Numbered]:
        found: list[Numbered] = []
        chars = 0
        rows = self._connection.execute("SELECT doc, texts FROM body_new ORDER BY doc")
        for first, blob in rows:
            texts = self._codec.unpack(blob)
            found += enumerate(texts, first)
            chars += sum(map(len, texts))
            if chars >= STEP_CHARS:
                break
        rows.close()
        return found

    def _place(self, waiting: list[Numbered], at: int) -> tuple[int, int]:
        """Put the documents from ``at`` on that belong into one place there.

        Returns: how far it came, and how many characters were packed.
        """
        row = waiting[at][0]
        execute = self._connection.execute
        before = execute(
            "SELECT doc, texts FROM body WHERE doc <= ? ORDER BY doc DESC LIMIT 1", (row,)
        ).fetchone()
        after = execute(
            "SELECT doc, length(texts) FROM body WHERE doc > ? ORDER BY doc LIMIT 1", (row,)
        ).fetchone()
        runs = [] if before is None else runs_of(before[1])
        here = bisect_right(runs, row, key=_row_of) - 1
        if here + 1 < len(runs):
            border: int | None = runs[here + 1].first
        else:
            border = None if after is None else after[0]
        stop = len(waiting) if border is None else bisect_right(waiting, border, lo=at, key=_row_of)
        chars = self._together(runs, here, waiting[at:stop])
        if after is not None and after[1] + sum(len(run.packed) for run in runs) <= SHELF_BYTES_MAX:
            ((shelf,),) = execute("SELECT texts FROM body WHERE doc = ?", (after[0],)).fetchall()
            runs += runs_of(shelf)
            execute("DELETE FROM body WHERE doc = ?", (after[0],))
        made = list(shelves(runs))
        if before is not None and made[0] == before:
            del made[0]  # full: most are
        elif before is not None:
            execute("DELETE FROM body WHERE doc = ?", (before[0],))
        self._connection.executemany("INSERT INTO body VALUES(?, ?)", made)
        return stop, chars

    def _together(self, runs: list[Run], here: int, given: list[Numbered]) -> int:
        """Put documents, all between two runs' firsts, into ``runs`` at or after the place ``here``.

        The neighbours are packed with them if that fills them up, and the run before also if it goes on
        beyond. Returns: how many characters were packed.
        """
        low, high = here + 1, here + 1
        if here >= 0:
            before = unpack_run(self._codec, runs[here])
            if before[-1][0] > given[0][0] or chars_of(before) + len(given[0][1]) <= RUN_CHARS_MAX:
                low, given = here, sorted(before + given, key=_row_of)
        divided = cut_into_runs(given)
        if high < len(runs):
            after = unpack_run(self._codec, runs[high])
            if chars_of(divided[-1]) + chars_of(after) <= RUN_CHARS_MAX:
                divided[-1] += after
                high += 1
        runs[low:high] = [pack_run(self._codec, documents) for documents in divided]
        return sum(map(chars_of, divided))
