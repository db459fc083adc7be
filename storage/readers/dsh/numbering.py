"""From the seqs a log was written with to the places its events stand at.

In a healthy log they are equal and one run holds them all. Hand-trimmed logs have gaps, one writer fell
back after a seed marker, and a lost record shifts everything behind it. So events are numbered by place,
and what the log says about earlier seqs is looked up here; of a seq used twice the later event is meant.
"""

from __future__ import annotations

from typing import Final

from ....protocol.json_value import JSON, is_safe_integer, whole

RUNS_MAX: Final = 50_000
"""A log whose every seq jumps is no log; what lies before the last so many runs is not resolved."""


class Numbering:
    """Runs of (written seq, place, length), in order of place. Owned by one mapper."""

    def __init__(self, runs: list[tuple[int, int, int]] | None = None) -> None:
        self._runs = runs if runs is not None else []

    def runs(self) -> list[tuple[int, int, int]]:
        return self._runs

    def next_written(self) -> int:
        """The seq that the next event would be written with if nothing jumps."""
        if not self._runs:
            return 0
        written, _, length = self._runs[-1]
        return written + length

    def put(self, written: int, place: int, count: int = 1) -> None:
        """The next ``count`` events stand from ``place`` on and were written from ``written`` on."""
        if self._runs:
            first, start, length = self._runs[-1]
            if written == first + length and place == start + length:
                self._runs[-1] = (first, start, length + count)
                return
        self._runs.append((written, place, count))
        if len(self._runs) > RUNS_MAX:
            del self._runs[: RUNS_MAX // 2]

    def places_of(self, written: list[int]) -> list[int | None]:
        """``place_of`` each. A healthy log is one run, and answers cite hundreds of chunks."""
        is_one_run = len(self._runs) == 1 and self._runs[0][0] == self._runs[0][1] == 0
        if is_one_run and written and min(written) >= 0 and max(written) < self._runs[0][2]:
            return [*written]
        return [self.place_of(one) for one in written]

    def place_of(self, written: int) -> int | None:
        for first, start, length in reversed(self._runs):
            if first <= written < first + length:
                return start + written - first
        return None


def written_seqs(sources: JSON) -> list[int] | None:
    """``sourceEventSeqs`` as written, with ranges (``[1,[5,9]]``) expanded; None if it is no such list.

    Members that are no seq are dropped; a range may not hold more than a million.
    """
    if not isinstance(sources, list):
        return None
    seqs: list[int] = []
    for item in sources:
        one = whole(item)
        if is_safe_integer(one):
            seqs.append(one)
        elif isinstance(item, list) and len(item) == 2:
            first, last = whole(item[0]), whole(item[1])
            if is_safe_integer(first) and is_safe_integer(last) and 0 <= last - first < _RANGE_MAX:
                seqs.extend(range(first, last + 1))
    return seqs


_RANGE_MAX: Final = 1_000_000
