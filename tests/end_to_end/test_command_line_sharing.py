"""Two commands on one data directory, and what a person reads when something stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from session_query.actors.hosts.cli import backend
from session_query.actors.hosts.cli.show import WORKSPACES_SHOWN, console, show_receipt
from session_query.storage.lock import acquire
from support.command_line import CommandLine
from support.hazard_formats import FORMATS
from support.hazards import mark


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)  # no log of whoever runs this is found
    monkeypatch.setenv("HOME", str(tmp_path))
    return CommandLine(tmp_path / "data", capsys, monkeypatch)


def test_a_command_waits_for_another_that_has_the_directory(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = acquire(cli.data_dir / "lock")
    waits = list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        held.release()

    with monkeypatch.context() as patched:
        patched.setattr(trio, "sleep", sleep)
        assert cli("sessions", "--all").status == 0
    assert waits[0] == backend.IN_USE_AGAIN_S


def test_a_directory_that_stays_in_use_is_told_without_advice_to_delete(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "IN_USE_S", 0.0)
    held = acquire(cli.data_dir / "lock")
    try:
        done = cli("sessions", "--all")
    finally:
        held.release()
    assert done.status == 4
    assert "in use by process" in done.err
    assert "deleted" not in done.err


def test_a_broken_journal_is_told_with_what_helps(cli: CommandLine) -> None:
    cli.data_dir.mkdir()
    (cli.data_dir / "journal.db").write_bytes(b"no database at all, but long enough to be looked at")
    done = cli("sessions", "--all")
    assert (done.status, done.out) == (4, "")
    assert "is refused and left as it is" in done.err
    assert "doctor" not in done.err, "doctor cannot open it either"


def test_many_workspaces_are_cut_to_a_few_and_the_damaged_ones_come_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [f"- /w/{number}: 1 session" for number in range(30)]
    lines[20] += ", 2 damaged records"
    show_receipt(console(), {"text": "\n".join(["Looked in 30 sessions, current.", *lines])})
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["Looked in 30 sessions, current.", lines[20], lines[0]]
    assert len(shown) == 2 + WORKSPACES_SHOWN
    assert shown[-1] == f"and {30 - WORKSPACES_SHOWN} more workspaces; --json lists all"


def test_damage_elsewhere_is_not_told_of_a_session_that_has_none(cli: CommandLine, tmp_path: Path) -> None:
    form = FORMATS["codex"]
    lines = [*form.head, form.line(0)]
    for name, end in (("whole", b"\n"), ("hurt", b'\n{"half\n')):
        log = tmp_path / "logs" / name / form.name
        log.parent.mkdir(parents=True)
        log.write_bytes(b"\n".join(lines).replace(b"beef", name[:4].encode().hex()[:4].encode()) + end)
    assert cli("index", f"--source=codex={tmp_path / 'logs'}").status == 0
    told = {}
    for hit in ("whole", "hurt"):
        session = f"0b1c2d3e-0000-4000-8000-00000000{hit[:4].encode().hex()[:4]}"
        told[hit] = "1 damaged record" in cli("events", session, mark(0)).out
    assert told == {"whole": False, "hurt": True}
