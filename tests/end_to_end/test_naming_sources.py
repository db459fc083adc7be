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


@pytest.mark.parametrize("running", [False, True], ids=["alone", "beside a service"])
def test_a_dropped_source_is_gone_now_and_later(cli: CommandLine, tmp_path: Path, running: bool) -> None:
    usual = tmp_path / USUAL
    shutil.copytree(LOGS, usual)
    named = f"codex={SAMPLES / 'codex'}"
    assert sources(cli) == ["claude-code"]
    assert sources(cli, f"--source={named}") == ["claude-code", "codex"]
    assert "claude-code" in cli("search", "--all", "50 items in the cart").out

    def drop_both() -> None:
        assert sources(cli, f"--drop=claude-code={usual}") == ["codex"]
        assert "claude-code" not in cli("search", "--all", "50 items in the cart").out
        assert sources(cli, f"--drop={named}") == []
        refused = cli("sources", f"--drop={named}")
        assert refused.status == 2
        assert "is no source here" in refused.err

    if running:
        with served(cli.data_dir):
            drop_both()
    else:
        drop_both()
    assert sources(cli) == [], "a usual place that was dropped is not found again"
    assert any(usual.iterdir()), "its logs are not touched"
    assert sources(cli, f"--source=claude-code={usual}") == ["claude-code"]
    assert "claude-code" in cli("search", "--all", "50 items in the cart").out
    known = load_list(cli.data_dir)
    assert known is not None
    assert [spec.format for spec in known.left_out] == ["codex"]


def test_a_folder_that_is_gone_can_be_dropped(cli: CommandLine, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES / "codex", logs)
    assert sources(cli, f"--source=codex={logs}") == ["codex"]
    shutil.rmtree(logs)
    assert sources(cli, f"--drop=codex={logs}") == []
