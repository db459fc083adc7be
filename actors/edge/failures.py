"""What a peer is told of a failure: a code, a fixed text of ours, and why a request was aborted.

This is the boundary of the wire (SPEC 11, 16.13, 16.14): nothing an exception says reaches a peer unless
its type promises that its message is ours and meant for the peer.
"""

from __future__ import annotations

import logging
from typing import Final

import attrs

from ...protocol.errors import Busy, Code, QueryError, ToolCode, ToolError
from ...protocol.json_value import JSON
from ...protocol.tools.wording import SERVICE_TEXTS, model_code_and_text, timeout_text
from ...protocol.wire.codes import WireCode, WireError
from ...protocol.wire.messages import Abort, AbortKind, Error
from ..tools import diagnostics

logger = logging.getLogger(__name__)

INTERNAL_TEXT: Final = "an internal failure; the service's log has the details"
ABORT_TEXTS: Final[dict[AbortKind, str]] = {
    "cancelled": "the request was cancelled",
    "deadline": "the deadline has passed",
    "disconnected": "the connection was lost",
    "shutdown": "the service is stopping",
}
OPERATOR_TEXTS: Final[dict[str, str]] = {
    Code.SOURCE_CONFLICT.value: "Two sources disagree about the header of a session.",
    Code.INVALID_CONFIG.value: "A setting of the service is invalid.",
}


@attrs.frozen
class AbortReason:
    """Why a request's signal was aborted. ``reason`` is the peer's own for ``cancelled``, unchanged."""

    kind: AbortKind
    reason: JSON = None

    @classmethod
    def deadline(cls, deadline_ms: int) -> AbortReason:
        return cls("deadline", {"code": ToolCode.TOOL_TIMEOUT.value, "ms": deadline_ms})


def abort_error(request_id: int, why: AbortReason) -> Error:
    """``TOOL_TIMEOUT`` for a deadline, ``SESSION_QUERY_ABORTED`` for every other abort (SPEC 16.13)."""
    code, message = Code.ABORTED.value, ABORT_TEXTS[why.kind]
    if why.kind == "deadline" and isinstance(why.reason, dict) and isinstance(why.reason.get("ms"), int):
        code, message = ToolCode.TOOL_TIMEOUT.value, timeout_text(int(str(why.reason["ms"])))
    return Error(id=request_id, code=code, message=message, abort=Abort(why.kind, why.reason))


def failure_error(request_id: int, exc: Exception, operation: str, *, for_model: bool) -> Error:
    """The answer to a request whose handler raised.

    Args: for_model: the answer goes to a model (``call``): codes that are ours to fix are generic there
        (SPEC 11.5); programs (``query``) see them.
    """
    match exc:
        case WireError():
            return Error(
                id=request_id, code=exc.code.value, message=exc.message, retry_after_ms=exc.retry_after_ms
            )
        case ToolError():
            return Error(id=request_id, code=exc.code.value, message=exc.message)
        case Busy():
            return Error(
                id=request_id,
                code=WireCode.BUSY.value,
                message="too much is waiting; try again",
                retry_after_ms=exc.retry_after_ms,
            )
        case QueryError():
            code, text = _query_failure(exc.code, for_model=for_model)
            log_failure(operation, request_id, code, exc, level=logging.INFO)
            return Error(id=request_id, code=code, message=text)
    log_failure(operation, request_id, WireCode.INTERNAL.value, exc, level=logging.ERROR)
    return Error(id=request_id, code=WireCode.INTERNAL.value, message=INTERNAL_TEXT)


def _query_failure(code: Code, *, for_model: bool) -> tuple[str, str]:
    if for_model:
        return model_code_and_text(code)
    return code.value, SERVICE_TEXTS.get(code.value) or OPERATOR_TEXTS[code.value]


def log_failure(operation: str, request_id: int | None, code: str, exc: BaseException, *, level: int) -> None:
    """One line with operation, request id, code, exception types and positions; content only at debug level.

    SPEC 16.14: an exception's message may hold what people wrote.
    """
    diagnostics.log_failure(logger, operation, request_id, exc, code=code, level=level)
