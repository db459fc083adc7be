"""A real `session-query serve` process of a test's own, on loopback, ended when the test ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import attrs

END_S = 30.0


@attrs.define
class Served:
    """A running service. ``token``: the operator's."""

    process: subprocess.Popen[str]
    url: str
    token_file: Path
    log: Path

    @property
    def token(self) -> str:
        return self.token_file.read_text("ascii").strip()

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        self.process.kill()
        self.process.wait(END_S)

    def terminate(self) -> int:
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S)


@contextmanager
def served(
    data_dir: Path, *arguments: str, sources: Sequence[str] = (), prelude: str = ""
) -> Iterator[Served]:
    """Serve ``data_dir`` on a free port; fails loudly with the log when it does not get ready.

    ``prelude``: code that the process runs first, to be limited by it.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir.parent / f"{data_dir.name}.log"
    run = f"{prelude}\nfrom session_query.actors.hosts.cli import main\nmain()"
    started = ["-c", run] if prelude else ["-m", "session_query.actors.hosts.cli"]
    command = [sys.executable, *started, "--data-dir", str(data_dir), "serve"]
    command += [*(f"--source={source}" for source in sources), *arguments]
    environ = os.environ | {"SESSION_QUERY_SOURCES": ""}
    with log.open("a") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environ)
        try:
            assert process.stdout is not None
            line = _first_line(process.stdout)
            assert line, f"the service did not start:\n{log.read_text()[-4000:]}"
            ready = json.loads(line)
            assert ready["type"] == "ready"
            assert ready["pid"] == process.pid
            yield Served(process, ready["url"], Path(ready["token_file"]), log)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(END_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _first_line(stream: IO[str]) -> str:
    """The first line, or nothing when it does not come in time."""
    found: list[str] = []
    reading = threading.Thread(target=lambda: found.append(stream.readline()), daemon=True)
    reading.start()
    reading.join(END_S)
    return found[0] if found else ""
