"""Lineage without listing the corpus: walk up by parents, down by children (SPEC 7.1, 14 L35).

Upwards the walk ends at the first session the caller may not see: nothing beyond it can be shown, and a
cycle among hidden ancestors is no affair of the caller's (SPEC 14 L30).
"""

from __future__ import annotations

import attrs

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError
from ..protocol.outward import outward_ids
from ..protocol.records import Lineage, SessionRecord
from ..protocol.signal import Signal
from ..protocol.tools.authority import reach_of
from ..protocol.traces import trace_lineage
from ..storage.index.door import IndexReader, StoredSession
from .corpus import Corpus, Entry


async def trace_family(corpus: Corpus, caller: Caller, session_id: str, signal: Signal) -> Lineage:
    """The lineage of one session in reach, by outward ids; sessions outside the reach are included.

    Raises: QueryError SESSION_NOT_FOUND, INVALID_LINEAGE for a cycle among visible ancestors.
    """
    entry = await corpus.require(caller, session_id, signal)
    if corpus.mounted.names:
        return await _from_listing(corpus, caller, session_id, entry, signal)
    row = entry.stored
    if row is None:
        raise QueryError(Code.SESSION_NOT_FOUND)
    return await corpus.storage.read(
        lambda reader: _from_index(reader.index, corpus, caller, session_id, row)
    )


def _from_index(
    index: IndexReader, corpus: Corpus, caller: Caller, session_id: str, target: StoredSession
) -> Lineage:
    reach = reach_of(caller)
    family: dict[int, StoredSession] = {target.sid: target}
    parents: dict[int, int] = {}
    _climb(index, target, family, parents, reach)
    stack = [target]
    while stack:
        node = stack.pop()
        for child in index.children(node.sid):
            if child.sid not in family:
                family[child.sid] = child
                parents[child.sid] = node.sid
                stack.append(child)
    names = _names(index, family, reach) | {target.sid: session_id}
    records = []
    for row in family.values():
        parent = parents.get(row.sid)
        header = attrs.evolve(
            row.state.header,
            id=names[row.sid],
            parent_session=row.state.header.parent_session if parent is None else names[parent],
        )
        live = row.sid in corpus.live.sids
        records.append(
            SessionRecord(header=header, live=live, persisted=row.state.persisted, source=row.key.source)
        )
    return trace_lineage(session_id, records)


def _climb(
    index: IndexReader,
    target: StoredSession,
    family: dict[int, StoredSession],
    parents: dict[int, int],
    reach: tuple[str, ...] | None,
) -> None:
    node = target
    while (parent := index.parent(node.sid)) is not None:
        parents[node.sid] = parent.sid
        if parent.sid in family:
            return  # a cycle: told by the trace itself
        family[parent.sid] = parent
        if reach is not None and parent.state.header.cwd not in reach:
            return
        node = parent


def _names(
    index: IndexReader, family: dict[int, StoredSession], reach: tuple[str, ...] | None
) -> dict[int, str]:
    """Outward ids inside the reach; sessions outside get a name nobody is shown."""
    names: dict[int, str] = {}
    for row in family.values():
        if reach is None or row.state.header.cwd in reach:
            same = [
                other
                for other in index.with_id(row.key.id)
                if reach is None or other.state.header.cwd in reach
            ]
            names[row.sid] = outward_ids(other.key for other in same).get(row.key, row.key.id)
        else:
            names[row.sid] = f"\0{row.sid}"
    return names


async def _from_listing(
    corpus: Corpus, caller: Caller, session_id: str, target: Entry, signal: Signal
) -> Lineage:
    """With mounted providers the whole listing counts: only they know what they hold now."""
    everyone = Caller(kind="operator")
    reach = reach_of(caller)
    listed = await corpus.entries(everyone, (), signal)
    inside = [entry for entry, _ in listed if reach is None or entry.header.cwd in reach]
    by_key = {entry.key: entry for entry, _ in listed} | {target.key: target}
    hidden = {key: f"\0{number}" for number, key in enumerate(by_key)}  # names nobody is shown
    names = hidden | outward_ids(entry.key for entry in inside) | {target.key: session_id}
    by_id: dict[str, list[Entry]] = {}
    for entry in by_key.values():
        by_id.setdefault(entry.key.id, []).append(entry)
    records = []
    for entry in by_key.values():
        record = entry.record(names[entry.key])
        parent = entry.header.parent_session
        found = None if parent is None else _parent(entry, by_id.get(parent, []))
        if found is not None:
            header = attrs.evolve(record.header, parent_session=names[found.key])
            record = attrs.evolve(record, header=header)
        records.append(record)
    return trace_lineage(session_id, records)


def _parent(child: Entry, same_id: list[Entry]) -> Entry | None:
    """The nearest session with the parent's id: same place, same source, same workspace, any."""
    for choice in (
        lambda entry: (entry.key.source, entry.key.place) == (child.key.source, child.key.place),
        lambda entry: entry.key.source == child.key.source,
        lambda entry: entry.header.cwd == child.header.cwd,
        lambda entry: True,
    ):
        found = [entry for entry in same_id if choice(entry)]
        if found:
            return found[0]
    return None
