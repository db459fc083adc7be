"""Tags: tokens of ours among a document's postings, telling its workspace and the class of its length.

They save a search the walk past what lies outside a workspace, and the look-up of lengths that cannot win:
where hits are many. In a small index hits are few, and two postings a document are 2 % of the text of real
logs. So tags begin when an index has grown to ``TAGS_FROM_DOCUMENTS``; documents that stand already get
theirs in order of their row ids, in idle time or at once while a first build runs. Until all have them,
nobody asks for any.

How far that came is one number: exactly the documents up to that row id are tagged, new ones included.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from ..sqlite import Connection
from .schema import BLOCK_BITS, TAG

TAGS_FROM_DOCUMENTS: Final = 10_000
"""Below, an order by length looks 10,000 documents up at most, 5 ms; a search in a workspace likewise."""
STEP_DOCUMENTS: Final = 500
"""Documents that one idle step tags: 3 ms."""
LENGTH_CLASS_MIN: Final = 16
"""The shortest class: texts of up to 16 characters."""
ALL: Final = (1 << 63) - 1
_THROUGH: Final = "SELECT value FROM index_meta WHERE name = 'tagged'"
_NEXT: Final = (
    "SELECT d.doc, s.ws, d.chars FROM doc AS d CROSS JOIN block AS b ON b.block = d.doc >> ?1"
    " CROSS JOIN session AS s ON s.sid = b.sid WHERE d.doc > ?2 ORDER BY d.doc LIMIT ?3"
)
_ADD: Final = "INSERT INTO fts(rowid, text, parts, search_text, search_parts) VALUES(?, '', ?, '', '')"
_ONE_LESS: Final = (
    "INSERT INTO fts(fts, rowid, text, parts, search_text, search_parts) VALUES('delete', ?, '', '', '', '')"
)
"""Without any token this only takes back that ``_ADD`` counted a row more: the mean length stays true."""


def length_class(chars: int) -> int:
    """Four classes for each doubling of the length."""
    return max(LENGTH_CLASS_MIN, int(4 * math.log2(chars + 1)))


def length_token(chars: int) -> str:
    """The token that tells a document's length class, in ``parts``."""
    return f"{TAG}l{length_class(chars)}"


@lru_cache(maxsize=8_192)
def tags(ws: int, chars: int) -> str:
    """What stands before the other ``parts`` of a document that is tagged."""
    return f"{TAG}{ws} {length_token(chars)}"


def all_tagged(connection: Connection) -> bool:
    """Whether a search may rely on tags."""
    return _through(connection) == ALL


def _through(connection: Connection) -> int:
    row = connection.execute(_THROUGH).fetchone()
    return -1 if row is None else int(row[0])


class Tagging:
    """The tags of one writer connection's index. Every method inside its transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.forget()

    def forget(self) -> None:
        """Read again what is remembered: the transaction was rolled back, or this is the beginning."""
        self.through = _through(self._connection)
        """Documents up to this row id are tagged, and no others."""

    def step(self, limit: int = STEP_DOCUMENTS) -> bool:
        """Tag the next documents of an index that is large enough. True while more wait."""
        if self.through == ALL or not self._begun():
            return False
        found = self._connection.execute(_NEXT, (BLOCK_BITS, self.through, limit)).fetchall()
        self._connection.executemany(_ADD, [(row, tags(ws, chars)) for row, ws, chars in found])
        self._connection.executemany(_ONE_LESS, [(row,) for row, _, _ in found])
        self.through = found[-1][0] if len(found) == limit else ALL
        value = str(self.through).encode()
        self._connection.execute("INSERT OR REPLACE INTO index_meta VALUES('tagged', ?)", (value,))
        return self.through != ALL

    def _begun(self) -> bool:
        if self.through >= 0:
            return True
        row = self._connection.execute("SELECT sum(documents) FROM session").fetchone()
        return row is not None and row[0] is not None and row[0] >= TAGS_FROM_DOCUMENTS
