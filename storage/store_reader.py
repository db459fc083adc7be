"""A read-only view of a store: what searches and reads use, each by one owner at a time."""

from __future__ import annotations

from typing import Final

import attrs

from . import sqlite
from .damage import suspect
from .index.door import IndexReader
from .journal import JournalReader
from .sqlite import Connection

CACHE_LOOK_EVERY: Final = 256
"""Searches of one reader between two looks at how large the index has become: a look takes some 10 us."""


@attrs.define(eq=False)
class StoreReader:
    """A read-only view of a store, with connections of its own. One owner at a time.

    ``connection`` is the index's, for ``run_query`` to interrupt; journal reads are bounded by themselves.
    """

    connection: Connection
    index: IndexReader
    journal: JournalReader
    index_path: str = ":memory:"
    searches: bool = False
    """Whether its page cache goes by the size of the index."""
    _uses: int = attrs.field(default=0, init=False)

    def used(self) -> None:
        """Count a search in its owner's thread: now and then the page cache is fitted to the index's size."""
        self._uses += 1
        if self.searches and self._uses % CACHE_LOOK_EVERY == 0:
            sqlite.resize_cache(self.connection, sqlite.reader_cache_kib(self.index_path))

    def suspect(self, error: BaseException) -> None:
        """Hear of an error: if the file is damaged, the next opening checks and replaces it. Any thread."""
        suspect(self.index_path, error)

    def close(self) -> None:
        """Close both connections."""
        self.connection.close()
        self.journal.connection.close()
