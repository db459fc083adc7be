"""Requests and results of the query service (SPEC 4-9, 16). Detached, frozen, no I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .event import Event, Surface
from .header import SessionHeader
from .json_value import JSON

Match: TypeAlias = Literal["auto", "exact", "words", "some"]
Tier: TypeAlias = Literal["exact", "words", "session", "some"]
TIERS: tuple[Tier, ...] = ("exact", "words", "session", "some")


@attrs.frozen(kw_only=True)
class SessionRecord:
    """One logical session. ``source`` names where its answer comes from (``live``, ``journal``, a reader).

    ``conflicted``: a live and a stored session of one workspace share the id and differ in the header.
    ``hides_parent``: it has a parent that the asker may not know; the header names none (SPEC 10.7.9).
    """

    header: SessionHeader
    live: bool
    persisted: bool
    source: str = "live"
    conflicted: bool = False
    hides_parent: bool = False


@attrs.frozen(kw_only=True)
class BestMatch:
    seq: int
    type: str
    time: int
    surface: Surface
    snippet: str


@attrs.frozen(kw_only=True)
class SessionHit:
    """``hides_parent``: see ``SessionRecord``."""

    header: SessionHeader
    live: bool
    persisted: bool
    best_match: BestMatch
    tier: Tier = "exact"
    source: str = "live"
    hides_parent: bool = False


@attrs.frozen(kw_only=True)
class EventHit:
    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface
    snippet: str
    tier: Tier = "exact"


@attrs.frozen(kw_only=True)
class UnreadSession:
    """A session of the caller's own workspace that could not be read (SPEC 16.3)."""

    session_id: str
    code: str


@attrs.frozen(kw_only=True)
class WorkspaceReceipt:
    """One workspace's share of an operator's receipt (SPEC 16.3)."""

    workspace: str | None
    sessions_in_reach: int
    unread: int = 0
    lost_records: int = 0


@attrs.frozen(kw_only=True)
class Receipt:
    """Why an answer can be believed, also when it is empty (SPEC 16.3).

    ``sessions_in_reach``: readable sessions before filters, the caller's own excluded.
    ``checked_ago_s``: None means current, else seconds since the sources were last looked at.
    ``only_common_words``: no query token can tell sessions apart (SPEC 16.1.4).
    ``too_broad``: the literal scan for a query of symbols alone gave up (SPEC 16.2.3).
    ``lost_records``: damaged records lost in sessions of the caller's own workspace.
    """

    sessions_in_reach: int
    checked_ago_s: float | None = None
    tiers: tuple[Tier, ...] = ()
    filters_excluded_everything: bool = False
    only_common_words: bool = False
    too_broad: bool = False
    unread: tuple[UnreadSession, ...] = ()
    lost_records: int = 0
    unread_logs: int = 0
    """Logs that could not be read at all and so belong to no workspace; told to an operator of everything."""
    indexing: tuple[int, int] | None = None
    """(done, total) bytes while a first index is being built; the answer may be incomplete."""
    by_workspace: tuple[WorkspaceReceipt, ...] = ()
    """For an operator searching several workspaces: one entry each; the fields above are the totals."""


@attrs.frozen(kw_only=True)
class SessionSearchRequest:
    """A page request over the whole corpus (SPEC 6.1). Raw until validated."""

    query: object
    session_filters: object = None
    event_filters: object = None
    match: object = None
    limit: object = None
    cursor: object = attrs.field(default=None)
    has_cursor: bool = False


@attrs.frozen(kw_only=True)
class EventSearchRequest:
    session_id: object
    query: object
    event_filters: object = None
    match: object = None
    limit: object = None
    cursor: object = attrs.field(default=None)
    has_cursor: bool = False


@attrs.frozen(kw_only=True)
class SessionPage:
    hits: tuple[SessionHit, ...]
    next_cursor: str | None
    receipt: Receipt


@attrs.frozen(kw_only=True)
class EventPage:
    header: SessionHeader
    hits: tuple[EventHit, ...]
    next_cursor: str | None
    receipt: Receipt


@attrs.frozen(kw_only=True)
class Lineage:
    """``trace_session`` (SPEC 7.1). ``descendants`` is preorder with depth: trees 10,000 deep stay flat."""

    target: SessionRecord
    ancestors: tuple[SessionRecord, ...]
    complete: bool
    unresolved_parent_id: str | None
    root: SessionRecord | None
    descendants: tuple[tuple[int, SessionRecord], ...]


@attrs.frozen(kw_only=True)
class EventRecord:
    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface


@attrs.frozen(kw_only=True)
class EventDocument:
    """One document of ``filter_events`` (SPEC 3.3, 5.5)."""

    session_id: str
    seq: int
    type: str
    time: int
    surface: Surface
    text: str


@attrs.frozen(kw_only=True)
class EventTrace:
    header: SessionHeader
    target: EventRecord
    replaced_by: int | None
    replacement_chain: tuple[int, ...]
    replaced_event_seqs: tuple[int, ...]
    source_event_seqs: tuple[int, ...]
    derived_event_seqs: tuple[int, ...]


@attrs.frozen(kw_only=True)
class EventWindow:
    """``read_event`` (SPEC 8.4); ``first_seq`` and ``last_seq`` are inclusive bounds."""

    header: SessionHeader
    target: Event
    events: tuple[Event, ...]
    first_seq: int
    last_seq: int


@attrs.frozen(kw_only=True)
class SurfaceView:
    header: SessionHeader
    captured_through_seq: int | None
    events: tuple[Event, ...]


@attrs.frozen(kw_only=True)
class SessionLog:
    header: SessionHeader
    events: tuple[Event, ...]


@attrs.frozen(kw_only=True)
class Title:
    """The folded title (SPEC 9.1). ``seq`` is None for a title the source reports beside the log."""

    title: str
    message_seqs: tuple[int, ...]
    source: JSON
    seq: int | None
    time: int


@attrs.frozen(kw_only=True)
class TitleItem:
    """One result of ``read_titles``: a title (or none) with the header observed beside it, or a failure."""

    session_id: str
    header: SessionHeader | None = None
    title: Title | None = None
    error: BaseException | None = None
