"""The written specification of the wire is held against the code: its examples, names and numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import session_query
from session_query.protocol.wire import limits
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import CLIENT_CODECS, SERVER_CODECS
from session_query.protocol.wire.codes import WireCode
from session_query.protocol.wire.identity import ROLES
from session_query.protocol.wire.methods import METHODS

TEXT = (Path(session_query.__file__).parent / "protocol" / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^([CS]): (\{.*\})$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("side", "frame"), EXAMPLES, ids=lambda value: value[:30])
def test_every_example_is_a_message(side: str, frame: str) -> None:
    (SERVER_CODECS if side == "C" else CLIENT_CODECS)["json"].decode(frame)


def test_there_are_examples_of_both_sides() -> None:
    assert {side for side, _ in EXAMPLES} == {"C", "S"}
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("kind", [*m.CLIENT_MESSAGES, *m.SERVER_MESSAGES], ids=lambda kind: kind.__name__)
def test_every_message_and_field_is_named(kind: type[m.Message]) -> None:
    assert f"`{m.tag_of(kind)}`" in TEXT
    for field in kind.__struct_fields__:
        assert re.search(rf"[`\".{{,]{field}\b", TEXT), field


@pytest.mark.parametrize("code", list(WireCode))
def test_every_code_is_explained(code: WireCode) -> None:
    assert f"`{code.value}`" in TEXT


def test_the_methods_are_the_table() -> None:
    for method in METHODS.values():
        if method.operator_only and method.name != "statistics":
            continue  # the local command line's own
        row = re.search(rf"^\| `{method.name}` \| (.*?) \|", TEXT, re.MULTILINE)
        assert row, method.name
        named = set(re.findall(r"`(\w+)\??`", row.group(1)))
        assert named == method.known, method.name


@pytest.mark.parametrize(
    "text",
    [
        *limits.SUBPROTOCOLS,
        *ROLES,
        f'"frame_bytes":{limits.FRAME_BYTES}',
        f'"frame_containers":{limits.FRAME_CONTAINERS}',
        f"{limits.FRAME_VALUES:,} values ({limits.REQUEST_VALUES:,} in requests",
        f'"part_bytes":{limits.PART_BYTES}',
        f'"in_flight":{limits.IN_FLIGHT}',
        f"{limits.HELLO_BYTES // 1024} KiB",
    ],
)
def test_numbers_and_names_are_the_codes(text: str) -> None:
    assert text in TEXT
