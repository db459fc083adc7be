"""SPEC 11, 13, 16.14: what a store's own words come to on their way to a model, a program and the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from session_query import Caller, Code, CorruptLog, Event, Inspected, Signal
from session_query.protocol.errors import QueryError, ToolCode
from session_query.protocol.tools.wording import GENERIC_TEXT, SERVICE_TEXTS
from support.doors import World
from support.providers import FAILURES, returns
from support.sessions import HERE, header, prompts

SECRET = "the words of somebody's session"
READ = {"session_id": "x", "seq": 0}


class Hostile(Exception):
    """Raises from every hook that a logger or a classifier may touch."""

    def __str__(self) -> str:
        raise RuntimeError(SECRET)

    def __repr__(self) -> str:
        raise RuntimeError(SECRET)

    @property
    def code(self) -> Any:
        raise RuntimeError(SECRET)


class Lying(Exception):
    """Carries a code it has no right to."""

    code = Code.SESSION_NOT_FOUND


def cyclic() -> Exception:
    one, other = OSError(SECRET), ValueError(SECRET)
    one.__cause__, other.__cause__ = other, one
    return one


HOSTILE: list[BaseException] = [Hostile(), Lying(SECRET), cyclic(), OSError(SECRET), *FAILURES]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_11_4_to_11_6_a_stores_failure_reaches_nobody_in_its_own_words(
    either: World, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    provider = either.mounted("x")
    provider.faults = {"inspect": HOSTILE[number]}
    with caplog.at_level(logging.INFO):
        answer = await either.door.call("session_event_read", READ)
    assert answer.code == Code.PERSISTENCE_FAILED.value
    assert SECRET not in caplog.text  # 16.14: messages are for the debug level
    if either.door is either.doors["embedded"]:
        assert answer.text == SERVICE_TEXTS[Code.PERSISTENCE_FAILED.value]
    provider.faults = {}
    assert (await either.door.call("session_event_read", READ)).code is None


async def test_11_3_a_failure_is_logged_once_with_operation_request_and_types(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    provider = world.mounted("x")
    provider.faults = {"inspect": OSError(SECRET)}
    caller = Caller(kind="workspace", workspaces=(HERE,))
    with caplog.at_level(logging.WARNING, logger="session_query.actors.tools"):
        await world.service.call_tool("session_event_read", READ, caller, call_id="call-7")
    (record,) = [r for r in caplog.records if "read_event" in r.getMessage()]
    message = record.getMessage()
    assert "call-7" in message
    assert "QueryError" in message
    assert "OSError" in message


async def test_11_5_a_conflict_is_generic_to_a_model_and_told_to_a_program(either: World) -> None:
    provider = either.mounted("x")
    provider.faults = {"inspect": returns(Inspected(header=header("x", at=1), events=[]))}
    answer = await either.door.call("session_event_read", READ)
    assert answer.code == ToolCode.TOOL_FAILED.value
    if either.door is either.doors["embedded"]:
        assert answer.text == GENERIC_TEXT
    assert (await either.door.query("read_event", READ)).code == Code.SOURCE_CONFLICT.value


class Brittle:
    """Any attribute, comparison or conversion raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(SECRET)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError(SECRET)

    __hash__ = None  # type: ignore[assignment]


