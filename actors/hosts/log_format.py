"""How the shipped hosts write their log: one line a record, as text or as JSON, without content (SPEC 16.14).

A record's ``facts`` (a mapping given as ``extra={"facts": ...}``) become fields of the JSON line. What an
exception says may hold what people wrote, so above debug level only its types and places are written. Names
and ids in a message may come from a peer: control characters are escaped, so that one record is one line.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Final, Literal, TextIO, TypeAlias

from ..tools.diagnostics import describe

LogFormat: TypeAlias = Literal["text", "json"]

_CONTROLS: Final = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x2028,
    0x2029,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in _CONTROLS}
"""Controls, line separators and bidirectional overrides."""


def configure_logging(form: LogFormat, *, verbose: bool, stream: TextIO | None = None) -> None:
    """Send the log of this process to ``stream`` (standard error). Hosts alone call this.

    Args: verbose: debug level; messages, causes and tracebacks then hold what sessions and peers said.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)


class TextLines(logging.Formatter):
    """``2031-03-05T06:07:08.123Z WARNING session_query.actors.edge.server: message``."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name}: {_message(record)}"
        failure = _failure(record)
        return line if failure is None else f"{line}: {failure.translate(_ESCAPED)}"


class JsonLines(logging.Formatter):
    """One JSON object a line: ``time``, ``level``, ``logger``, ``message``, the facts, ``failure``."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        facts = getattr(record, "facts", None)
        if isinstance(facts, dict):
            fields |= {str(key): value for key, value in facts.items() if value is not None}
        failure = _failure(record)
        if failure is not None:
            fields["failure"] = failure
        return json.dumps(fields, default=lambda value: type(value).__name__)


def _time(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


def _message(record: logging.LogRecord) -> str:
    return record.getMessage().translate(_ESCAPED)


def _failure(record: logging.LogRecord) -> str | None:
    """The exception of a record: whole at debug level, else its types and places."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return None
    if logging.getLogger().isEnabledFor(logging.DEBUG) and record.exc_info is not None:
        return logging.Formatter().formatException(record.exc_info)
    return describe(error)
