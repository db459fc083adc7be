"""What was forgotten and may not come back: a log may still lie on somebody's disk (SPEC 16.10).

A tombstone holds an id and digests, never a word of the session. Two digests make one: of the identity
(id, creation time, workspace: by SPEC 16.6.3 that is one session, whatever source it comes from) and
of the first event's content, for logs that do not say when they were created. Both stay the same while
the log grows, is moved, or is read by a newer reader that still starts with the same event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from ...protocol.event import Event
from ...protocol.header import SessionHeader
from ...protocol.json_codec import canonical_json
from ..sqlite import Connection
from .reading import blob

DIGEST_BYTES: Final = 16


def digests(header: SessionHeader, first: Event | None) -> tuple[bytes, ...]:
    """What recognises a session: its identity, if it has a creation time, and how it begins."""
    found = []
    if header.created_at > 0:
        found.append(_digest("identity", canonical_json([header.id, header.created_at, header.cwd])))
    if first is not None:
        found.append(_digest("content", canonical_json([header.id, first.type, first.time, first.data])))
    return tuple(found)


def _digest(kind: str, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES, person=kind.encode()).digest()


class Tombstones:
    """The tombstones of one journal, held in memory as well: every new session of every log is asked for.

    Questions touch no connection, so whoever reads logs may ask while another thread commits appends.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held: dict[bytes, set[bytes]] = {}
        self.reload()

    def reload(self) -> None:
        """Hold what is stored: at the start, and when a transaction that added to it was undone."""
        held: dict[bytes, set[bytes]] = {}
        for identity, digest in self._connection.execute("SELECT id, digest FROM tombstone").fetchall():
            held.setdefault(identity, set()).add(digest)
        self._held = held

    def add(self, source: str, header: SessionHeader, first: Event | None, now_ms: int) -> None:
        """Remember that this session was forgotten. Inside the caller's transaction, if it has one."""
        identity, found = blob(header.id), digests(header, first)
        self._connection.executemany(
            "INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?, ?)",
            [(identity, digest, source, now_ms) for digest in found],
        )
        self._held[identity] = self._held.get(identity, set()).union(found)

    def ids(self) -> list[str]:
        """The ids of everything forgotten."""
        return [identity.decode("utf-8", "surrogatepass") for identity in tuple(self._held)]

    def knows(self, session_id: str) -> bool:
        """Whether some session with this id was forgotten."""
        return blob(session_id) in self._held

    def forgotten(self, header: SessionHeader, first: Event | None) -> bool:
        """Whether this session, from whatever source, was forgotten. ``first``: its first event, if known."""
        held = self._held.get(blob(header.id))
        return held is not None and not held.isdisjoint(digests(header, first))

    def remove(self, header: SessionHeader, first: Event | None) -> bool:
        """Let a forgotten session come back. True if it had been forgotten."""
        identity, found = blob(header.id), digests(header, first)
        sql = "DELETE FROM tombstone WHERE id = ? AND digest = ?"
        removed = [self._connection.execute(sql, (identity, one)).rowcount for one in found]
        self.reload()
        return any(removed)

    def listing(self) -> Iterable[tuple[str, str, int]]:
        """``(source, id, forgotten_ms)`` of everything forgotten, for ``doctor``."""
        sql = "SELECT source, id, max(forgotten_ms) FROM tombstone GROUP BY source, id ORDER BY 3, 2"
        rows = self._connection.execute(sql).fetchall()
        return [(source, identity.decode("utf-8", "replace"), ms) for source, identity, ms in rows]
