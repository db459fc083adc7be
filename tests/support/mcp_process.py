"""`session-query mcp` as a process of its own, and the services such processes start."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mcp import StdioServerParameters

from session_query.storage.lock import LOCK_NAME, Holder, find_owner
from support.command_line import SAMPLES

CLI = [sys.executable, "-m", "session_query.actors.hosts.cli"]
SAMPLE_LOGS = os.pathsep.join(f"{name}={SAMPLES / name}" for name in ("claude-code", "codex", "dsh"))
WEBSHOP = "/home/ada/webshop"
END_S = 30.0


def environ(logs: str = SAMPLE_LOGS) -> dict[str, str]:
    """The environment of a host on this machine, with the logs it shall find."""
    return {**os.environ, "SESSION_QUERY_SOURCES": logs}


def stdio(
    data_dir: Path, *arguments: str, logs: str = SAMPLE_LOGS, cwd: Path | None = None
) -> StdioServerParameters:
    """How the official client starts one."""
    words = [*CLI[1:], "mcp", "--data-dir", str(data_dir), "--idle-exit", "5", *arguments]
    return StdioServerParameters(command=CLI[0], args=words, env=environ(logs), cwd=cwd)


def holder(data_dir: Path) -> Holder | None:
    """Who serves the data directory now."""
    return find_owner(data_dir / LOCK_NAME)


@contextmanager
def data_dirs(*places: Path) -> Iterator[Sequence[Path]]:
    """Data directories whose services, started by whichever process, are ended with the block."""
    try:
        yield places
    finally:
        for place in places:
            end_service(place)


def end_service(data_dir: Path, how: signal.Signals = signal.SIGTERM) -> None:
    """End the directory's service, if there is one, and wait until the directory is free."""
    found = holder(data_dir)
    if found is None:
        return
    assert found.pid > 1, "it has not said who it is"
    os.kill(found.pid, how)
    wait_until_free(data_dir)


def wait_until_free(data_dir: Path) -> None:
    """Wait until nobody serves the directory any more."""
    until = time.monotonic() + END_S
    while (found := holder(data_dir)) is not None:
        assert time.monotonic() < until, f"process {found.pid} does not end"
        time.sleep(0.02)
