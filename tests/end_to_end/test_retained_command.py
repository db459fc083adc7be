"""`session-query retained`: a deleted log is had back byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_query.storage.sources.spec import SourceList, SourceSpec, save_list
from support.command_line import SAMPLES, CommandLine


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.delenv("SESSION_QUERY_SOURCES", raising=False)
    shutil.copytree(SAMPLES / "claude-code", tmp_path / "logs")
    named = SourceSpec(format="claude-code", root=tmp_path / "logs", retain=True)
    save_list(tmp_path / "data", SourceList((named,)))
    return CommandLine(tmp_path / "data", capsys, monkeypatch)


def test_deleted_logs_come_back(command: CommandLine, tmp_path: Path) -> None:
    assert command("index").status == 0
    logs = {
        path.relative_to(tmp_path / "logs"): path.read_bytes()
        for path in (tmp_path / "logs").rglob("*.jsonl")
    }
    assert logs
    shutil.rmtree(tmp_path / "logs")
    listed = command("retained", "list")
    assert f"{len(logs)} logs" in listed.out
    done = command("retained", "export", "--all", str(tmp_path / "back"))
    assert done.status == 0, done.err
    back = tmp_path / "back/claude-code"
    assert {path.relative_to(back): path.read_bytes() for path in back.rglob("*.jsonl")} == logs
    again = command("retained", "export", "--all", str(tmp_path / "back"))
    assert again.status == 3
    assert "there already" in again.out


def test_one_session_by_its_id(command: CommandLine, tmp_path: Path) -> None:
    command("index")
    logs = sorted((tmp_path / "logs").rglob("*.jsonl"))
    log = next(log for log in logs if not log.stem.startswith("agent-"))
    for name in (log.stem, f"claude-code:{log.stem}"):
        done = command("retained", "export", name, str(tmp_path / name.replace(":", "-")), "--json")
        assert done.status == 0, done.err
        (path,) = (tmp_path / name.replace(":", "-")).rglob("*.jsonl")
        assert path.read_bytes() == log.read_bytes()
    assert command("retained", "export", "nobody", str(tmp_path / "x")).status == 3
    assert command("retained", "export", "only-one-argument").status == 2
