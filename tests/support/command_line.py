"""Runs the command line in this process: fast, and with the same entry point as the script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import pytest

import session_query
from session_query.actors.hosts.cli import main

SAMPLES = Path(session_query.__file__).parent / "storage" / "samples"
SAMPLE_SOURCES = [f"--source={name}={SAMPLES / name}" for name in ("claude-code", "codex", "dsh")]


@attrs.frozen
class Done:
    """One finished command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)


@attrs.frozen
class CommandLine:
    """Commands on one data directory."""

    data_dir: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str) -> Done:
        words = ["session-query", "--data-dir", str(self.data_dir), *arguments]
        self.monkeypatch.setattr(sys, "argv", words)
        status = 0
        try:
            main()
        except SystemExit as done:
            status = done.code if isinstance(done.code, int) else 0 if done.code is None else 1
        captured = self.capsys.readouterr()
        return Done(status, captured.out, captured.err)
