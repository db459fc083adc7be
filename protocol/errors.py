"""The closed table of error codes and the one exception that carries them (SPEC 13)."""

from __future__ import annotations

import enum


class Code(enum.StrEnum):
    """Codes a query service may raise. The set is closed (SPEC 13)."""

    ABORTED = "SESSION_QUERY_ABORTED"
    CORRUPT_SESSION = "SESSION_QUERY_CORRUPT_SESSION"
    EVENT_NOT_FOUND = "SESSION_QUERY_EVENT_NOT_FOUND"
    INDEX_FAILED = "SESSION_QUERY_INDEX_FAILED"
    INVALID_CONFIG = "SESSION_QUERY_INVALID_CONFIG"
    INVALID_CURSOR = "SESSION_QUERY_INVALID_CURSOR"
    INVALID_FILTER = "SESSION_QUERY_INVALID_FILTER"
    INVALID_LIMIT = "SESSION_QUERY_INVALID_LIMIT"
    INVALID_QUERY = "SESSION_QUERY_INVALID_QUERY"
    INVALID_LINEAGE = "SESSION_QUERY_INVALID_LINEAGE"
    INVALID_SURFACE = "SESSION_QUERY_INVALID_SURFACE"
    INVALID_WINDOW = "SESSION_QUERY_INVALID_WINDOW"
    PERSISTENCE_FAILED = "SESSION_QUERY_PERSISTENCE_FAILED"
    SEARCH_DISABLED = "SESSION_QUERY_SEARCH_DISABLED"
    SESSION_NOT_FOUND = "SESSION_QUERY_SESSION_NOT_FOUND"
    SOURCE_CONFLICT = "SESSION_QUERY_SOURCE_CONFLICT"
    STALE_CURSOR = "SESSION_QUERY_STALE_CURSOR"


class QueryError(Exception):
    """An expected failure of the query service: a code of the closed table and a text for the log.

    The cause stays in ``__cause__``. Callers outside the process see the code and a fixed text of
    ours, never ``str(error)`` (SPEC 11).
    """

    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message or code.value)
        self.code = code


class ToolCode(enum.StrEnum):
    """Codes of the tool layer and its policies (SPEC 10.5, 12.2, 13)."""

    TOOL_FAILED = "SESSION_QUERY_TOOL_FAILED"
    MISSING_AGENT = "SESSION_QUERY_TOOL_MISSING_AGENT"
    UNAUTHORIZED = "SESSION_QUERY_TOOL_UNAUTHORIZED"
    NO_CURRENT_STEP = "SESSION_QUERY_TOOL_NO_CURRENT_STEP"
    INVALID_ARGS = "INVALID_ARGS"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"


class ToolError(Exception):
    """A failure the tool layer itself owns; code and wording reach the model as they are."""

    def __init__(self, code: ToolCode | Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class CorruptLog(Exception):
    """A provider's word for readable bytes with invalid content (SPEC 1.9.3)."""


class UnsupportedFormat(Exception):
    """The log is intact but written in a form this version does not know (SPEC 1.5.3)."""


class Busy(Exception):
    """A bounded queue is full. Nothing was started; ask again after ``retry_after_ms``."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__("busy")
        self.retry_after_ms = retry_after_ms
