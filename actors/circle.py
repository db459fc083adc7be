"""Who is who inside one reach: outward ids, and which parents may be named (SPEC 16.6.1, 10.7.9, 16.11).

A *circle* holds the sessions of one caller's reach that matter to one question: all that share an id with
a session asked about, or with the parent of one. What lies outside the reach is in no circle, so nothing
of it can show in a name, a parent or an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ..protocol.filters import ParentClause, SessionClause
from ..protocol.header import SessionHeader, compatible
from ..protocol.outward import SessionKey, named, outward_ids, possible_ids
from ..protocol.predicates import session_predicate
from ..protocol.records import SessionRecord
from ..storage.index.door import StoredSession
from .live import LiveSession


@attrs.frozen(kw_only=True)
class Entry:
    """One session as found: its key and header, and where its log can be had.

    ``stored`` is its row in the index; None for a session that only a mounted provider has told of.
    ``provider`` names the mounted provider that answers for it; ``fallbacks`` others that hold it as well
    (SPEC 16.6.3).
    """

    key: SessionKey
    header: SessionHeader
    persisted: bool
    live: LiveSession | None = None
    stored: StoredSession | None = None
    provider: str | None = None
    fallbacks: tuple[str, ...] = ()
    conflicted: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether nothing is known to be wrong with its log."""
        return self.live is not None or self.stored is None or self.stored.state.error is None

    @property
    def identity(self) -> tuple[str, str | None, int]:
        """Equal for rows of one session, whatever source they come from (SPEC 16.6.3)."""
        return self.header.id, self.header.cwd, self.header.created_at


@attrs.frozen(kw_only=True)
class Shown:
    """A session as one caller sees it.

    ``header`` carries the outward id, and as parent the outward id of the parent. ``hides_parent``: it has
    a parent that this caller may not know, be it hidden or missing; the header then names none.
    """

    entry: Entry
    header: SessionHeader
    hides_parent: bool
    conflicted: bool

    @property
    def record(self) -> SessionRecord:
        return SessionRecord(
            header=self.header,
            live=self.entry.live is not None,
            persisted=self.entry.persisted,
            source=self.entry.key.source,
            conflicted=self.conflicted,
            hides_parent=self.hides_parent,
        )


@attrs.define(eq=False)
class Circle:
    """Sessions of one reach, in order of rank. Pure: made and asked in whatever thread.

    ``confined``: the reach has a border; a parent beyond it is not named. ``own``: the caller's session.
    ``called``: members that one id names whatever else carries it: the caller's own, and those asked for
    by an id that ``resolve`` took for theirs.
    """

    entries: Sequence[Entry]
    confined: bool
    own: SessionKey | None = None
    called: dict[SessionKey, str] = attrs.field(factory=dict)
    _by_id: dict[str, list[Entry]] = attrs.field(init=False, repr=False)
    _names: dict[str, dict[SessionKey, str]] = attrs.field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._by_id = {}
        for entry in self.entries:
            self._by_id.setdefault(entry.key.id, []).append(entry)

    def member(self, key: SessionKey) -> Entry:
        """The member with a key. Raises: KeyError: none has it."""
        for entry in self._by_id[key.id]:
            if entry.key == key:
                return entry
        raise KeyError(key)

    def name(self, entry: Entry) -> str:
        """The outward id of a member."""
        if entry.key in self.called:
            return self.called[entry.key]
        same = self._by_id[entry.key.id]
        if len(same) == 1:
            return entry.key.id
        names = self._names.get(entry.key.id)
        if names is None:
            names = outward_ids(other.key for other in same)
            self._names[entry.key.id] = names
        return names[entry.key]

    def find(self, outward: str) -> Entry | None:
        """The one member that ``outward`` names: one that is called so first."""
        for called, name in self.called.items():
            if name == outward:
                return self.member(called)
        bare = self._by_id.get(outward, ())
        if len(bare) == 1:
            return bare[0]  # the common case, without looking for other readings
        same = {entry.key: entry for bare in possible_ids(outward) for entry in self._by_id.get(bare, ())}
        key = named(outward, same)
        return None if key is None else same[key]

    def resolve(self, outward: str) -> Entry | None:
        """As ``find``; a bare id that names nobody because several carry it means the one that is live.

        Reads of a live session ask no store (SPEC 4.4.1), so what a store holds may not take its id away.
        """
        found = self.find(outward)
        if found is None:
            live = [entry for entry in self._by_id.get(outward, ()) if entry.live is not None]
            if len(live) == 1:
                found = live[0]
                self.called[found.key] = outward
        return found

    def parent(self, entry: Entry) -> Entry | None:
        """The member meant by an entry's ``parentSession``: same place, same source, same workspace, any.

        The same choice as ``storage.index.families.nearest_parent``. A session is its own parent only when
        nothing else carries the id.
        """
        wanted = entry.header.parent_session
        if wanted is None:
            return None
        same = self._by_id.get(wanted, [])
        others = [other for other in same if other.key != entry.key]
        return min(others, key=lambda other: _distance(entry, other), default=same[0] if same else None)

    def show(self, entry: Entry) -> Shown:
        """A member under its outward id, with its parent as far as it may be named."""
        parent, raw = self.parent(entry), entry.header.parent_session
        named_parent = self.name(parent) if parent is not None else None if self.confined else raw
        name, header = self.name(entry), entry.header
        if (name, named_parent) != (header.id, raw):
            header = attrs.evolve(header, id=name, parent_session=named_parent)
        return Shown(
            entry=entry,
            header=header,
            hides_parent=raw is not None and named_parent is None,
            conflicted=entry.conflicted or self._conflicts(entry),
        )

    def select(self, clauses: Sequence[SessionClause]) -> list[Shown]:
        """The members that match every clause, newest first, then by id (SPEC 4.3, 5.5)."""
        parents = [frozenset(clause.values) for clause in clauses if isinstance(clause, ParentClause)]
        matches = session_predicate(tuple(c for c in clauses if not isinstance(c, ParentClause)))
        shown = (self.show(entry) for entry in self.entries)
        found = [
            one
            for one in shown
            if matches(one.record) and all(_has_parent_in(one, wanted) for wanted in parents)
        ]
        return sorted(found, key=lambda one: (-one.header.created_at, one.header.id))

    def _conflicts(self, entry: Entry) -> bool:
        """Whether a live and a stored session of one workspace share the id but no header (SPEC 16.6.2)."""
        return any(
            (other.live is None) != (entry.live is None)
            and other.header.cwd == entry.header.cwd
            and not compatible(other.header, entry.header)
            for other in self._by_id[entry.key.id]
        )


def _distance(child: Entry, parent: Entry) -> tuple[bool, bool, bool]:
    """Ties go to the better rank: members stand in that order."""
    return (
        parent.key.source != child.key.source,
        parent.key.place != child.key.place,
        parent.header.cwd != child.header.cwd,
    )


def _has_parent_in(shown: Shown, wanted: frozenset[str | None]) -> bool:
    """A filter sees what is shown: a parent that may not be named is equal to no id (SPEC 10.7.7)."""
    return shown.header.parent_session in wanted and not shown.hides_parent


def ids_around(entries: Iterable[Entry]) -> set[str]:
    """The ids whose bearers must be in a circle before the parents of ``entries`` can be named."""
    return {entry.header.parent_session for entry in entries if entry.header.parent_session is not None}
