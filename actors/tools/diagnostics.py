"""What the log learns of a failure (SPEC 11.3, 11.6, 11.7, 16.14).

Above debug level: operation, request, code, types and stack positions. Messages may hold what sessions
said, so they are written at debug level only. Everything here reads a hostile object: any of it may raise.
A record carries the same facts as data in its ``facts`` attribute, for logs that programs read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Final

_CHAIN_MAX: Final = 20
_FRAMES_MAX: Final = 20
_MESSAGE_CHARS: Final = 2_000
PLACEHOLDER: Final = "(the failure could not be described)"


def log_failure(
    logger: logging.Logger,
    operation: str,
    request_id: str | int | None,
    error: BaseException,
    *,
    code: str,
    level: int = logging.WARNING,
) -> None:
    """Log ``error`` once at ``level``, its messages at debug level. Nothing ever escapes."""
    try:
        outline = describe(error)
        shown = "-" if request_id is None else request_id
        facts = {"operation": operation, "request": request_id, "code": code, "failure": outline}
        logger.log(
            level,
            "%s (request %s) failed with %s: %s",
            operation,
            shown,
            code,
            outline,
            extra={"facts": facts},
        )
        if logger.isEnabledFor(logging.DEBUG):
            content = _guarded(error, _message)
            logger.debug(
                "%s (request %s) failed, with content: %s",
                operation,
                shown,
                content,
                extra={"facts": facts | {"content": content}},
            )
    except BaseException as secondary:
        # SPEC 11.6: a failure to log is no failure of the call. Ctrl-C stays one.
        if isinstance(secondary, KeyboardInterrupt):
            raise


def describe(error: BaseException) -> str:
    """``KeyError at pool.py:12 run > text.py:3 cut <- ...``: types and positions of the chain, no message.

    Nothing ever escapes, however hostile the error is.
    """
    return _guarded(error, _position)


def _guarded(error: BaseException, describe: Callable[[object], str]) -> str:
    try:
        return " <- ".join(_chain(error, describe))
    except BaseException as secondary:
        if isinstance(secondary, KeyboardInterrupt):
            raise
        return PLACEHOLDER


def _chain(error: object, describe: Callable[[object], str]) -> list[str]:
    """Describe the error and each cause in turn; each object once, a cycle by a marker."""
    parts: list[str] = []
    seen: set[int] = set()
    node: object = error
    while node is not None:
        if id(node) in seen:
            parts.append("(cycle)")
            break
        if len(parts) == _CHAIN_MAX:
            parts.append("(more)")
            break
        seen.add(id(node))
        parts.append(describe(node))
        node = _cause(node)
    return parts


def _cause(node: object) -> object:
    if not isinstance(node, BaseException):
        return None
    if node.__cause__ is not None or node.__suppress_context__:
        return node.__cause__
    return node.__context__


def _position(node: object) -> str:
    name = type(node).__name__
    frames = _frames(node.__traceback__) if isinstance(node, BaseException) else []
    return f"{name} at {' > '.join(frames)}" if frames else name


def _frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None and len(frames) < _FRAMES_MAX:
        code = traceback.tb_frame.f_code
        name = code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
        frames.append(f"{name}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return frames


def _message(node: object) -> str:
    return f"{type(node).__name__}: {str(node)[:_MESSAGE_CHARS]!r}"
