"""CONTRACT.md is true: every rule of SPEC.md has a row, and every test it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS / "CONTRACT.md").read_text("utf-8")
SPEC = (TESTS.parent / "protocol" / "SPEC.md").read_text("utf-8")

RULE = re.compile(r"^(?:#+|-) (\d+(?:\.\d+)*)[. ]", re.MULTILINE)
DECISION = re.compile(r"^\| (L\d+) \|", re.MULTILINE)
ROW = re.compile(r"^\| ([L\d.]+) \| (.+) \|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")
REASON_CHARS = 12

ROWS = ROW.findall(PAGE)


def test_every_rule_has_one_row_in_the_order_of_the_specification() -> None:
    assert [rule for rule, _ in ROWS if rule[0] != "L"] == RULE.findall(SPEC)
    assert [rule for rule, _ in ROWS if rule[0] == "L"] == DECISION.findall(SPEC)
    assert len(ROWS) > 300


@pytest.mark.parametrize(("rule", "cell"), ROWS, ids=[rule for rule, _ in ROWS])
def test_a_row_names_tests_that_are_there_or_says_why_none_is(rule: str, cell: str) -> None:
    named = NAMED.findall(cell)
    assert named or (cell.startswith("– ") and len(cell) > REASON_CHARS)
    assert cell.startswith("– ") or NAMED.sub("", cell).strip(" ·") == "", "nothing else stands in a row"
    for path, test in named:
        text = (TESTS / path).read_text("utf-8")
        assert f"def {test or 'test_'}" in text
        assert not test or re.search(rf"def {test}\(", text), test


def test_few_rules_go_without_a_test() -> None:
    without = [rule for rule, cell in ROWS if not NAMED.search(cell) and "below" not in cell]
    assert len(without) <= 8, without
