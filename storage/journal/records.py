"""What the journal takes, gives and refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.outward import SessionKey
from ...protocol.records import Title

PUBLISHED: Final = "journal"
"""The source name of sessions that runtimes publish; retained copies carry their reader's format.

The ``place`` of a published session is chosen by the caller (its workspace, say), so that two runtimes
with one id never meet; that of a retained copy is the log's folder under its root (SPEC 16.6.1).
"""


@attrs.frozen(kw_only=True)
class JournalSession:
    """One session of the journal, without its events. ``sid`` is the journal's own number, not the index's.

    ``revision`` is equal exactly while the log is unchanged, and qualified by the store (SPEC 1.9.1).
    ``clean``: its runtime detached it, so nobody may go on writing (SPEC 16.6.6).
    """

    sid: int
    key: SessionKey
    header: SessionHeader
    length: int
    revision: str
    title: Title | None = None
    inherited: int = 0
    notes: tuple[str, ...] = ()
    clean: bool = False


@attrs.frozen(kw_only=True)
class Batch:
    """Events ``from_seq`` and on, to be appended to one session. Their ``seq`` runs on without a gap."""

    sid: int
    from_seq: int
    events: Sequence[Event]


@attrs.frozen(kw_only=True)
class Copy:
    """Events ``first_seq`` and on of a foreign session, to be kept beyond the life of their log."""

    key: SessionKey
    header: SessionHeader
    first_seq: int
    events: Sequence[Event]
    title: Title | None = None
    inherited: int = 0
    notes: Sequence[str] = ()


class JournalRefusal(Exception):
    """An append or attach that the stored log does not allow; nothing was written. The caller's fault."""


class UnknownSession(JournalRefusal):
    """There is no such session (any more)."""


class SeqGap(JournalRefusal):
    """The batch begins behind the stored end, or its seqs are not contiguous. ``length``: events stored."""

    def __init__(self, length: int) -> None:
        super().__init__(f"the log ends at {length}")
        self.length = length


class SeqConflict(JournalRefusal):
    """The event stored at ``seq`` is another one."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"another event is stored at {seq}")
        self.seq = seq


class HeaderConflict(JournalRefusal):
    """The stored session has an incompatible header (SPEC 1.1.3)."""


class Forgotten(JournalRefusal):
    """The session was forgotten and may not come back (SPEC 16.10)."""


class JournalDamaged(Exception):
    """A stored body cannot be restored: the file was changed by something else, or the disk failed."""

    def __init__(self, sid: int, seq: int) -> None:
        super().__init__(f"event {seq} of session {sid} in the journal is damaged")
        self.sid, self.seq = sid, seq
