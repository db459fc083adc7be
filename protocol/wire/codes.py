"""The second closed table of codes: what can go wrong on a connection (SPEC 16.13)."""

from __future__ import annotations

import enum


class WireCode(enum.StrEnum):
    """Codes of the connection itself. The query service's own codes are in ``protocol.errors`` (SPEC 13)."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    BAD_FRAME = "BAD_FRAME"
    UNKNOWN_MESSAGE = "UNKNOWN_MESSAGE"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    INVALID_ARGS = "INVALID_ARGS"
    INVALID_HEADER = "INVALID_HEADER"
    INVALID_EVENT = "INVALID_EVENT"
    SEQ_CONFLICT = "SEQ_CONFLICT"
    SEQ_GAP = "SEQ_GAP"
    NOT_ATTACHED = "NOT_ATTACHED"
    TOO_LARGE = "TOO_LARGE"
    BUSY = "BUSY"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    INTERNAL = "INTERNAL"


class WireError(Exception):
    """An expected failure of one request; code and message reach the peer as they are.

    ``message`` is ours and fixed: it never repeats what the peer sent beyond numbers, and never names
    a session or workspace the peer did not name itself. ``retry_after_ms`` goes with ``BUSY``.
    """

    def __init__(self, code: WireCode, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after_ms = retry_after_ms
