"""A damaged index does not ruin the day: the next command builds it anew and answers (SPEC 6.12.7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import SAMPLE_SOURCES, CommandLine


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    return CommandLine(tmp_path / "data", capsys, monkeypatch)


def damage(data_dir: Path, first: int, count: int) -> None:
    with (data_dir / "index.db").open("r+b") as file:
        file.seek(first)
        file.write(b"\xff" * count)


def test_a_search_after_damage_finds_what_it_found_before(
    command: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    before = command("search", "--all", "checkout", *SAMPLE_SOURCES)
    assert before.status == 0, before.err
    damage(command.data_dir, 4096, 120_000)
    after = command("search", "--all", "checkout")
    assert (after.status, after.out) == (0, before.out)
    assert len(list(command.data_dir.glob("index.db.damaged-*"))) >= 1
    told = command("doctor")
    assert told.status == 0
    assert "a damaged one was set aside" in told.out
    caplog.clear()


def test_doctor_rebuilds_what_no_look_at_the_start_would_find(
    command: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    before = command("search", "--all", "checkout", *SAMPLE_SOURCES)
    size = (command.data_dir / "index.db").stat().st_size
    damage(command.data_dir, size - 40_000, 32_000)
    mended = command("doctor", "--rebuild")
    assert mended.status == 0, mended.out + mended.err
    assert command("search", "--all", "checkout").out == before.out
    caplog.clear()
