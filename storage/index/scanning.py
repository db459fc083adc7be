"""Queries of symbols alone: a bounded literal scan of what is in scope (SPEC 16.2.3)."""

from __future__ import annotations

from typing import Final

from .literal import find_literal
from .looking import Looking
from .ranked import Hit
from .schema import prompt_of

SCAN_DOCUMENTS_MAX: Final = 30_000
"""Documents of one scan, about 10 us each; a scope with more is too broad."""


def scan(looking: Looking, prompts_last: bool) -> list[Hit] | None:
    """All hits in order of their keys, or None if the scope is too broad."""
    scope = looking.scope
    rows = scope.rows_of("d.doc")
    seen = "" if scope.with_searches else " AND d.search = 0"
    where = f"FROM doc AS d WHERE {scope.events.text}{rows.text}{seen}"
    values = (*scope.events.values, *rows.values)
    counted = looking.connection.execute(
        f"SELECT count(*) FROM (SELECT 1 {where} LIMIT ?)", (*values, SCAN_DOCUMENTS_MAX + 1)
    ).fetchone()
    if counted is None or counted[0] > SCAN_DOCUMENTS_MAX:
        return None
    hits = []
    for row, seq, time, kind, chars in looking.connection.execute(
        f"SELECT d.doc, d.seq, d.time, d.kind, d.chars {where} ORDER BY d.doc", values
    ).fetchall():
        count = len(find_literal(looking.text(row), looking.query))
        if count:
            keys = (0, -count, prompt_of(kind) if prompts_last else 0, chars, -time)
            hits.append(Hit(row, looking.sid_of(row), seq, time, kind, keys))
    hits.sort(key=lambda hit: hit.keys)
    return hits