GOOD = header("x")
CIRCLE: list[Any] = [1]
CIRCLE.append(CIRCLE)
ODD: dict[str, Any] = {
    "nothing": None,
    "a number": 5,
    "a pair": (GOOD, []),
    "an exception": OSError(SECRET),
    "brittle": Brittle(),
    "no header": Inspected(header=None, events=[]),  # type: ignore[arg-type]
    "a brittle header": Inspected(header=Brittle(), events=[]),  # type: ignore[arg-type]
    "no events": Inspected(header=GOOD, events=None),  # type: ignore[arg-type]
    "events that are none": Inspected(header=GOOD, events=[None, "x", 5]),  # type: ignore[list-item]
    "brittle events": Inspected(header=GOOD, events=[Brittle()]),  # type: ignore[list-item]
    "brittle data": Inspected(
        header=GOOD, events=[Event(type="user/message", seq=0, time=1, data=Brittle())]
    ),  # type: ignore[arg-type]
    "data in a circle": Inspected(header=GOOD, events=[Event(type="x", seq=0, time=1, data=CIRCLE)]),
    "bytes": Inspected(header=GOOD, events=[Event(type="x", seq=0, time=1, data=b"x")]),  # type: ignore[arg-type]
    "keys that are no text": Inspected(
        header=GOOD, events=[Event(type="x", seq=0, time=1, data={(1, 2): 3})]
    ),  # type: ignore[dict-item]
    "many, the last one brittle": Inspected(
        header=GOOD,
        events=[*prompts(*"x" * 99), Event(type="x", seq=99, time=1, data=Brittle())],  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("odd", ODD)
async def test_11_6_whatever_a_store_hands_out_costs_that_session_alone(
    either: World, odd: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A value of any kind where a log should be: an answer or a code of ours, and its words go nowhere."""
    provider = either.mounted("x", "y")
    provider.faults = {"inspect x": returns(ODD[odd])}
    known = {code.value for code in Code} | {code.value for code in ToolCode}
    with caplog.at_level(logging.INFO):
        for method, params in (
            ("read_event", READ),
            ("list_events", {"session_id": "x"}),
            ("read_titles", {"session_ids": ["x"]}),
        ):
            answer = await either.door.query(method, params)
            assert answer.code is None or answer.code in known, (method, answer)
        assert (await either.door.call("session_event_read", READ)).code in {None, *known}
        found = await either.door.query("search_sessions", {"query": "stored"})
        assert "y" in found.ids()
        assert (await either.door.query("read_event", READ | {"session_id": "y"})).code is None
        assert "y" in (await either.door.query("list_sessions")).ids()
    assert SECRET not in caplog.text


CODES: list[tuple[str, Any, dict[str, Any], Code]] = [
    ("session_event_read", CorruptLog(SECRET), READ, Code.CORRUPT_SESSION),
    ("session_event_read", OSError(SECRET), READ, Code.PERSISTENCE_FAILED),
    ("session_event_read", None, READ | {"seq": 9}, Code.EVENT_NOT_FOUND),
    ("session_event_read", None, READ | {"before": 51}, Code.INVALID_WINDOW),
]


@pytest.mark.parametrize("number", range(len(CODES)))
async def test_13_codes_pass_with_fixed_texts_of_ours(either: World, number: int) -> None:
    tool, fault, arguments, code = CODES[number]
    provider = either.mounted("x")
    provider.faults = {} if fault is None else {"inspect": fault}
    answer = await either.door.call(tool, arguments)
    assert answer.code == code.value
    if either.door is either.doors["embedded"]:
        assert answer.text == SERVICE_TEXTS[code.value]


def test_13_the_table_is_closed() -> None:
    assert {code.value for code in Code} - set(SERVICE_TEXTS) == {
        Code.SOURCE_CONFLICT.value,
        Code.INVALID_CONFIG.value,
    }
    assert len(Code) == 17


async def test_11_9_a_failing_title_is_a_note_and_the_call_succeeds(
    either: World, caplog: pytest.LogCaptureFixture
) -> None:
    await either.publish("child", prompts("x"), parent="x")
    provider = either.mounted("x")
    provider.faults = {"inspect": OSError(SECRET)}
    with caplog.at_level(logging.INFO):
        answer = await either.door.call("session_trace", {"session_id": "child"})
    assert answer.code is None
    assert "x: untitled" in answer.text
    assert Code.PERSISTENCE_FAILED.value in answer.text
    assert SECRET not in caplog.text


async def test_11_8_what_the_embedded_door_raises_keeps_its_cause_for_the_host(world: World) -> None:
    provider, gone = world.mounted("x"), OSError(SECRET)
    provider.faults = {"inspect": gone}
    exact = await world.service.exact()
    with pytest.raises(QueryError) as caught:
        await exact.read_event(Caller(kind="operator"), "x", 0, signal=Signal())
    assert caught.value.__cause__ is gone
    assert SECRET not in str(caught.value)
