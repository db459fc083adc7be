"""The query text: literal data, normalised once (SPEC 6.2)."""

from __future__ import annotations

from .errors import Code, QueryError
from .whitespace import collapse

_MARKERS = str.maketrans({0xFDD0: "\ufffd", 0xFDD1: "\ufffd"})


def normalise_query(raw: object) -> str:
    """Return the query as it is searched and as cursors are bound to it.

    Trimmed, whitespace runs as one space, the reserved markers U+FDD0 and U+FDD1 replaced.
    Raises: QueryError: INVALID_QUERY if it is no string, is blank, or holds U+0000 (SPEC 6.2).
    """
    if type(raw) is not str:
        raise QueryError(Code.INVALID_QUERY, "the query must be a string")
    query = collapse(raw)
    if not query:
        raise QueryError(Code.INVALID_QUERY, "the query is blank")
    if "\0" in query:
        raise QueryError(Code.INVALID_QUERY, "the query contains U+0000")
    return query.translate(_MARKERS)
