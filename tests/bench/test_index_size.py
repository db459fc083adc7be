"""The size on disk is weighed over real logs: all of the file, table by table."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from session_query.bench.engine.__main__ import main
from session_query.bench.engine.sizing import PARTS, Sizes, measure_sizes, sources_of
from session_query.storage.index.schema import FORMER_TABLES, INDEX_TABLES

SAMPLES = Path(__file__).parents[2] / "storage" / "samples"


def test_every_table_is_weighed_once_and_the_rest_is_bookkeeping(tmp_path: Path) -> None:
    sizes = measure_sizes(SAMPLES, tmp_path)
    assert sizes.sessions >= 3
    assert sizes.documents > sizes.sessions
    assert sizes.text_bytes > 1_000
    assert sizes.parts.keys() == PARTS.keys()
    assert {part for part, size in sizes.parts.items() if not size} == {"spans", "repeats"}  # made later
    assert 0 < sizes.file_bytes - sum(sizes.parts.values()) <= 8 * 4096
    assert sizes.index_ratio < sizes.file_ratio
    tables = [table for part in PARTS.values() for table in part]
    assert len(set(tables)) == len(tables)
    shadows = {name for name in INDEX_TABLES if name.startswith(("fts_", "span_"))}
    assert set(INDEX_TABLES) - shadows - {"index_meta", *FORMER_TABLES} <= set(tables)


def test_the_command_writes_a_table_and_fails_where_the_promise_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = main(["--size-of", str(SAMPLES), "--json", "--out", str(tmp_path), "--folder", str(tmp_path)])
    sizes = msgspec.json.decode(capsys.readouterr().out, type=Sizes)
    assert told == int(sizes.file_ratio > 0.85)
    written = (tmp_path / "size.md").read_text("utf-8")
    assert f"**{sizes.file_ratio:.3f}**" in written
    assert f"the text: {'MISS' if told else 'PASS'}." in written


def test_without_logs_nothing_is_measured_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--size-of", str(tmp_path / "none")]) == 2
    assert "nothing was measured" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no text"):
        measure_sizes(tmp_path, tmp_path)


def test_roots_are_the_folders_nearest_to_the_top(tmp_path: Path) -> None:
    for name in ("codex/codex/x", "others/claude-code/pi", "others/thing", "misc/codex"):
        (tmp_path / name).mkdir(parents=True)
    assert [(spec.format, spec.root.relative_to(tmp_path).as_posix()) for spec in sources_of(tmp_path)] == [
        ("codex", "codex"),
        ("claude-code", "others/claude-code"),
    ]
