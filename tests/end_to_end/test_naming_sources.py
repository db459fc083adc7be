"""Naming a source adds to the usual places, unless the first logs of a data directory were named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_query.storage.sources.spec import load_list
from support.command_line import SAMPLES, CommandLine
from support.served import served

USUAL = Path(".claude/projects")
LOGS = SAMPLES / "claude-code"


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return CommandLine(tmp_path / "data", capsys, monkeypatch)


def sources(cli: CommandLine, *words: str) -> list[str]:
    """The formats of the sources that are read, in order."""
    done = cli("--json", "sources", *words)
    assert done.status == 0, done.err
    told = done.json
    assert isinstance(told, dict)
    return [entry["format"] for entry in told["sources"]]


def test_usual_places_go_on_being_read_beside_a_named_source(cli: CommandLine, tmp_path: Path) -> None:
    usual = tmp_path / USUAL
    usual.mkdir(parents=True)
    assert sources(cli) == ["claude-code"]
    assert sources(cli, f"--source=codex={SAMPLES / 'codex'}") == ["claude-code", "codex"]
    shutil.copytree(LOGS, usual, dirs_exist_ok=True)
    found = cli("search", "--all", "50 items in the cart")
    assert "claude-code" in found.out, "a log that came after the source was named"


def test_a_directory_whose_first_logs_were_named_reads_named_ones_alone(
    cli: CommandLine, tmp_path: Path
) -> None:
    shutil.copytree(LOGS, tmp_path / USUAL)
    assert sources(cli, f"--source=codex={SAMPLES / 'codex'}") == ["codex"]
    assert sources(cli, f"--source=dsh={SAMPLES / 'dsh'}") == ["codex", "dsh"]


def test_a_source_named_to_a_running_service_is_read_by_the_next_one(cli: CommandLine) -> None:
    with served(cli.data_dir):
        assert "codex" in sources(cli, f"--source=codex={SAMPLES / 'codex'}")
    known = load_list(cli.data_dir)
    assert known is not None
    assert [spec.format for spec in known.named] == ["codex"]
    assert known.usual_places
