"""What a failed command says and how it exits: the code, one sentence, and what to do next."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

from ....protocol.errors import Busy, Code, QueryError, ToolError

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_STORE = 4
EXIT_INTERRUPTED = 130

EXIT_HELP = """
Exit status: 0 done (an empty answer is an answer) · 2 wrong usage (unknown format, missing path, bad
option) · 3 the request was refused or failed, its code is printed · 4 the data directory or a database
in it cannot be used · 130 interrupted.
"""

_STORE_CODES = {Code.INDEX_FAILED, Code.PERSISTENCE_FAILED, Code.INVALID_CONFIG}

_NEXT_STEP: dict[str, str] = {
    Code.SESSION_NOT_FOUND: "List what there is with `session-query sessions --all`.",
    Code.EVENT_NOT_FOUND: "List the session's events with `session-query events SESSION`.",
    Code.INVALID_QUERY: "Give some words to look for; NUL characters are not allowed.",
    Code.INVALID_FILTER: "Check the filter's values; ranges run from low to high.",
    Code.STALE_CURSOR: "History changed while paging; run the whole command again.",
    Code.INDEX_FAILED: "If the index file is not ours, choose another --data-dir. One of ours that is "
    "damaged is set aside and built anew by the next start, or now by `session-query doctor --rebuild`.",
    Code.PERSISTENCE_FAILED: "Run `session-query doctor` to see which source failed and why.",
    "JOURNAL": "The journal is derived from nothing: put a copy of yours in its place, or choose another "
    "--data-dir.",
    "IN_USE": "Wait for it to end, or choose another --data-dir.",
    Code.SEARCH_DISABLED: "This service was started with searching off.",
}


class CommandError(Exception):
    """A failure the command line itself found; ``exit_code`` says whose fault it is."""

    def __init__(self, message: str, *, code: str = "USAGE", exit_code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code


def describe(error: BaseException) -> tuple[str, str, int]:
    """Return (code, message, exit status) of an expected failure; unexpected ones are raised on."""
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return describe(error.exceptions[0])
    if isinstance(error, CommandError):
        return error.code, str(error), error.exit_code
    if isinstance(error, QueryError):
        status = EXIT_STORE if error.code in _STORE_CODES else EXIT_REFUSED
        return error.code.value, _sentence(str(error), _step_of(error)), status
    if isinstance(error, ToolError):
        return str(error.code), _sentence(error.message, str(error.code)), EXIT_REFUSED
    if isinstance(error, Busy):
        return (
            "BUSY",
            f"Too many requests wait already. Try again in {error.retry_after_ms} ms.",
            EXIT_REFUSED,
        )
    code = getattr(error, "code", None)
    if isinstance(code, str) and type(error).__module__.startswith("session_query."):
        return str(code), _sentence(str(error), str(code)), EXIT_REFUSED
    raise error


def _step_of(error: QueryError) -> str:
    """The key of the advice: a directory in use must not be deleted, and doctor opens no broken journal."""
    from ....storage.lock import DataDirectoryLocked

    if isinstance(error, DataDirectoryLocked):
        return "IN_USE"
    if error.code is Code.PERSISTENCE_FAILED and str(error).startswith(("journal ", "the journal ")):
        return "JOURNAL"
    return error.code.value


def _sentence(message: str, code: str) -> str:
    step = _NEXT_STEP.get(code, "")
    text = (
        message
        if message and message != code
        else code.removeprefix("SESSION_QUERY_").replace("_", " ").lower()
    )
    return f"{text.rstrip('.')}. {step}".strip()


def fail(error: BaseException, *, as_json: bool) -> NoReturn:
    """Print the failure to standard error (JSON when asked for) and leave with its status."""
    code, message, status = describe(error)
    if as_json:
        print(json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"session-query: {message} [{code}]", file=sys.stderr)
    raise SystemExit(status)
