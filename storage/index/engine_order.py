"""The best matches of one phrase by the engine's own score, reading as few rows as can decide (SPEC 6.5).

The score orders by match count and costs nothing per row but itself; a row's length and time cost a
look-up in ``doc`` each, three times as much. So rows are first taken by score alone. Only those that tie
at the edge need their lengths, and if that tie is at a single match, where it may be a million rows, the
shortest are found by *length tokens*: every posting carries one (see ``tagging``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..sqlite import Connection, Row, SqlValue
from .schema import BLOCK_BITS, TAG, prompt_of
from .scope import Matching, Sql, numbers
from .tagging import LENGTH_CLASS_MIN

SCORE: Final = "bm25(fts, 1.0, 0.0, 1.0, 0.0)"
COLUMNS: Final = "d.doc, d.seq, d.time, d.kind, d.chars"
_STEPS: Final = (20, 24, 26, 28, 30, 32, 34, 36, 40, 44, 200)
"""Where the length classes are cut into the sets looked at one after the other: 32, 64, 90, … characters."""
_FIRST_STEP_FROM: Final = 40_000
"""Hits from which on the first set is looked at alone. Of fewer it seldom holds a page, and a set costs a
walk over the hits, 30 to 90 ns each; what is looked up in vain costs 1 us."""


class EngineOrder:
    """Rows are tuples of ``COLUMNS``, then the score, then the sid."""

    def __init__(self, connection: Connection, prompts_last: bool) -> None:
        self._connection = connection
        self._prompt = "d.prompt, " if prompts_last else ""
        self._prompts_last = prompts_last

    def joined(self, matching: Matching, events: Sql, size: int) -> list[Row]:
        """The best ``size`` rows (-1: all) that pass a condition on ``d``: every match is looked up."""
        return self._connection.execute(
            f"SELECT x.*, b.sid FROM (SELECT {COLUMNS}, {SCORE} AS score"
            " FROM fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid"
            f" WHERE fts MATCH ?{matching.rows.text} AND {events.text}"
            f" ORDER BY score, {self._prompt}d.chars, d.time DESC LIMIT ?) AS x"
            f" CROSS JOIN block AS b ON b.block = x.doc >> {BLOCK_BITS}",
            (matching.expression, *matching.rows.values, *events.values, size),
        ).fetchall()

    def known_once(self, source: Matching | Sequence[int], events: Sql, repeats: Sql, size: int) -> list[Row]:
        """Rows of ``COLUMNS`` and whether the document may hold the phrase twice, those first.

        The others hold it once and follow in order. No score: nothing is walked but what matches.
        Args: source: the phrase in its scope, or the documents that hold it.
        """
        if isinstance(source, Matching):
            documents = "fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid"
            matching = Sql("fts MATCH ?", (source.expression,)) + source.rows
            given: tuple[SqlValue, ...] = ()
        else:
            documents = "json_each(?) AS j CROSS JOIN doc AS d ON d.doc = j.value"
            matching = Sql("TRUE")
            given = (numbers(source),)
        return self._connection.execute(
            f"SELECT {COLUMNS}, {repeats.text} AS maybe"
            f" FROM {documents} LEFT JOIN repeats AS r ON r.doc = d.doc"
            f" WHERE {matching.text} AND {events.text}"
            f" ORDER BY maybe DESC, {self._prompt}d.chars, d.time DESC LIMIT ?",
            (*repeats.values, *given, *matching.values, *events.values, size),
        ).fetchall()

    def by_score(self, matching: Matching, size: int) -> list[tuple[int, float]]:
        """The best ``size`` rows by score alone: (row id, score)."""
        return self._connection.execute(
            f"SELECT f.rowid, {SCORE} AS score FROM fts AS f WHERE fts MATCH ?{matching.rows.text}"
            " ORDER BY score LIMIT ?",
            (matching.expression, *matching.rows.values, size),
        ).fetchall()

    def look_up(self, scored: list[tuple[int, float]]) -> list[Row]:
        """The rows of a few documents."""
        score = dict(scored)
        found = self._connection.execute(
            f"SELECT {COLUMNS}, b.sid FROM json_each(?) AS j CROSS JOIN doc AS d ON d.doc = j.value"
            f" CROSS JOIN block AS b ON b.block = d.doc >> {BLOCK_BITS}",
            (numbers(score),),
        ).fetchall()
        return [(*row[:5], score[row[0]], row[5]) for row in found]

    def at_score(self, matching: Matching, score: float, size: int) -> list[Row]:
        """The first ``size`` rows with exactly this score."""
        same = Sql(f" AND {SCORE} = ?", (score,))
        return self.joined(Matching(matching.expression, matching.rows + same), Sql("TRUE"), size)

    def shortest(
        self, matching: Matching, score: float, size: int, but: frozenset[int], hits: int
    ) -> list[Row]:
        """The first ``size`` rows but those in ``but``; all others of some ``hits`` have the same score."""
        found: list[Row] = []
        prompts: list[Row] = []
        low = LENGTH_CLASS_MIN
        for high in _STEPS if hits >= _FIRST_STEP_FROM else _STEPS[1:]:
            tokens = " OR ".join(f'"{TAG}l{number}"' for number in range(low, high))
            low = high
            rows = self._connection.execute(
                f"SELECT {COLUMNS}, b.sid FROM fts AS f CROSS JOIN doc AS d ON d.doc = f.rowid"
                f" CROSS JOIN block AS b ON b.block = d.doc >> {BLOCK_BITS}"
                f" WHERE fts MATCH ?{matching.rows.text}"
                f" ORDER BY {self._prompt}d.chars, d.time DESC LIMIT ?",
                (f"({matching.expression}) AND (parts : ({tokens}))", *matching.rows.values, size + len(but)),
            ).fetchall()
            for row in rows:
                if row[0] not in but:
                    later = prompts if self._prompts_last and prompt_of(row[3]) else found
                    later.append((*row[:5], score, row[5]))
            if len(found) >= size:
                break
        return (found + prompts)[:size]
