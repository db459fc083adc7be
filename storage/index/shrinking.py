"""Giving space back: what merging leaves free inside the file returns to the file system, in idle time.

A merge writes the new segment before it frees the old ones, so a first build ends with a fifth to a third
of the file free, and rows that grew while logs were read lie in half empty pages. A small file is written
anew once, which repairs both. In a larger one free pages are filled from its end, some in each step, and
the file is cut; that needs ``auto_vacuum=INCREMENTAL``, which the guard asks for and which takes 4 % of
a first build's CPU.
"""

from __future__ import annotations

import logging
from typing import Final

from .. import sqlite
from ..sqlite import Connection

logger = logging.getLogger(__name__)

REPACK_PAGES_MAX: Final = 4_096
"""Pages (16 MB) up to which a file is written anew after a first build: 5 ms a megabyte, no searches wait."""
FREE_PAGES_MIN: Final = 64
FREE_SHARE: Final = 16
"""One page in so many may stay free: appends take them again. Below half of that giving back stops."""


class Shrinker:
    """The idle work on one writer connection's file."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._repack = False
        self._giving = False

    def built(self) -> None:
        """A first build ended: the file is worth writing anew when its segments are merged."""
        self._repack = True

    def step(self, pages: int) -> bool:
        """Outside a transaction, when nothing is left to merge: one piece. True while more is left."""
        repack, self._repack = self._repack, False
        total, free = self._number("page_count"), self._number("freelist_count")
        if repack and total <= REPACK_PAGES_MAX:
            try:
                self._connection.execute("VACUUM")
            except sqlite.OperationalError:
                logger.warning("the index could not be written anew; it stays as it is", exc_info=True)
            return False
        border = max(FREE_PAGES_MIN, total // FREE_SHARE)
        self._giving = free > (border // 2 if self._giving else border)
        if not self._giving:
            return False
        self._connection.execute(f"PRAGMA incremental_vacuum({pages:d})").fetchall()
        self._giving = self._number("freelist_count") < free  # else the file was not made for it
        return self._giving

    def _number(self, pragma: str) -> int:
        row = self._connection.execute(f"PRAGMA {pragma}").fetchone()
        assert row is not None, "a pragma that tells a number has a row"
        return int(row[0])
