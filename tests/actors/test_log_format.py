"""The log of the shipped hosts: one line a record, facts as data, content at debug level (SPEC 16.14)."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from session_query.actors.edge.failures import log_failure
from session_query.actors.hosts.log_format import LogFormat, configure_logging
from session_query.protocol.errors import Code, QueryError

SECRET = "the launch code is hunter2"


@pytest.fixture(autouse=True)
def _root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    root.setLevel(level)


def written(form: LogFormat, *, verbose: bool = False) -> io.StringIO:
    stream = io.StringIO()
    configure_logging(form, verbose=verbose, stream=stream)
    return stream


def failure() -> QueryError:
    try:
        raise OSError(SECRET)
    except OSError as cause:
        error = QueryError(Code.INDEX_FAILED, SECRET)
        error.__cause__ = cause
    return error


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_failure_is_one_line_of_facts() -> None:
    stream = written("json")
    log_failure("query", 7, "SESSION_QUERY_INDEX_FAILED", failure(), level=logging.WARNING)
    (line,) = lines(stream)
    assert {key: line[key] for key in ("operation", "request", "code", "level")} == {
        "operation": "query",
        "request": 7,
        "code": "SESSION_QUERY_INDEX_FAILED",
        "level": "warning",
    }
    assert line["failure"].startswith("QueryError <- OSError at test_log_format.py:")
    assert line["logger"].startswith("session_query.")
    assert line["time"].endswith("Z")
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_logged_exception_shows_types_and_places_only(form: LogFormat) -> None:
    stream = written(form)
    try:
        raise failure()
    except QueryError:
        logging.getLogger("session_query.x").exception("the index did not take an append")
    (line,) = stream.getvalue().splitlines()
    assert "the index did not take an append" in line
    assert "QueryError at test_log_format.py:" in line
    assert "OSError at test_log_format.py:" in line
    assert "hunter2" not in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_content_comes_at_debug_level(form: LogFormat) -> None:
    stream = written(form, verbose=True)
    log_failure("query", None, "INTERNAL", failure(), level=logging.ERROR)
    first, second = stream.getvalue().splitlines()
    assert "hunter2" not in first
    assert "hunter2" in second


@pytest.mark.parametrize("form", ["text", "json"])
def test_names_from_outside_can_forge_no_line(form: LogFormat) -> None:
    stream = written(form)
    hostile = "x\n2031-01-01T00:00:00.000Z ERROR forged: \x1b[2J\u2028\u202e\ud800\x00"
    logging.getLogger("session_query.x").warning(
        "call %s failed", hostile, extra={"facts": {"client": hostile}}
    )
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert not {"\x1b", "\u2028", "\u202e", "\x00"} & set(text)
    assert "forged" in text


def test_facts_that_are_no_json_do_not_break_the_log() -> None:
    stream = written("json")
    logging.getLogger("session_query.x").info("odd", extra={"facts": {"a": object(), "b": None}})
    (line,) = lines(stream)
    assert line["a"] == "object"
    assert "b" not in line


def test_debug_messages_are_off_by_default() -> None:
    stream = written("text")
    logging.getLogger("session_query.x").debug(SECRET)
    assert stream.getvalue() == ""
