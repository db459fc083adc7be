"""The fixed texts a model reads when a service fails (SPEC 11.4, 13). Nothing of the failure itself.

The table is closed: a code that is not in it, or is no plain code at all, becomes the generic failure.
"""

from __future__ import annotations

from typing import Final

from ..errors import Code, ToolCode

GENERIC_TEXT: Final = "The session history could not be queried. Try again, or go on without it."

SERVICE_TEXTS: Final[dict[str, str]] = {
    Code.ABORTED.value: "The search was cancelled.",
    Code.CORRUPT_SESSION.value: "The stored history of this session is damaged and cannot be read.",
    Code.EVENT_NOT_FOUND.value: "The session has no event with this seq. Use a seq that a result shows.",
    Code.INDEX_FAILED.value: "The search index is not available. Reading and tracing still work.",
    Code.INVALID_CURSOR.value: "The search returned an invalid continuation. Repeat the whole call.",
    Code.INVALID_FILTER.value: (
        "The filters or the query's length were rejected. Use fewer or simpler filters, a shorter query."
    ),
    Code.INVALID_LIMIT.value: "The result limit was rejected.",
    Code.INVALID_QUERY.value: "The query was rejected. Give at least one word.",
    Code.INVALID_LINEAGE.value: "The recorded parents of this session form a loop; its lineage is invalid.",
    Code.INVALID_SURFACE.value: (
        "The recorded history of this session is inconsistent. Single events can still be read."
    ),
    Code.INVALID_WINDOW.value: "before or after is out of range. Use a smaller window.",
    Code.PERSISTENCE_FAILED.value: "The session storage is not available at the moment.",
    Code.SEARCH_DISABLED.value: "Searching is disabled in this deployment. Reading and tracing still work.",
    Code.SESSION_NOT_FOUND.value: "The session was not found.",
    Code.STALE_CURSOR.value: "The history changed while results were collected. Repeat the whole call.",
}
"""SOURCE_CONFLICT and INVALID_CONFIG are missing on purpose: they are ours to fix (SPEC 11.5)."""


def model_code_and_text(code: object) -> tuple[Code | ToolCode, str]:
    """Return what the model may know of a service failure with ``code``.

    ``code`` counts only if it is a member of the closed enumeration or a plain string equal to one;
    anything cleverer is answered with the generic failure (SPEC 11.4).
    """
    key = code.value if type(code) is Code else code
    if type(key) is str and key in SERVICE_TEXTS:
        return Code(key), SERVICE_TEXTS[key]
    return ToolCode.TOOL_FAILED, GENERIC_TEXT


def timeout_text(deadline_ms: int) -> str:
    """Return the text of a call that its deadline ended (SPEC 12.2.2)."""
    return f"The call was stopped at its deadline of {deadline_ms} ms. Narrow it and try again."
