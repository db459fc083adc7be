"""The service bench runs, case by case, at the smallest scale; what it measures there means nothing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from session_query.bench.service.__main__ import CASES, run_cases
from session_query.bench.service.measuring import SMOKE, Row, Spread, percentile, ratios
from session_query.bench.service.report import as_json, as_markdown, cells, number

SCALE = attrs.evolve(SMOKE, soak_s=0.5, minute_s=0.5, load_s=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
async def test_every_case_gives_rows(case: str, tmp_path: Path) -> None:
    rows = await run_cases([case], SCALE, tmp_path)
    assert rows
    for row in rows:
        for spread in (row.ours, row.floor, row.ratio):
            assert spread is None or (math.isfinite(spread.median) and spread.median >= 0)
    assert os.listdir(tmp_path) == [], "nothing is left behind"
    errors = [row for row in rows if row.what in {"errors", "acknowledged events lost"}]
    assert all(row.holds for row in errors)


@pytest.mark.slow
def test_the_command_prints_json_and_knows_its_cases(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "session_query.bench.service", "--smoke", "--json", "start"]
    command += ["--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    told = json.loads(done.stdout)
    assert told["scale"] == "smoke"
    assert {row["case"] for row in told["rows"]} == {"start"}
    assert done.returncode == int(any(row["holds"] is False for row in told["rows"]))
    kept = json.loads((tmp_path / "service-smoke-start.json").read_text("utf-8"))
    assert kept == told
    assert {"date", "commit", "cores", "sqlite", "load_1min", "load_after"} <= kept["machine"].keys()
    assert kept["machine"]["date"] in (tmp_path / "service-smoke-start.md").read_text("utf-8")
    done = subprocess.run([*command[:3], "nonsense"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no such case" in done.stderr


def test_a_gate_holds_for_the_ratio_where_there_is_one() -> None:
    one = Spread(2.0, 1.0, 3.0)
    row = Row(case="c", what="w", unit="ms", ours=one, gate=1.5)
    assert row.holds is False
    assert attrs.evolve(row, ratio=Spread(1.5, 1.0, 9.0)).holds is True
    assert attrs.evolve(row, bound="at least").holds is True
    assert attrs.evolve(row, gate=None).holds is None


def test_numbers_for_people() -> None:
    assert [number(value) for value in (0, 0.00012, 0.1234, 12.345, 1234.5)] == [
        "0", "0.00012", "0.123", "12.3", "1,234",
    ]  # fmt: skip
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([], 0.5) == 0
    assert ratios([2.0, 9.0], [1.0, 3.0]) == Spread(2.5, 2.0, 3.0)
    row = Row(case="c", what="a | b", unit="ms", ours=Spread(1, 1, 2), ratio=Spread(1, 1, 1), gate=1.5)
    assert cells(row)[6:8] == ["≤ 1.5×", "holds"]
    page = as_markdown([row, attrs.evolve(row, gate=0.5, what="slow")], "full")
    assert "a \\| b" in page
    assert "Gates: 1 of 2 held.\n- missed: c, slow: 1\n" in page
    assert isinstance(as_json([row], "full"), dict)
