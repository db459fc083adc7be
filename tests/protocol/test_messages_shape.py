"""SPEC 1.4.1 and 8.3: message shapes, and the validation a resume would run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from session_query.protocol.errors import CorruptLog
from session_query.protocol.event import Event
from session_query.protocol.json_codec import deep_copy
from session_query.protocol.json_value import JSON
from session_query.protocol.messages_shape import message_defect, validate_log
from session_query.protocol.surface import SurfaceError
from support.events import assistant, event, tool_result, user

Path = tuple[str | int, ...]
GONE = object()


def changed(made: Event, path: Path, value: object) -> Event:
    """``made`` with the place ``path`` of its data set to ``value``, or removed."""
    data = deep_copy(made.data)
    node: object = {"data": data}
    for key in ("data", *path)[:-1]:
        node = node[key]  # type: ignore[index]  # tests know their own shapes
    last = ("data", *path)[-1]
    if value is GONE:
        del node[last]  # type: ignore[attr-defined]
    else:
        node[last] = value  # type: ignore[index]
    if not path:
        return replace(made, data=value)
    return replace(made, data=data)


MAKERS: dict[str, tuple[Callable[[], Event], Path]] = {
    "user": (lambda: user(0, "hi"), ()),
    "assistant": (lambda: assistant(0, "hi"), ("message",)),
    "result": (lambda: tool_result(0, "c", "hi"), ("message",)),
}

COMMON: list[tuple[Path, object]] = [
    ((), None),
    ((), "x"),
    ((), []),
    (("id",), ""),
    (("id",), GONE),
    (("id",), 7),
    (("role",), "system"),
    (("role",), GONE),
    (("source",), GONE),
    (("source",), "tool"),
    (("source", "kind"), ""),
    (("source", "kind"), GONE),
    (("source", "kind"), 1),
    (("content",), GONE),
    (("content",), "text"),
    (("content",), {}),
]


@pytest.mark.parametrize(("path", "value"), COMMON)
@pytest.mark.parametrize("kind", MAKERS)
def test_every_message(kind: str, path: Path, value: object) -> None:
    make, prefix = MAKERS[kind]
    assert message_defect(make()) is None
    assert message_defect(changed(make(), prefix + path, value))


@pytest.mark.parametrize("key", ["provider", "model"])
@pytest.mark.parametrize("value", ["", GONE, 1])
def test_an_assistant_names_provider_and_model(key: str, value: object) -> None:
    assert message_defect(changed(assistant(0), ("message", "source", key), value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("content",), []),
        (("content", 0), "x"),
        (("content", 0, "type"), "text"),
        (("content", 0, "type"), GONE),
        (("content", 0, "toolCallId"), "other"),
        (("content", 0, "toolCallId"), GONE),
        (("source", "callId"), GONE),
        (("source", "callId"), 1),
        (("content", 0, "content"), GONE),
        (("content", 0, "content"), "text"),
    ],
)
def test_a_tool_result_has_one_block_that_answers_its_call(path: Path, value: object) -> None:
    assert message_defect(changed(tool_result(0, "c"), ("message", *path), value))


def test_a_tool_result_with_two_blocks() -> None:
    made = tool_result(0, "c")
    block: JSON = made.data["message"]["content"][0]  # type: ignore[index,call-overload]
    assert message_defect(changed(made, ("message", "content"), [block, block]))


def test_other_events_have_no_message() -> None:
    assert message_defect(event("tool/call", 0, "anything")) is None


def test_a_good_log_passes() -> None:
    validate_log([])
    validate_log(
        [event("turn/start", 0), user(1, "a"), assistant(2, "b"), tool_result(3, "c"), event("un/known", 4)]
    )


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([user(0), user(2)], "place 1"),
        ([user(0), replace(user(1), time=2**53)], "time"),
        ([replace(user(0), type="")], "type"),
        ([replace(user(0), seq=-1)], "seq"),
        ([replace(event("x", 0), ignorable=False)], "ignorable"),
        ([event("x", 0, [float("nan")])], "not finite"),
        ([changed(user(0), ("id",), ""), user(1, op=None)], "E5"),
        ([user(0), changed(user(1), ("id",), "")], "event 1"),
    ],
)
def test_bad_logs_name_the_first_defect_in_the_order_of_the_checks(events: list[Event], says: str) -> None:
    with pytest.raises(CorruptLog, match=says):
        validate_log(events)


def test_a_broken_surface_is_kept_as_the_cause() -> None:
    with pytest.raises(CorruptLog) as caught:
        validate_log([user(0, sources=[])])
    assert isinstance(caught.value.__cause__, SurfaceError)
