"""The index's door: what goes in, what comes out, and the two objects behind it.

``IndexWriter`` lives on the writer thread's connection, ``IndexReader`` on a read-only one; both are
synchronous. Every write happens inside ``with writer.transaction():``, every read inside
``with reader.snapshot():`` (one read transaction, so that all answers come from one state).

Inside the index a session is an integer, its *sid*, given by ``put_session`` and never used again after
``delete``. Outside it is a ``SessionKey``: (source, place, id) (SPEC 16.6.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import attrs
import msgspec
from msgspec import UNSET, UnsetType

from ...protocol.cursor import Position
from ...protocol.documents import Document
from ...protocol.event import Surface
from ...protocol.filters import EventClause, SessionClause
from ...protocol.header import SessionHeader
from ...protocol.json_value import JSON
from ...protocol.outward import SessionKey as SessionKey  # handed on: the door speaks of it
from ...protocol.records import Match, Tier, Title
from ...protocol.snippet import SNIPPET_CHARS


@attrs.frozen(kw_only=True)
class SessionState:
    """Everything stored with a session beside its events. ``put_session`` replaces all of it.

    ``rank``: smaller is better (live 0, journal 1, readers in configured order); among readable rows of
    one (id, cwd, createdAt) the best alone is visible (SPEC 16.6.3).
    ``length``: events in the log, text or not. ``inherited``: leading events copied from the parent's log.
    ``persisted`` is the session record's flag. ``error``: a code; the session is quarantined: listed
    among the unread, without documents. ``title_error``: why the title cannot be told (SPEC 10.10).
    ``losses``: damaged records. ``durable``: False for sessions that ``wipe_unpersisted`` removes at open
    (live ones nobody stored).
    """

    header: SessionHeader
    rank: int
    title: Title | None = None
    title_error: str | None = None
    length: int = 0
    revision: str = ""
    inherited: int = 0
    persisted: bool = True
    source_gone: bool = False
    error: str | None = None
    losses: int = 0
    durable: bool = True


@attrs.frozen(kw_only=True)
class StoredSession:
    """One session as the index holds it. ``documents``: how many; ``generation``: when it last changed.

    ``visible``: not covered by a better row of the same session and its source is mounted.
    """

    sid: int
    key: SessionKey
    state: SessionState
    generation: int
    documents: int
    visible: bool


class Skeleton(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, array_like=True):
    """An event without its data: enough to fold the surface and trace relations (``surface.Foldable``)."""

    seq: int
    type: str
    time: int
    surface_op: JSON | UnsetType = UNSET
    source_event_seqs: JSON | UnsetType = UNSET


@attrs.frozen(kw_only=True)
class Reach:
    """What a caller may see, decided before any filter (SPEC 10.7, 16.11).

    ``workspaces``: exact ``cwd`` values, None among them meaning "without one"; None for every session.
    ``live``: sids with a live owner; it is the ``live`` flag of every record of this query.
    ``hidden``: sids that do not exist for this caller. ``excluded``: sids that are no hits but readable
    (the caller's own). ``cuts``: sid to the first seq that must not be seen (SPEC 10.8.2).
    """

    workspaces: tuple[str | None, ...] | None = None
    live: frozenset[int] = frozenset()
    hidden: frozenset[int] = frozenset()
    excluded: frozenset[int] = frozenset()
    cuts: Mapping[int, int] = attrs.field(factory=dict)

    def holds(self, session: StoredSession) -> bool:
        """Whether a visible session lies inside, readable or not."""
        inside = self.workspaces is None or session.state.header.cwd in self.workspaces
        return inside and session.sid not in self.hidden


@attrs.frozen
class Only:
    """A resolved clause: these sessions, and with ``or_roots`` those without a parent as well."""

    sids: frozenset[int]
    or_roots: bool = False


@attrs.frozen(kw_only=True)
class Share:
    """One workspace's part of a reach: readable sessions and damaged records (SPEC 16.3)."""

    workspace: str | None
    sessions: int
    losses: int


@attrs.frozen(kw_only=True)
class SearchSpec:
    """One validated search. ``query`` is normalised (SPEC 6.2); ``limit`` hits are wanted after ``after``.

    ``tools``: the decisions that hold in the tools only: prompts last among equal ``exact`` counts
    (SPEC 16.1.7), inherited copies collapsed, sub-agents under their parent (16.9).
    ``only``: what clauses about ids and parents have come to. Outward ids are none of the index's business
    (SPEC 16.6.1), so whoever searches for a caller resolves them first.
    """

    query: str
    match: Match = "exact"
    session_clauses: tuple[SessionClause, ...] = ()
    event_clauses: tuple[EventClause, ...] = ()
    limit: int = 20
    after: Position | None = None
    tools: bool = False
    snippet_chars: int = SNIPPET_CHARS
    only: tuple[Only, ...] = ()

    @property
    def narrows(self) -> bool:
        """Whether any filter is set."""
        return bool(self.session_clauses or self.event_clauses or self.only)


class FoundEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One matching event. ``position`` continues an event search after it.

    A struct, as ``FoundInSession``: made in 0.1 us, where a frozen attrs class takes 1.
    """

    sid: int
    seq: int
    type: str
    time: int
    surface: Surface
    snippet: str
    tier: Tier
    position: Position


class FoundInSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session hit. ``best`` may be an event of a sub-agent (its ``sid`` differs then).

    ``own`` is False if the session itself matched nothing and stands here for its sub-agents alone.
    ``sub_agents``: the sub-agents that matched, best first, each with its own best event.
    """

    session: StoredSession
    live: bool
    tier: Tier
    best: FoundEvent
    position: Position
    own: bool = True
    sub_agents: tuple[FoundInSession, ...] = ()


@attrs.frozen(kw_only=True)
class Facts:
    """What a receipt needs to know about how the answer came about (SPEC 16.3)."""

    tiers: tuple[Tier, ...] = ()
    only_common_words: bool = False
    too_broad: bool = False
    filters_excluded_everything: bool = False


@attrs.frozen(kw_only=True)
class SessionsFound:
    """Hits in order, at most ``limit``; ``more`` exactly when at least one further hit exists."""

    hits: tuple[FoundInSession, ...]
    more: bool
    facts: Facts


@attrs.frozen(kw_only=True)
class EventsFound:
    hits: tuple[FoundEvent, ...]
    more: bool
    facts: Facts


class IndexWriter(Protocol):
    """All changes. Only ``transaction`` and what is marked so may be called outside a transaction."""

    def transaction(self) -> AbstractContextManager[None]:
        """``BEGIN IMMEDIATE`` … ``COMMIT``; generations move once a transaction. Errors roll back."""
        ...

    def wipe_unpersisted(self) -> None:
        """Remove every session that is not ``durable``; called once after opening (SPEC 6.10.6)."""
        ...

    def put_session(self, key: SessionKey, state: SessionState) -> int:
        """Insert or replace a session's state, keeping its events; returns its sid.

        Does nothing, generation included, when nothing differs. With ``error`` set, events go.
        """
        ...

    def grow(self, sid: int, state: SessionState) -> None:
        """Store a state that differs from the stored one in length, revision and title alone.

        For appends: nothing that decides what is visible is looked at.
        """
        ...

    def find(self, key: SessionKey) -> StoredSession | None:
        """The session as this transaction sees it."""
        ...

    def append(self, sid: int, documents: Sequence[Document], skeleton: Sequence[Skeleton] = ()) -> None:
        """Add documents, ascending and above every stored seq, and the skeleton of *all* new events.

        ``skeleton`` may stay empty for sessions whose events are kept elsewhere (the journal).
        """
        ...

    def reclassify(self, sid: int, surfaces: Mapping[int, Surface]) -> None:
        """Change the surface of stored documents; seqs without a document are passed over."""
        ...

    def truncate(self, sid: int, from_seq: int = 0) -> None:
        """Remove documents and skeleton from ``from_seq`` on; 0 empties the session, keeping its sid."""
        ...

    def delete(self, sid: int) -> None:
        """Remove a session. Its words are overwritten in the file (SPEC 16.10), the log of changes included
        after the next truncating checkpoint. See ``scrub`` for an SQLite that cannot do that by itself."""
        ...

    def scrub(self) -> None:
        """Outside a transaction: make sure that no word of a deleted session is left in the file.

        Needed after ``delete`` for ``forget`` only. Where the full-text part must be rewritten for it
        that takes seconds for a million events.
        """
        ...

    def show_source(self, source: str, shown: bool) -> None:
        """Hide or show all sessions of a source (an unmounted provider, SPEC 6.10.3)."""
        ...

    def touch(self, sids: Iterable[int]) -> None:
        """Move the generations of sessions whose live or persisted flag flipped (SPEC 6.9)."""
        ...

    def generation(self) -> int:
        """The global generation: grows with every change, also across reopening (SPEC 6.9.7)."""
        ...

    def get_meta(self, name: str) -> bytes | None: ...

    def set_meta(self, name: str, value: bytes | None) -> None: ...

    def merge_step(self, pages: int = 64, *, copy_log: bool = True, pressed: bool = False) -> bool:
        """Outside a transaction: one bounded piece of idle work. True while more is left.

        Merging of full-text segments, joining the small rows that appends leave behind, then giving free
        space back to the file system. ``copy_log``: then what the write-ahead log holds goes into the file.
        ``pressed``: there is no silence, so beside the merge only one kind of that, each time another.
        """
        ...

    def bulk(self, on: bool) -> None:
        """Outside a transaction: larger buffers while a first build runs (about 32 MB more memory)."""
        ...


class IndexReader(Protocol):
    """All questions. Everything but ``snapshot`` is called inside one ``with reader.snapshot():``."""

    def snapshot(self) -> AbstractContextManager[None]:
        """One read transaction; interruptible by ``connection.interrupt()``."""
        ...

    def sessions(self, reach: Reach, clauses: Sequence[SessionClause] = ()) -> list[StoredSession]:
        """Visible, readable sessions in reach, createdAt descending, then id ascending (SPEC 4.3)."""
        ...

    def session(self, sid: int) -> StoredSession | None:
        """By sid, whatever its visibility or error."""
        ...

    def find(self, key: SessionKey) -> StoredSession | None:
        """By key, whatever its visibility or error."""
        ...

    def with_id(self, id: str) -> list[StoredSession]:  # noqa: A002 - the contract's word
        """Every visible session with this id, unreadable ones included, best rank first."""
        ...

    def log_path(self, sid: int) -> str | None:
        """Where the log of a session lies, for people; None if it has none."""
        ...

    def of_source(self, source: str) -> list[StoredSession]:
        """Every session of a source, whatever its visibility or error; for reconciling with a provider."""
        ...

    def fallbacks(self, sid: int) -> list[StoredSession]:
        """All rows of the same (id, cwd, createdAt), best first, this one included (SPEC 16.6.3)."""
        ...

    def unread(self, reach: Reach) -> list[StoredSession]:
        """Visible sessions in reach that carry an error code (SPEC 16.3)."""
        ...

    def count(self, reach: Reach) -> int:
        """Readable sessions in reach, ``excluded`` not counted (SPEC 16.3)."""
        ...

    def losses(self, reach: Reach) -> int:
        """Damaged records of the sessions in reach, ``excluded`` not counted."""
        ...

    def workspaces(self) -> list[str]:
        """Every ``cwd`` that a session of this index ever had, in no order."""
        ...

    def shares(self, reach: Reach) -> list[Share]:
        """``count`` and ``losses`` for each workspace that has readable sessions, by name, None first."""
        ...

    def with_ids(
        self, ids: Iterable[str], workspaces: Sequence[str | None] | None = None
    ) -> list[StoredSession]:
        """Every visible session with one of these ids, unreadable ones included, in no order.

        Args: workspaces: look in these alone (None among them: without one); None: in all. A session outside
            them takes no time either, so that nobody can tell it from one that is missing.
        """
        ...

    def with_parents(self, ids: Iterable[str]) -> list[StoredSession]:
        """Every visible session whose header names one of these ids as its parent, in no order."""
        ...

    def kin(self, id: str) -> list[StoredSession]:  # noqa: A002 - the contract's word
        """Every visible session that a chain of parent ids leads to from ``id``, upwards or downwards,
        those with the id itself included. Ids alone count here: which session is meant by an id, and
        where a reach ends, is judged by whoever asks."""
        ...

    def parent(self, sid: int, reach: Reach | None = None) -> StoredSession | None:
        """The visible parent of a session: same source and place, else same source, else any; None if
        it has none or it is not stored. Ties go to equal ``cwd``, then best rank. With a reach, only
        sessions inside it count."""
        ...

    def children(self, sid: int) -> list[StoredSession]:
        """The visible sessions whose ``parent`` is this one, createdAt ascending, then id ascending."""
        ...

    def skeleton(self, sid: int) -> list[Skeleton]:
        """The skeleton of all events, ascending; empty if it was not stored."""
        ...

    def documents(self, sid: int) -> list[Document]:
        """All documents with their present surface, ascending by seq (SPEC 3.3, 5.5)."""
        ...

    def document(self, sid: int, seq: int) -> Document | None: ...

    def generation(self) -> int:
        """The global generation."""
        ...

    def workspace_generation(self, cwd: str | None) -> int:
        """When a session of this workspace last changed; 0 if it never held one (SPEC 16.4)."""
        ...

    def session_generation(self, sid: int) -> int:
        """When a session last changed; 0 if there is none."""
        ...

    def get_meta(self, name: str) -> bytes | None: ...

    def search_sessions(self, spec: SearchSpec, reach: Reach) -> SessionsFound:
        """Search every session in reach (SPEC 6, 16.1)."""
        ...

    def search_events(self, spec: SearchSpec, reach: Reach, sid: int) -> EventsFound:
        """Search one session; of ``reach`` only ``cuts`` count, authority is the caller's affair."""
        ...
