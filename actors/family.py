"""Lineage without listing the corpus: the sessions that chains of parent ids lead to (SPEC 7.1, 14 L35).

Ancestors are sessions of the caller's reach alone: beyond its border nothing can be shown, so a hidden
parent is told like a missing one, and a cycle among hidden ancestors is no affair of the caller's (SPEC 14
L30). Of the hidden sessions, those whose parent is shown stand in for their subtrees, which are not looked
at (SPEC 10.7.10).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError
from ..protocol.outward import possible_ids
from ..protocol.records import Lineage, SessionRecord
from ..protocol.signal import Signal
from ..protocol.tools.authority import prune_lineage, reach_of
from ..protocol.traces import trace_lineage
from ..storage.index.door import IndexReader
from .circle import Circle
from .corpus import Corpus

BEYOND: Final = "\0beyond"
"""Stands for a parent that is not named, while a lineage is traced."""
EVERYONE: Final = Caller(kind="operator")
"""Sees every session: for telling a hidden child from none. What it finds is marked, never shown."""


async def trace_family(corpus: Corpus, caller: Caller, session_id: str, signal: Signal) -> Lineage:
    """The lineage of one session in reach, by outward ids. Hidden sessions are among the descendants.

    Raises: QueryError SESSION_NOT_FOUND, INVALID_LINEAGE for a cycle among visible ancestors.
    """
    told = await corpus.listed(signal)

    def trace(index: IndexReader) -> Lineage:
        """In a reader's thread: a family may be 10,000 generations deep."""
        ids: Iterable[str] | None = None  # providers know their families alone: everything told counts
        if not told.headers:
            bare = set(possible_ids(session_id))
            if corpus.gathering.circle(index, caller, bare, told).resolve(session_id) is not None:
                ids = {row.key.id for one in bare for row in index.kin(one)}
            else:  # no relative of a hidden session is looked at: it would take longer than a missing one
                ids = bare
        circle = corpus.gathering.circle(index, caller, ids, told)
        target = circle.resolve(session_id)
        if target is None:
            told.raise_failure()
            raise QueryError(Code.SESSION_NOT_FOUND)
        shown = [circle.show(entry).record for entry in circle.entries]
        if reach_of(caller) is not None:
            shown += _hidden(circle, corpus.gathering.circle(index, EVERYONE, ids, told))
        return _traced(circle.name(target), shown)

    return await corpus.storage.read(lambda reader: trace(reader.index))


def confined_lineage(caller: Caller, lineage: Lineage) -> Lineage:
    """What a program is told of it: hidden subtrees are left out, and nothing marks their places (16.11)."""
    if reach_of(caller) is None:
        return lineage
    visible = prune_lineage(caller, lineage).descendants
    return attrs.evolve(
        lineage, descendants=tuple((depth, record) for depth, record in visible if record is not None)
    )


def _traced(target: str, records: list[SessionRecord]) -> Lineage:
    """The lineage among some records. A parent that is not named is one that does not resolve."""
    plain = {record.header.id: record for record in records if record.hides_parent}
    beyond = [
        attrs.evolve(record, header=attrs.evolve(record.header, parent_session=BEYOND))
        if record.hides_parent
        else record
        for record in records
    ]
    lineage = trace_lineage(target, beyond)
    if lineage.unresolved_parent_id != BEYOND:
        return lineage
    return attrs.evolve(
        lineage,
        unresolved_parent_id=None,
        target=plain.get(lineage.target.header.id, lineage.target),
        ancestors=tuple(plain.get(one.header.id, one) for one in lineage.ancestors),
    )


def _hidden(circle: Circle, all_of_it: Circle) -> list[SessionRecord]:
    """The sessions outside a circle whose parent is inside, under names that nobody is shown."""
    inside = {entry.key: entry for entry in circle.entries}
    found: list[SessionRecord] = []
    for number, entry in enumerate(entry for entry in all_of_it.entries if entry.key not in inside):
        parent = all_of_it.parent(entry)
        if parent is not None and parent.key in inside:
            header = attrs.evolve(
                entry.header, id=f"\0{number}", parent_session=circle.name(inside[parent.key])
            )
            found.append(
                SessionRecord(
                    header=header,
                    live=entry.live is not None,
                    persisted=entry.persisted,
                    source=entry.key.source,
                )
            )
    return found
