"""A long phrase looked for by its rarer tokens first.

The engine walks the postings of every token of a phrase, those of ``the`` each time it occurs: for ten
words over a million events up to 69 ms, to find that they stand nowhere in this order. A few of the rarer
ones tell the same in 1 to 7 ms, and what they leave is looked for in the texts.

What is chosen here decides what is fastest, never what is found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Final

from ..sqlite import Connection
from .looking import Looking
from .query_words import phrase_match
from .schema import BLOCK_BITS, BLOCK_DOCUMENTS
from .scope import Matching, Sql, hits_up_to

SAMPLE_BLOCKS: Final = 35
"""The newest blocks, 5,000 documents at 144 a session, tell which tokens are rare: at most 0.2 ms a token."""
SAMPLE_HITS_MAX: Final = 50_000
"""Long sessions make the sample larger."""
FEW_EXPECTED: Final = 3_000
"""Documents that tokens would leave if they occurred independently of each other, from which on it is tried.
Neighbours leave far fewer; a try that fails ends at ``FEW_HELD`` hits, after 0.1 to 1 ms."""
FEW_INSIDE: Final = 20
"""Documents of one session that are read rather than asked another token for."""
FEW_HELD: Final = 100
"""Documents that hold the rarer tokens and are read to see whether they hold the phrase, 30 us each."""


def held_by_rare(looking: Looking, phrase: Sequence[str]) -> Matching | None:
    """Some rarer tokens of the phrase, neighbours as phrases, if few documents in scope hold them all."""
    order, expected = _rarest_first(looking, phrase)
    chosen: set[str] = set()
    for token, share in order[:-1]:
        chosen.add(token)
        expected *= share
        if expected <= FEW_EXPECTED:
            matching = _holding(looking, phrase, chosen)
            if hits_up_to(looking.connection, FEW_HELD + 1, matching) <= FEW_HELD:
                return matching
    return None


def _holding(looking: Looking, phrase: Sequence[str], chosen: Collection[str]) -> Matching:
    scope = looking.scope
    runs = [list(run) for together, run in groupby(phrase, key=chosen.__contains__) if together]
    expression = " AND ".join(dict.fromkeys(f"({phrase_match(run, scope.with_searches)})" for run in runs))
    if scope.tags is not None:
        return Matching(f"({expression}) AND ({scope.tags})", scope.apart)
    return Matching(expression, scope.rows)


def _rarest_first(looking: Looking, phrase: Sequence[str]) -> tuple[list[tuple[str, float]], float]:
    """The distinct tokens with the share of documents that hold each, and how many documents there are.

    Told from the newest ones, whatever the reach.
    """
    connection = looking.connection
    first, sampled, documents = _sample(connection)
    newest = Sql(" AND f.rowid >= ?", (first,))
    held = {
        token: hits_up_to(
            connection,
            SAMPLE_HITS_MAX,
            Matching(phrase_match([token], looking.scope.with_searches), newest),
        )
        for token in set(phrase)
    }
    rarest = sorted(held, key=lambda token: (held[token], token))
    return [(token, min(1.0, max(held[token], 0.5) / sampled)) for token in rarest], documents


def _sample(connection: Connection) -> tuple[int, int, float]:
    """The first row id of the newest documents, how many these are, and about how many there are in all."""
    row = connection.execute("SELECT max(block) FROM block").fetchone()
    blocks: int = 1 if row is None or row[0] is None else row[0] + 1
    first = max(0, blocks - SAMPLE_BLOCKS)
    row = connection.execute(
        "SELECT sum(min(s.documents, ?)) FROM block AS b CROSS JOIN session AS s ON s.sid = b.sid"
        " WHERE b.block >= ?",
        (BLOCK_DOCUMENTS, first),
    ).fetchone()
    sampled: int = row[0] if row is not None and row[0] else 1
    return first << BLOCK_BITS, sampled, sampled * blocks / (blocks - first)


def rows_inside(looking: Looking, phrase: Sequence[str], most: int) -> list[int] | None:
    """Documents of one session that hold tokens of the phrase, among them all that hold the phrase itself.

    None if each token stands in more than ``most``. Token by token, because the engine has no upper end for
    a phrase: past the session it goes on to the next document that holds all of it, if need be to the end.
    """
    held: set[int] | None = None
    for token in sorted(set(phrase), key=lambda token: (-len(token), token)):  # long ones are mostly rare
        found = looking.connection.execute(
            f"SELECT f.rowid FROM fts AS f WHERE fts MATCH ?{looking.scope.rows.text} LIMIT ?",
            (phrase_match([token], looking.scope.with_searches), *looking.scope.rows.values, most + 1),
        ).fetchall()
        if len(found) <= most:
            rows = {row for (row,) in found}
            held = rows if held is None else held & rows
            if len(held) <= FEW_INSIDE:
                break
    return None if held is None else sorted(held)
