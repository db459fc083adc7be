"""SPEC 1.1: the session header."""

from __future__ import annotations

import attrs
import pytest

from session_query.protocol.errors import CorruptLog, UnsupportedFormat
from session_query.protocol.header import (
    HeaderError,
    SessionHeader,
    compatible,
    header_from_json,
    header_from_line,
    header_to_json,
    header_to_line,
    is_absolute,
    same_snapshot,
    soft_mismatch,
)
from session_query.protocol.json_value import JSON
from support.json_values import nested_list

FULL: dict[str, JSON] = {
    "version": 0,
    "id": "s-1",
    "createdAt": 1786700000000,
    "cwd": "/proj",
    "parentSession": "s-0",
    "seedLength": 42,
    "origin": "subagent",
    "delegationDepth": 1,
    "agentPreset": "standard",
}
HEADER = SessionHeader(
    id="s-1",
    created_at=1786700000000,
    cwd="/proj",
    parent_session="s-0",
    seed_length=42,
    origin="subagent",
    delegation_depth=1,
    agent_preset="standard",
)
MINIMAL: dict[str, JSON] = {"version": 0, "id": "s", "createdAt": 0}


def test_all_fields_go_both_ways_in_their_order() -> None:
    assert header_from_json(FULL) == HEADER
    assert list(header_to_json(HEADER).items()) == list(FULL.items())


def test_absent_fields_are_omitted_never_null() -> None:
    header = header_from_json(MINIMAL)
    assert header == SessionHeader(id="s", created_at=0)
    assert header_to_json(header) == MINIMAL


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 1),
        ("version", -1),
        ("version", None),
        ("version", "0"),
        ("version", False),
        ("version", 0.5),
        ("id", None),
        ("id", 7),
        ("id", ""),
        ("createdAt", None),
        ("createdAt", -1),
        ("createdAt", 0.5),
        ("createdAt", -0.0),
        ("createdAt", 2**53),
        ("createdAt", True),
        ("createdAt", "0"),
        ("cwd", None),
        ("cwd", 1),
        ("cwd", ""),
        ("cwd", "proj"),
        ("cwd", "./proj"),
        ("cwd", "~/proj"),
        ("cwd", "C:proj"),
        ("parentSession", None),
        ("parentSession", 1),
        ("seedLength", None),
        ("seedLength", -1),
        ("seedLength", 1.5),
        ("seedLength", True),
        ("seedLength", 2**53),
        ("origin", None),
        ("origin", "fork"),
        ("origin", ""),
        ("origin", ["subagent"]),
        ("delegationDepth", None),
        ("delegationDepth", -1),
        ("delegationDepth", "1"),
        ("agentPreset", None),
        ("agentPreset", 1),
        ("sandboxMode", "x"),
        ("approvalPolicy", None),
        ("extra", float("nan")),
        ("extra", -0.0),
        ("extra", (1,)),
    ],
)
def test_each_rule_refuses(key: str, value: object) -> None:
    record: dict[str, object] = {**FULL, key: value}
    with pytest.raises(HeaderError):
        header_from_json(record)  # type: ignore[arg-type]  # hostile on purpose


@pytest.mark.parametrize("key", ["version", "id", "createdAt"])
def test_required_keys(key: str) -> None:
    with pytest.raises(HeaderError):
        header_from_json({k: v for k, v in FULL.items() if k != key})


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_a_header_is_an_object(value: JSON) -> None:
    with pytest.raises(HeaderError):
        header_from_json(value)


@pytest.mark.parametrize("key", ["origin", "parentSession", "agentPreset"])
def test_free_texts(key: str) -> None:
    value = "subagent" if key == "origin" else "\ud800 any"
    assert header_to_json(header_from_json({**MINIMAL, key: value})) == {**MINIMAL, key: value}


def test_whole_floats_count_and_unknown_keys_are_ignored() -> None:
    record: dict[str, JSON] = {**MINIMAL, "version": 0.0, "createdAt": 4.0, "deep": nested_list(50_000)}
    header = header_from_json(record)
    assert (header.created_at, type(header.created_at)) == (4, int)


def test_the_id_must_be_the_one_it_is_addressed_by() -> None:
    assert header_from_json(FULL, expected_id="s-1") == HEADER
    with pytest.raises(HeaderError, match="addressed"):
        header_from_json(FULL, expected_id="s-2")


@pytest.mark.parametrize("cwd", ["/", "/a b", "C:\\x", "c:/x", "\\\\host\\share"])
def test_absolute_paths_of_every_platform(cwd: str) -> None:
    assert is_absolute(cwd)
    assert header_from_json({**MINIMAL, "cwd": cwd}).cwd == cwd


def test_disk_line() -> None:
    line = header_to_line(SessionHeader(id="s", created_at=1))
    assert line == b'{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0}'
    assert header_from_line(line) == SessionHeader(id="s", created_at=1, delegation_depth=0)
    assert header_from_line(header_to_line(HEADER), expected_id="s-1") == HEADER


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"version":0,"id":"s","createdAt":1,"delegationDepth":0}',
        b'{"type":"session","version":0,"id":"s","createdAt":1}',
        b'{"type":"event","version":0,"id":"s","createdAt":1,"delegationDepth":0}',
        b'{"type":"session","version":"0","id":"s","createdAt":1,"delegationDepth":0}',
        b'{"type":"session","version":0,"id":"s","createdAt":-0,"delegationDepth":0}',
        b'{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"sandboxMode":"x"}',
        b'{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"approvalPolicy":"x"}',
    ],
)
def test_corrupt_disk_lines(line: bytes) -> None:
    with pytest.raises(CorruptLog):
        header_from_line(line)


@pytest.mark.parametrize("version", [1, -1, 4.0, 99])
def test_another_version_is_refused_before_anything_else_is_looked_at(version: float) -> None:
    line = f'{{"type":"session","version":{version},"id":7,"sandboxMode":-0}}'.encode()
    with pytest.raises(UnsupportedFormat, match="newer version"):
        header_from_line(line)


CHANGES: dict[str, object] = {
    "version": 1,
    "id": "s-2",
    "created_at": 1,
    "cwd": None,
    "parent_session": None,
    "seed_length": None,
    "delegation_depth": None,
    "origin": None,
    "agent_preset": None,
}


@pytest.mark.parametrize(("field", "value"), CHANGES.items())
def test_compatibility(field: str, value: object) -> None:
    other = attrs.evolve(HEADER, **{field: value})  # type: ignore[arg-type]  # fields of several types
    soft = field in ("origin", "agent_preset")
    assert compatible(HEADER, other) is compatible(other, HEADER) is soft
    assert same_snapshot(HEADER, other) is (field == "origin")
    assert soft_mismatch(HEADER, other) == {"origin": ("origin",), "agent_preset": ("agentPreset",)}.get(
        field, ()
    )


def test_an_absent_depth_is_zero_and_an_absent_seed_is_only_absent() -> None:
    plain = SessionHeader(id="s", created_at=1)
    assert compatible(plain, attrs.evolve(plain, delegation_depth=0))
    assert same_snapshot(plain, attrs.evolve(plain, delegation_depth=0))
    assert not compatible(plain, attrs.evolve(plain, delegation_depth=1))
    assert not compatible(plain, attrs.evolve(plain, seed_length=0))
    assert not compatible(plain, attrs.evolve(plain, cwd=""))
