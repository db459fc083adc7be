"""SPEC.md is what the code cites and what its closed tables say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from session_query.protocol.documents import TOOL_NAMES
from session_query.protocol.errors import Code, ToolCode
from session_query.protocol.event_types import CORE_TYPES, EXTENSION_TYPES, RETIRED_TYPES
from session_query.protocol.surface import SURFACE_TYPES
from session_query.protocol.wire.codes import WireCode

ROOT = Path(__file__).resolve().parents[2]
SPEC = (ROOT / "protocol" / "SPEC.md").read_text()
FLAGS = re.MULTILINE | re.DOTALL
CITATION = re.compile(r"SPEC (\d+(?:\.\d+)*(?:(?:, | and )\d+\.\d+(?:\.\d+)*)*)")
ROOMS = ("protocol", "storage", "actors", "bench", "tests")


def rules() -> set[str]:
    """Every number that can be cited: headings, rules, and the steps of numbered lists inside them."""
    found: set[str] = set()
    current = ""
    for line in SPEC.splitlines():
        if named := re.match(r"(?:#+|-) (\d+(?:\.\d+)*)[. ]", line):
            current = named[1]
            found.add(current)
        elif step := re.match(r" *(\d+)\. ", line):
            found.add(f"{current}.{step[1]}")
    return found


RULES = rules()


def section(number: str) -> str:
    """The text of one section or rule."""
    level = "##" if "." not in number else "###"
    found = re.search(
        rf"^{level} {re.escape(number)}\.? .*?(?=^{level} |^## |\Z)", SPEC, re.MULTILINE | re.DOTALL
    )
    assert found is not None, number
    return found[0]


def codes(text: str) -> list[str]:
    """The first column of a table of codes."""
    return re.findall(r"^\| `([A-Z_]+)` \|", text, re.MULTILINE)


def cited() -> list[tuple[str, str]]:
    """(file, number) of every citation in the repository."""
    found: set[tuple[str, str]] = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*"):
            if path.suffix in (".py", ".md") and path.name != "test_spec.py":
                for match in re.finditer(
                    r"SPEC (\d+(?:\.\d+)*(?:(?:, | and )\d+\.\d+(?:\.\d+)*)*)", path.read_text()
                ):
                    numbers = re.findall(r"\d+(?:\.\d+)*", match[1])
                    found.update((str(path.relative_to(ROOT)), number) for number in numbers)
    return sorted(found)


def test_sections_0_to_18_are_there() -> None:
    assert {str(number) for number in range(19)} <= RULES
    assert len(RULES) > 250


def test_every_cited_rule_exists() -> None:
    citations = cited()
    assert len(citations) > 100
    assert [(file, number) for file, number in citations if number not in RULES] == []


def test_code_tables() -> None:
    listed = codes(section("13"))
    assert listed[:17] == [code.value for code in sorted(Code, key=lambda code: listed.index(code.value))]
    assert set(listed) == {code.value for code in Code} | {code.value for code in ToolCode}
    assert set(codes(section("16.13"))) == {code.value for code in WireCode}


def test_event_type_tables() -> None:
    core = re.findall(r"^\| `([a-z/-]+)` \| (yes|no) \|", section("1.4"), re.MULTILINE)
    assert {type_ for type_, _ in core} == CORE_TYPES
    assert {type_ for type_, surface in core if surface == "yes"} == SURFACE_TYPES
    extensions = re.search(r"- 1\.5\.2 .*?(?=^- 1\.5\.3)", SPEC, FLAGS)
    assert extensions is not None
    assert set(re.findall(r"`([^`]+)`", extensions[0])) == EXTENSION_TYPES
    assert all(f"`{type_}`" in SPEC for type_ in RETIRED_TYPES)


def test_tools_in_registry_order() -> None:
    assert tuple(re.findall(r"^\| `(session_[a-z_]+)` \|", section("10.1"), re.MULTILINE)) == TOOL_NAMES


@pytest.mark.parametrize("rules", [[f"E{n}" for n in range(1, 19)], [f"L{n}" for n in range(1, 41)]])
def test_numbered_tables_are_complete(rules: list[str]) -> None:
    assert re.findall(rf"^\| ({rules[0][0]}\d+) \|", SPEC, re.MULTILINE) == rules
