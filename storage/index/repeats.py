"""Which tokens a document holds more than once: what the engine tells only at the price of a long walk.

Its score needs every posting of a phrase in the whole table, whatever the workspace. Of a document that no
token of the phrase is repeated in, the count is known without it: one. So for documents that have spans a
short hash of every repeated token is kept, two bytes each. A hash that two tokens share, or bytes of two
neighbours that look like one, cost a look into the text, never a wrong count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

from ...protocol.tokens import split_bytes
from .scope import Sql

HASHES_MAX: Final = 64
"""Repeated tokens kept of one document. Of one with more nothing is: it is read where it matters."""


def repeated(prepared: str) -> bytes | None:
    """The hashes of the tokens that a prepared text holds more than once, None if they are too many.

    8 us for 74 words.
    """
    return repeated_of(Counter(split_bytes(prepared)))


def repeated_of(counts: Mapping[bytes, int]) -> bytes | None:
    """The same for a text whose tokens are counted already."""
    hashes = {_hash(token) for token, count in counts.items() if count > 1}
    return b"".join(sorted(hashes)) if len(hashes) <= HASHES_MAX else None


def _hash(token: bytes) -> bytes:
    return (crc32(token) & 0xFFFF).to_bytes(2, "big")


def may_repeat(phrase: Sequence[str]) -> Sql:
    """The condition on ``repeats AS r``, possibly missing, that a document may hold a phrase twice."""
    hashes = tuple(_hash(token.encode()) for token in dict.fromkeys(phrase))
    every = " AND ".join("instr(r.tokens, ?) > 0" for _ in hashes)
    return Sql(f"(r.tokens IS NULL OR ({every}))", hashes)
