"""Run code in a child process, watch what it acknowledges, and kill it at some moment."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

ROUNDS = int(os.environ.get("SESSION_QUERY_KILL_ROUNDS", "3"))
"""How often each kill test runs its round; 50 for a thorough run."""


def run_and_kill(code: str, lines_before_kill: int, *, delay_s: float = 0.0) -> tuple[list[str], bool]:
    """Run ``code`` in a child until it has printed so many lines, wait ``delay_s``, then kill -9 it.

    Returns: every whole line it printed, and True if it was killed (False: it had ended by itself).
    """
    prelude = f"import sys\nsys.path[:0] = {sys.path!r}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    lines: list[str] = []
    killed = False
    for line in process.stdout:
        if line.endswith("\n"):
            lines.append(line.rstrip("\n"))
        if len(lines) == lines_before_kill and not killed:
            killed = True
            _later(delay_s, process.kill)
    status = process.wait()
    errors = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert status in {0, -9}, errors
    return lines, status == -9


def _later(delay_s: float, action: Callable[[], None]) -> None:
    if delay_s:
        timer = threading.Timer(delay_s, action)
        timer.daemon = True
        timer.start()
    else:
        action()
