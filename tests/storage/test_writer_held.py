"""When a log counts as given up by its writer (SPEC 16.6.6)."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from session_query.storage.readers.held import LOCK_NAME, QUIET_S, writer_may_hold

NOW = 1_790_000_000.0


def make(tmp_path: Path, *, age_s: float, lock: bool) -> Path:
    log = tmp_path / "session.jsonl"
    log.write_bytes(b"{}\n")
    os.utime(log, (NOW - age_s, NOW - age_s))
    if lock:
        (tmp_path / LOCK_NAME).write_bytes(b"")
    return log


@pytest.mark.parametrize(
    ("age_s", "held"), [(0, True), (QUIET_S - 1, True), (QUIET_S, False), (10**6, False)]
)
def test_without_a_lock_file_the_age_decides(tmp_path: Path, age_s: float, held: bool) -> None:
    assert writer_may_hold(make(tmp_path, age_s=age_s, lock=False), NOW) is held


def test_a_lock_that_the_kernel_lists_holds_until_the_log_is_quiet(tmp_path: Path) -> None:
    log = make(tmp_path, age_s=5, lock=True)
    inode = (tmp_path / LOCK_NAME).stat().st_ino
    locks = tmp_path / "locks"
    locks.write_text(f"1: FLOCK  ADVISORY  WRITE 20875 fe:00:{inode} 0 EOF\n")
    assert writer_may_hold(log, NOW, locks) is True
    assert writer_may_hold(log, NOW + QUIET_S, locks) is False
    locks.write_text(f"1: FLOCK  ADVISORY  WRITE 20875 fe:00:{inode}0 0 EOF\n")
    assert writer_may_hold(log, NOW, locks) is False


def test_without_a_list_of_locks_the_age_decides(tmp_path: Path) -> None:
    log = make(tmp_path, age_s=5, lock=True)
    assert writer_may_hold(log, NOW, tmp_path / "none") is True


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system lists no locks")
def test_a_real_lock_is_seen_and_not_disturbed(tmp_path: Path) -> None:
    log = make(tmp_path, age_s=5, lock=True)
    with (tmp_path / LOCK_NAME).open("rb") as lock:
        assert writer_may_hold(log, NOW) is False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert writer_may_hold(log, NOW) is True
