"""Finding the service of a data directory, and starting one when there is none.

Whoever holds the directory's lock is the service; everyone else connects to it. Any number of hosts may
start at once: each starts a service, the lock lets one of them live, and all wait for the address it
announces. A service started here outlives its host and ends itself when nobody has been connected for a
while.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import attrs
import trio

from ....storage.guard import FILE_MODE, create_private_directory
from ....storage.lock import LOCK_NAME, Holder, find_owner, read_holder

logger = logging.getLogger(__name__)

START_S: Final = 30.0
"""How long a service may take from nothing to its address; a big index is opened, not read, at the start."""
IDLE_EXIT_S: Final = 600.0
POLL_S: Final = 0.05
STARTS_MAX: Final = 5
"""Starts in one attempt. One may fail for a moment's reason: somebody looked whether the lock was free."""
LOG_NAME: Final = "service.log"
LOG_BYTES_MAX: Final = 1024 * 1024

# No console's Ctrl-C and no signal to the host's process group shall end a service that others use.
if sys.platform == "win32":
    _DETACHED: Final = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
else:
    _DETACHED: Final = 0


class ServiceUnavailable(Exception):
    """There is no service to talk to, and none could be started. The message is for a person."""


@attrs.define(eq=False)
class ServiceStarter:
    """Finds or starts the service of ``data_dir``. Owner: the link; one attempt at a time.

    ``idle_exit_s``: after how long without connections a service started here ends itself.
    """

    data_dir: Path
    idle_exit_s: float = IDLE_EXIT_S
    _child: subprocess.Popen[bytes] | None = attrs.field(default=None, init=False)
    _stale: Holder | None = attrs.field(default=None, init=False)

    async def find_or_start(self, until: float) -> str:
        """The address of the running service; of a new one if there is none.

        Args: until: the Trio time at which to give up.
        Raises: ServiceUnavailable: nothing announced an address by then, or starting failed again and again.
        """
        starts = 0
        try:
            while True:
                holder = await trio.to_thread.run_sync(self._look)
                if holder is not None and holder.url is not None:
                    return holder.url
                if holder is None:
                    if starts == STARTS_MAX:
                        raise ServiceUnavailable(f"the service does not start; see {self._log}")
                    starts += 1
                    await trio.to_thread.run_sync(self._start)
                if trio.current_time() >= until:
                    raise ServiceUnavailable(self._why(holder))
                await trio.sleep(POLL_S)
        finally:
            self._let_go()

    def _look(self) -> Holder | None:
        """Who holds the lock; a holder without address while our own child is still starting.

        Meanwhile the lock itself is not asked, which could take it from the child, but what its file says;
        that may still be the word of an owner who was killed.
        """
        lock = self.data_dir / LOCK_NAME
        if self._child is None or self._child.poll() is not None:
            return find_owner(lock)
        said = read_holder(lock)
        if said is None or said.url is None or said == self._stale:
            return Holder(pid=0)
        return find_owner(lock) or Holder(pid=0)

    @property
    def _log(self) -> Path:
        return self.data_dir / LOG_NAME

    def _let_go(self) -> None:
        """What was started lives on without us: nobody waits for it, nor is warned that it still runs."""
        child, self._child = self._child, None
        if child is not None and child.poll() is None:
            child.returncode = 0

    def _start(self) -> None:
        try:
            create_private_directory(self.data_dir)
            log = _open_log(self._log)
        except OSError as exc:
            raise ServiceUnavailable(f"{self.data_dir} cannot be used: {exc.strerror}") from exc
        self._stale = read_holder(self.data_dir / LOCK_NAME)
        try:
            self._child = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self.data_dir,
                creationflags=_DETACHED,
                start_new_session=True,
            )
        except OSError as exc:
            raise ServiceUnavailable(f"the service cannot be started: {exc.strerror}") from exc
        finally:
            os.close(log)
        logger.info("started a service for %s, process %d", self.data_dir, self._child.pid)

    def _command(self) -> list[str]:
        python = [sys.executable, "-P", "-m", "session_query.actors.hosts.cli"]
        return [*python, "--data-dir", str(self.data_dir), "serve", "--idle-exit", str(self.idle_exit_s)]

    def _why(self, holder: Holder | None) -> str:
        if holder is not None and holder.pid:
            return (
                f"{self.data_dir} is in use by process {holder.pid}, which offers no service; "
                "wait for it to end"
            )
        return f"the service did not start within {START_S:.0f} s; see {self._log}"


def _open_log(path: Path) -> int:
    """Its standard error goes here. A log that has grown is set aside, one generation."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_name(f"{path.name}.old"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
