"""SPEC 1.4, 1.5: the vocabulary of event types, and what storage refuses."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from session_query.protocol.errors import UnsupportedFormat
from session_query.protocol.event_types import (
    CORE_TYPES,
    EXTENSION_TYPES,
    RETIRED_TYPES,
    EventTypes,
    is_retired,
)
from support.events import event


def test_the_lists_have_the_right_size_and_do_not_overlap() -> None:
    assert (len(CORE_TYPES), len(EXTENSION_TYPES), len(RETIRED_TYPES)) == (14, 34, 2)
    assert not CORE_TYPES & EXTENSION_TYPES
    assert not (CORE_TYPES | EXTENSION_TYPES) & RETIRED_TYPES


@pytest.mark.parametrize("type_", sorted(CORE_TYPES | EXTENSION_TYPES))
def test_known_types_load(type_: str) -> None:
    types = EventTypes()
    types.check_stored(event(type_, 0))
    assert types.knows(type_)


def test_unknown_types_are_refused_unless_ignorable() -> None:
    types = EventTypes()
    with pytest.raises(UnsupportedFormat, match="newer version"):
        types.check_stored(event("future/thing", 3))
    types.check_stored(replace(event("future/thing", 3), ignorable=True))


@pytest.mark.parametrize(
    "made",
    [event("request/header-delta"), event("mode/set"), event("request/header", 0, {"reason": "fallback"})],
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_retired_shapes_are_always_refused(made: object, ignorable: bool) -> None:
    found = event("x")
    assert isinstance(made, type(found))
    shape = replace(made, ignorable=True) if ignorable else made
    assert is_retired(shape)
    with pytest.raises(UnsupportedFormat, match="retired"):
        EventTypes().check_stored(shape)


@pytest.mark.parametrize("reason", ["initial", "resume", "change", None])
def test_other_request_headers_load(reason: str | None) -> None:
    EventTypes().check_stored(event("request/header", 0, {"reason": reason}))


def test_extensions_register_their_types() -> None:
    types, other = EventTypes(), EventTypes()
    types.register(["my/type", "goal/change"])
    types.register(["my/type"])
    types.check_stored(event("my/type", 0))
    assert not other.knows("my/type")


@pytest.mark.parametrize("bad", ["", "turn/start", "mode/set"])
def test_a_refused_registration_registers_nothing(bad: str) -> None:
    types = EventTypes()
    with pytest.raises(ValueError, match="event type"):
        types.register(["my/type", bad])
    assert not types.knows("my/type")
