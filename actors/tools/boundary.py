"""The one boundary between the tools and the query service (SPEC 11).

Nothing a service says reaches a model except through ``observe``: the signal is looked at before and
after, a failure becomes a code of the closed table with a fixed text of ours, and is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...protocol.errors import Busy, QueryError, ToolCode, ToolError
from ...protocol.signal import Signal
from ...protocol.tools.authority import UNAUTHORIZED_TEXT
from ...protocol.tools.wording import GENERIC_TEXT, model_code_and_text
from .diagnostics import log_failure

logger = logging.getLogger(__name__)
T = TypeVar("T")


async def observe(
    operation: str, call: Callable[[], Awaitable[T]], *, signal: Signal, request_id: str | None
) -> T:
    """Return what ``call`` returns, or raise what a model may see of its failure.

    Raises: the signal's exact reason if it was aborted before, or by the end of, the call, whatever the
    call did; ``Busy`` unchanged; ToolError with a fixed text, without cause or context (SPEC 11.2, 11.8).
    """
    signal.raise_if_aborted()
    failure: ToolError | None = None
    try:
        value = await call()
    except Exception as error:
        if not signal.aborted:
            if issubclass(type(error), Busy):
                raise
            failure = sanitize(operation, error, request_id)
    # Raised outside the handler, so that no context leads from our error to the service's.
    signal.raise_if_aborted()
    if failure is not None:
        raise failure
    return value


def sanitize(operation: str, error: BaseException, request_id: str | None) -> ToolError:
    """Log ``error`` once and return what a model may see of it. Nothing ever escapes (SPEC 11.3-11.6)."""
    failure = ToolError(ToolCode.TOOL_FAILED, GENERIC_TEXT)
    try:
        failure = _classify(error)
    except BaseException as secondary:
        if isinstance(secondary, KeyboardInterrupt):
            raise
    log_failure(logger, operation, request_id, error, code=failure.code.value)
    return failure


def _classify(error: BaseException) -> ToolError:
    # issubclass and not isinstance: an object may lie about its class, not about its type.
    if issubclass(type(error), QueryError):
        return ToolError(*model_code_and_text(error.code))  # type: ignore[attr-defined]
    if issubclass(type(error), ToolError) and error.code is ToolCode.UNAUTHORIZED:  # type: ignore[attr-defined]
        return ToolError(ToolCode.UNAUTHORIZED, UNAUTHORIZED_TEXT)
    return ToolError(ToolCode.TOOL_FAILED, GENERIC_TEXT)
