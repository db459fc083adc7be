"""What the service says, in MCP's words.

The receipt travels under ``_meta`` and not as structured content: several hosts show a model the structured
content *instead of* the text, and a receipt is no answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeAlias

from mcp import types

from ....protocol.errors import ToolCode
from ....protocol.json_codec import decode_json, pretty_json, to_utf8_text
from ....protocol.json_value import JSON
from ....protocol.wire import messages as m
from ....protocol.wire.client_errors import RequestAborted, ServerError
from ....protocol.wire.codes import WireCode
from ....storage.spill import locator_hint
from .spilled import resource_link

Meta: TypeAlias = dict[str, JSON]

RECEIPT_KEY: Final = "session-query/receipt"
SPILLED_KEY: Final = "session-query/spilled"
CODE_KEY: Final = "session-query/code"

RESOURCE_HINT: Final = "Read it as the MCP resource of this URI."
"""Takes the place of the service's own hint in a preview; no longer than that, so the limit still holds."""
LINKS_SINCE: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
"""Protocol revisions whose results may hold resource links."""

AGENT_UNKNOWN: Final = (
    "The session that this server was told to speak for is not known yet. Try again in a moment, or start "
    "the server without it."
)
BUSY: Final = "Too many requests are waiting at the moment. Try again."


def call_result(result: m.Result, protocol_version: str) -> types.CallToolResult:
    """A tool's answer: one text, a link to the whole of it if that is a preview, the receipt beside."""
    text = to_utf8_text(result.text)
    content: list[types.ContentBlock] = []
    meta: Meta = {}
    if result.receipt is not None:
        meta[RECEIPT_KEY] = decode_json(pretty_json(result.receipt))  # ids may hold lone surrogates
    if isinstance(result.spilled, dict):
        meta[SPILLED_KEY] = result.spilled
        text = _with_our_hint(text)
        if protocol_version in LINKS_SINCE:
            content.append(resource_link(result.spilled))
    content.insert(0, types.TextContent(type="text", text=text))
    return types.CallToolResult(content=content, _meta=meta or None)


def _with_our_hint(text: str) -> str:
    """A preview's notice with this host's way to the whole text; a notice of another wording stays."""
    theirs = f"{locator_hint('', Path())}]"
    return f"{text.removesuffix(theirs)}{RESOURCE_HINT}]" if text.endswith(theirs) else text


def failed(code: str, text: str) -> types.CallToolResult:
    """A failure a model can act on: the text, and the code both behind it and apart from it (SPEC 11.10)."""
    block = types.TextContent(type="text", text=f"{to_utf8_text(text)} [{code}]")
    return types.CallToolResult(content=[block], is_error=True, _meta={CODE_KEY: code})


def server_failed(error: ServerError) -> types.CallToolResult:
    """What the service refused or failed at."""
    if isinstance(error, RequestAborted) and error.kind == "deadline":
        return failed(ToolCode.TOOL_TIMEOUT.value, error.message)
    if error.code == WireCode.BUSY.value:
        return failed(error.code, BUSY)
    if error.code == WireCode.FORBIDDEN.value:
        return failed(error.code, AGENT_UNKNOWN)  # nothing else of a tool call can be, for the operator
    return failed(error.code, error.message)


def unavailable(why: str) -> types.CallToolResult:
    """There is no service; ``why`` is for the person the model works for."""
    return failed(ToolCode.TOOL_FAILED.value, f"Session history is not available: {why}.")
