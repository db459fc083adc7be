"""The engine bench runs from build to report, its comparison finds what ours finds, its verdicts add up."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from session_query.bench.engine.__main__ import SIZES, main
from session_query.bench.engine.building import build
from session_query.bench.engine.corpus import Corpus
from session_query.bench.engine.queries import SHARES, floor
from session_query.bench.engine.results import Check, Result, Row, percentile, single, spread
from session_query.storage.index import Reach, SearchSpec

EVENTS = 3_000
OPERATIONS = {
    "first build", "index on disk over text", "exact top 20", "exact top 20, asked once each",
    "all tiers, ten-word sentence",
    "in 1 % of sessions", "in 10 % of sessions", "two reader threads over one", "cancel to quiet",
    "append, index part", "merge off the append path", "append by session length", "peak memory",
}  # fmt: skip


@pytest.mark.slow
def test_the_comparison_and_the_floor_find_what_ours_finds(tmp_path: Path) -> None:
    with closing(build(tmp_path, 2_000)) as bench:
        for query in SHARES.values():
            with bench.reader.snapshot():
                found = bench.reader.search_sessions(SearchSpec(query=query, limit=50), Reach())
            rows = bench.comparison.search(query, 50)
            assert [(hit.session.key.id, hit.best.seq) for hit in found.hits] == [row[:2] for row in rows]
            assert (len(floor(bench, query)()) > 0) == bool(rows)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, str]:
    out = tmp_path_factory.mktemp("engine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, "10k", EVENTS)
        assert main(["--events", "10k", "--quick", "--out", str(out), "--folder", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["engine-10k.json", "engine-10k.md"]
    result = msgspec.json.decode((out / "engine-10k.json").read_bytes(), type=Result)
    return result, (out / "engine-10k.md").read_text("utf-8")


@pytest.mark.slow
def test_one_command_measures_everything(measured: tuple[Result, str]) -> None:
    result, text = measured
    inside = [row for row in result.rows if row.operation.startswith("in one session of ")]
    assert {row.operation for row in result.rows} - {row.operation for row in inside} == OPERATIONS
    assert len(inside) == len(SHARES) + 1
    assert result.events == EVENTS
    for row in result.rows:
        assert 0 < row.ours.low <= row.ours.median <= row.ours.high, row.name
    for row in result.missed():
        assert f"- {row.name}: " in text
    held = sum(bool(row.gate) and row.gate_held for row in result.rows)
    assert f"Gates: {held} of {sum(bool(row.gate) for row in result.rows)} held." in text


@pytest.mark.slow
def test_a_result_is_drawn_as_three_pictures(measured: tuple[Result, str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from session_query.bench.engine.plots import draw

    made = draw([measured[0]], tmp_path)
    assert [path.read_bytes()[:4] for path in made] == [b"\x89PNG"] * 3


def test_a_corpus_is_the_same_every_time() -> None:
    first, again = ([s.documents for s in Corpus(300).sessions()] for _ in range(2))
    assert first == again
    assert sum(map(len, first)) == 300


def test_a_row_holds_only_if_every_gate_does() -> None:
    row = Row(operation="a", case="b", ours=single(1), gate=(Check("x", True), Check("y", False)))
    assert not row.gate_held
    assert Row(operation="a", case="b", ours=single(1)).gate_held
    assert spread([3, 1, 2]).median == 2
    assert percentile(range(100), 0.99) == 99
