"""The session header: immutable metadata, never part of the event log (SPEC 1.1)."""

from __future__ import annotations

import attrs


@attrs.frozen(slots=True, kw_only=True)
class SessionHeader:
    """One session's identity and origin. Absent optional fields are ``None`` here, omitted on disk."""

    id: str
    created_at: int
    cwd: str | None = None
    parent_session: str | None = None
    seed_length: int | None = None
    origin: str | None = None
    delegation_depth: int | None = None
    agent_preset: str | None = None
    version: int = 0
