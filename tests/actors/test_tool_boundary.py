"""SPEC 11, 13, 16.14: the one boundary between the tools and the query service."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest
import trio

from session_query.actors.tools import boundary
from session_query.actors.tools.boundary import observe, sanitize
from session_query.actors.tools.registry import ToolRegistry, ToolSettings
from session_query.protocol.errors import Busy, Code, QueryError, ToolCode, ToolError
from session_query.protocol.signal import Aborted, Signal
from session_query.protocol.tools.authority import UNAUTHORIZED_TEXT
from session_query.protocol.tools.wording import GENERIC_TEXT, SERVICE_TEXTS
from support.fake_tools import FakeToolService, agent, call, corpus

SECRET = "the password is hunter2"

# Every tool with each service call it makes, in order.
OPERATIONS = [
    ("session_search", {"query": "q", "parent_session_ids": ["sibling"]}, "filter_sessions"),
    ("session_search", {"query": "q"}, "collect_sessions"),
    ("session_event_search", {"query": "q", "session_id": "sibling"}, "filter_sessions"),
    ("session_event_search", {"query": "q"}, "own_cut"),
    ("session_event_search", {"query": "q"}, "collect_events"),
    ("session_event_search", {"query": "q", "seq_from": 50}, "read_titles"),
    ("session_event_search", {"query": "q", "seq_from": 50}, "reach_receipt"),
    ("session_trace", {"session_id": "sibling"}, "filter_sessions"),
    ("session_trace", {}, "trace_session"),
    ("session_trace", {}, "read_titles"),
    ("session_event_trace", {"seq": 1, "session_id": "sibling"}, "filter_sessions"),
    ("session_event_trace", {"seq": 1}, "trace_event"),
    ("session_event_trace", {"seq": 1}, "read_titles"),
    ("session_event_read", {"seq": 1, "session_id": "sibling"}, "filter_sessions"),
    ("session_event_read", {"seq": 1}, "read_event"),
    ("session_event_read", {"seq": 1}, "read_titles"),
]
EVERYWHERE = pytest.mark.parametrize(("tool", "arguments", "operation"), OPERATIONS)


def raising(error: BaseException) -> Callable[..., Awaitable[Any]]:
    async def broken(*_: object) -> NoReturn:
        raise error

    return broken


async def failed(error: BaseException, operation: str = "trace_session") -> Any:
    service = corpus()
    service.instead[operation] = raising(error)
    return await call(service, "session_trace", {}, agent())


@EVERYWHERE
async def test_11_4_a_known_code_passes_with_our_text(
    tool: str, arguments: object, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    service = corpus()
    service.instead[operation] = raising(QueryError(Code.PERSISTENCE_FAILED, SECRET))
    result = await call(service, tool, arguments, agent())
    assert (result.code, result.text) == (Code.PERSISTENCE_FAILED, SERVICE_TEXTS[Code.PERSISTENCE_FAILED])
    assert result.is_error
    assert result.receipt is None
    assert service.names()[-1] == operation
    assert len(caplog.records) == 1


@EVERYWHERE
@pytest.mark.parametrize("nonsense", [None, 5, "text", [None], object()])
async def test_11_4_nonsense_is_the_generic_failure(
    tool: str, arguments: object, operation: str, nonsense: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def odd(*_: object) -> object:
        return nonsense

    service = corpus()
    service.instead[operation] = odd
    result = await call(service, tool, arguments, agent())
    if (operation, nonsense) == ("own_cut", None):
        assert result.code == ToolCode.NO_CURRENT_STEP
    elif operation == "own_cut" and nonsense == 5:
        assert not result.is_error
    else:
        assert result.code in (ToolCode.TOOL_FAILED, ToolCode.UNAUTHORIZED)
        assert result.is_error


@EVERYWHERE
@pytest.mark.parametrize("outcome", [None, QueryError(Code.ABORTED), ValueError(SECRET), Busy(1)], ids=repr)
async def test_11_2_an_abort_during_the_call_wins_over_success_and_failure(
    tool: str,
    arguments: object,
    operation: str,
    outcome: Exception | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    signal, reason, service = Signal(), RuntimeError("stop"), corpus()

    async def aborting(*_: object) -> object:
        signal.abort(reason)
        if outcome is not None:
            raise outcome
        return []

    service.instead[operation] = aborting
    with pytest.raises(RuntimeError) as caught:
        await call(service, tool, arguments, agent(), signal=signal)
    assert caught.value is reason
    assert service.names()[-1] == operation
    assert caplog.records == []


@EVERYWHERE
async def test_11_2_an_abort_before_the_call_keeps_the_service_untouched(
    tool: str, arguments: object, operation: str
) -> None:
    signal = Signal()
    reason = ["any", "object"]
    signal.abort(reason)
    service = corpus()
    with pytest.raises(Aborted) as caught:
        await call(service, tool, arguments, agent(), signal=signal)
    assert caught.value.reason is reason
    assert service.calls == []


@EVERYWHERE
async def test_a_cancelled_caller_is_not_held_nor_swallowed(
    tool: str, arguments: object, operation: str, autojump_clock: trio.abc.Clock
) -> None:
    async def hanging(*_: object) -> None:
        await trio.sleep_forever()

    service = corpus()
    service.instead[operation] = hanging
    with trio.move_on_after(1) as scope:
        await call(service, tool, arguments, agent())
    assert scope.cancelled_caught


@EVERYWHERE
async def test_a_source_that_ignores_cancellation_is_awaited(
    tool: str, arguments: object, operation: str, autojump_clock: trio.abc.Clock
) -> None:
    async def stubborn(*_: object) -> object:
        with trio.CancelScope(shield=True):
            await trio.sleep(7)
        return []

    service = corpus()
    service.instead[operation] = stubborn
    with trio.move_on_after(1):
        await call(service, tool, arguments, agent())
    assert trio.current_time() == 7


@pytest.mark.parametrize("code", sorted(Code))
async def test_13_every_code(code: Code, caplog: pytest.LogCaptureFixture) -> None:
    result = await failed(QueryError(code, SECRET))
    hidden = code in (Code.SOURCE_CONFLICT, Code.INVALID_CONFIG)
    assert result.code == (ToolCode.TOOL_FAILED if hidden else code)
    assert result.text == (GENERIC_TEXT if hidden else SERVICE_TEXTS[code])


class Sly(str):
    __slots__ = ()


def with_code(code: object) -> QueryError:
    error = QueryError(Code.ABORTED)
    error.code = code  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        with_code("__init__"),
        with_code("SESSION_QUERY_TOOL_UNAUTHORIZED"),
        with_code(Sly("SESSION_QUERY_ABORTED")),
        with_code(None),
        with_code(["SESSION_QUERY_ABORTED"]),
        ToolError(ToolCode.MISSING_AGENT, SECRET),
        ToolError(Code.ABORTED, SECRET),
        ExceptionGroup(SECRET, [QueryError(Code.ABORTED)]),
    ],
)
async def test_11_4_everything_else_is_generic(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    result = await failed(error)
    assert (result.code, result.text) == (ToolCode.TOOL_FAILED, GENERIC_TEXT)


async def test_11_4_an_unauthorised_error_gets_the_fixed_wording(caplog: pytest.LogCaptureFixture) -> None:
    result = await failed(ToolError(ToolCode.UNAUTHORIZED, SECRET))
    assert (result.code, result.text) == (ToolCode.UNAUTHORIZED, UNAUTHORIZED_TEXT)


async def test_a_busy_service_is_told_as_busy_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    busy = Busy(250)
    with pytest.raises(Busy) as caught:
        await failed(busy)
    assert caught.value is busy
    assert caplog.records == []


# ---- SPEC 11.6: hostile values ----


class Hostile(Exception):
    def __str__(self) -> str:
        raise SystemExit("str")

    def __repr__(self) -> str:
        raise RuntimeError("repr")


class HostileStack(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise MemoryError("traceback")


class HostileCause(Exception):
    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("cause")


class HostileAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RecursionError(name)


def _no_code(self: object) -> Any:
    raise ZeroDivisionError


class HostileCode(QueryError):
    code: Any = property(_no_code, lambda self, value: None)


class Liar(Exception):
    """Claims to be a QueryError and to carry a code."""

    code = Code.STALE_CURSOR

    @property  # type: ignore[misc]  # lying about the class is the point
    def __class__(self) -> Any:
        return QueryError


def caused_by(cause: BaseException) -> QueryError:
    error = QueryError(Code.STALE_CURSOR)
    error.__cause__ = cause
    return error


HOSTILE: dict[str, tuple[Callable[[], Exception], object]] = {
    "str": (Hostile, ToolCode.TOOL_FAILED),
    "stack": (HostileStack, ToolCode.TOOL_FAILED),
    "cause": (HostileCause, ToolCode.TOOL_FAILED),
    "attributes": (HostileAttributes, ToolCode.TOOL_FAILED),
    "code": (lambda: HostileCode(Code.STALE_CURSOR), ToolCode.TOOL_FAILED),
    "class": (Liar, ToolCode.TOOL_FAILED),
    "str inside": (lambda: caused_by(Hostile()), Code.STALE_CURSOR),
    "stack inside": (lambda: caused_by(HostileStack()), Code.STALE_CURSOR),
    "cause inside": (lambda: caused_by(HostileCause()), Code.STALE_CURSOR),
    "attributes inside": (lambda: caused_by(HostileAttributes()), Code.STALE_CURSOR),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("level", [logging.WARNING, logging.DEBUG])
def test_11_6_hostile_failures(name: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level, logger=boundary.logger.name)
    make, code = HOSTILE[name]
    assert sanitize("operation", make(), None).code is code
    assert caplog.records
    assert all(len(message) < 5_000 for message in caplog.messages)


@pytest.mark.parametrize("name", HOSTILE)
async def test_11_6_hostile_failures_of_a_service(name: str, caplog: pytest.LogCaptureFixture) -> None:
    make, code = HOSTILE[name]
    assert (await failed(make())).code == code


def test_11_6_a_failing_log_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise OSError("disk full")

    monkeypatch.setattr(boundary.logger, "log", broken)
    assert sanitize("operation", QueryError(Code.STALE_CURSOR), None).code is Code.STALE_CURSOR


def test_11_6_an_interrupt_from_the_keyboard_is_no_secondary_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(boundary.logger, "log", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sanitize("operation", ValueError(), None)


def chain(length: int) -> Exception:
    error: Exception = ValueError("0")
    for number in range(1, length):
        outer = TypeError(str(number))
        outer.__cause__ = error
        error = outer
    return error


def test_11_7_a_cycle_of_causes_is_logged_once_with_a_marker(caplog: pytest.LogCaptureFixture) -> None:
    one, two = ValueError("one"), TypeError("two")
    one.__cause__, two.__cause__ = two, one
    sanitize("operation", one, None)
    assert caplog.messages == [
        "operation (request -) failed with SESSION_QUERY_TOOL_FAILED: ValueError <- TypeError <- (cycle)"
    ]


def test_11_7_a_long_chain_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    sanitize("operation", chain(100_000), None)
    assert caplog.messages[0].count(" <- ") == 20
    assert caplog.messages[0].endswith("(more)")


def test_11_7_a_cause_that_is_no_exception_is_told_as_text(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Exception):
        @property
        def __cause__(self) -> Any:  # type: ignore[override]
            return "a bare string"

    caplog.set_level(logging.DEBUG, logger=boundary.logger.name)
    sanitize("operation", Odd("outer"), None)
    assert "Odd <- str" in caplog.messages[0]
    assert "a bare string" in caplog.messages[1]


async def test_11_8_nothing_leads_from_the_failure_to_its_origin(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> NoReturn:
        raise ValueError(SECRET)

    with pytest.raises(ToolError) as caught:
        await observe("operation", broken, signal=Signal(), request_id=None)
    failure = caught.value
    assert failure.__cause__ is None
    assert failure.__context__ is None
    assert set(vars(failure)) == {"code", "message"}
    traceback = failure.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == boundary.__file__:
            assert not any(isinstance(value, ValueError) for value in traceback.tb_frame.f_locals.values())
        traceback = traceback.tb_next


async def test_16_14_logs_tell_operation_request_types_and_places_but_no_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        raise OSError(SECRET)
    except OSError as error:
        failure = QueryError(Code.INDEX_FAILED, SECRET)
        failure.__cause__ = error
    await failed(failure)
    (entry,) = caplog.records
    assert entry.levelno == logging.WARNING
    assert entry.name.startswith("session_query.")
    message = entry.getMessage()
    code = Code.INDEX_FAILED.value
    assert message.startswith(
        f"trace_session (request call-1) failed with {code}: QueryError at boundary.py:"
    )
    assert "<- OSError at test_tool_boundary.py:" in message
    assert "hunter2" not in message
    facts = entry.facts  # type: ignore[attr-defined]
    assert (facts["operation"], facts["request"], facts["code"]) == ("trace_session", "call-1", code)
    assert facts["failure"] in message


async def test_16_14_messages_are_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=boundary.logger.name)
    await failed(QueryError(Code.INDEX_FAILED, SECRET + "x" * 100_000))
    warning, debug = caplog.records
    assert SECRET not in warning.getMessage()
    assert SECRET in debug.getMessage()
    assert len(debug.getMessage()) < 3_000


async def test_10_5_the_tools_own_refusals_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    service = corpus()
    for arguments in ({"query": " "}, {"query": 5}, {"query": "q", "session_ids": []}):
        assert (await call(service, "session_search", arguments, agent())).is_error
    assert (await call(service, "session_trace", {"session_id": "foreign"}, agent())).is_error
    assert caplog.records == []


# ---- the registry ----


@pytest.mark.parametrize(
    "settings",
    [
        {"max_search_results": 0},
        {"max_search_results": True},
        {"max_search_results": 2**53},
        {"max_search_results": 1.0},
        {"search_timeout_ms": 0},
        {"search_timeout_ms": 2_147_483_648},
        {"search_timeout_ms": None},
    ],
)
def test_10_2_bad_settings_fail_before_anything_is_registered(settings: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        ToolSettings(**settings)
    assert caught.value.code is Code.INVALID_CONFIG


def test_10_1_3_five_tools_and_one_prompt() -> None:
    registry = ToolRegistry(service=FakeToolService(), settings=ToolSettings(search_timeout_ms=7))
    tools = registry.tool_list()
    assert [(tool.name, tool.concurrency, tool.deadline_ms) for tool in tools] == [
        ("session_search", "exclusive", 7),
        ("session_event_search", "exclusive", 7),
        ("session_trace", "parallel", None),
        ("session_event_trace", "parallel", None),
        ("session_event_read", "parallel", None),
    ]
    assert registry.prompt() == ToolRegistry(service=FakeToolService()).prompt()
    assert registry.concurrency("session_trace", {}) == "parallel"
    assert registry.concurrency("session_trace", None) == "exclusive"


async def test_an_unknown_tool_is_the_hosts_mistake() -> None:
    with pytest.raises(KeyError):
        await call(corpus(), "session_delete", {}, agent())
