"""When the full-text engine's own score may stand for the number of matches, and when not.

With ``columnsize=0`` SQLite knows no document lengths, so ``bm25()`` of one phrase is a strictly growing
function of the match count alone: ordering by it is ordering by count, without reading a single text.
That is how SQLite happens to be built, so it is tested when an index is opened; and it turns round when
the mean row is short, because the unknown length of four columns enters as -4: the sign of
``0.25 + 0.75 * -4 / mean`` changes at a mean of twelve tokens.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from .. import sqlite
from ..sqlite import Connection

MEAN_TOKENS_MIN: Final = 16
"""Below this mean row length counts are taken from the texts."""


@cache
def bm25_counts() -> bool:
    """Whether this SQLite's ``bm25`` orders a table like ours by match count and by nothing else."""
    connection = sqlite.open_uri(sqlite.uri(sqlite.memory_path(), "rwc"))
    try:
        return _orders_by_count(connection)
    finally:
        connection.close()


def _orders_by_count(connection: Connection) -> bool:
    connection.execute(
        "CREATE VIRTUAL TABLE probe USING"
        " fts5(text, parts, search_text, search_parts, content='', columnsize=0, tokenize='ascii')"
    )
    filler = " ".join(f"f{n}" for n in range(40))
    texts = {
        1: "x y",
        2: f"x y {filler}",
        3: f"x y {filler} x y",
        4: f"x y x y {filler} {filler} x y",
        5: filler,
    }
    for row_id, text in texts.items():
        connection.execute("INSERT INTO probe(rowid, text, parts) VALUES(?, ?, 'x y w1')", (row_id, text))
    for match in ('text : "x y"', 'text : "x y" AND parts : "w1"'):
        found = connection.execute(
            "SELECT rowid, bm25(probe, 1.0, 0.0, 1.0, 0.0) FROM probe WHERE probe MATCH ?", (match,)
        ).fetchall()
        score: dict[int, float] = dict(found)
        if not (len(score) == 4 and score[1] == score[2] and score[4] < score[3] < score[2]):
            return False
    return True


def mean_tokens(connection: Connection) -> float:
    """The mean number of tokens in a row of ``fts``, as ``bm25`` sees it; 0 for an empty table."""
    row = connection.execute("SELECT block FROM fts_data WHERE id = 1").fetchone()
    if row is None:
        return 0.0
    numbers = _varints(bytes(row[0]))
    return sum(numbers[1:]) / numbers[0] if numbers and numbers[0] > 0 else 0.0


def _varints(data: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, high first, eight bits in the ninth byte."""
    found = []
    value = length = 0
    for byte in data:
        length += 1
        if length == 9:
            found.append(value << 8 | byte)
        elif byte & 0x80:
            value = value << 7 | byte & 0x7F
            continue
        else:
            found.append(value << 7 | byte)
        value = length = 0
    return found


def may_count(connection: Connection) -> bool:
    """Whether ``bm25`` may order single-phrase matches of this index now."""
    return bm25_counts() and mean_tokens(connection) >= MEAN_TOKENS_MIN
