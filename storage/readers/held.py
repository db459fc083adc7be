"""May a writer still hold a log? Only when none does is a log shown with its crash repaired (SPEC 16.6.6).

A test of the lock by taking it could make the writer's own attempt fail, so the kernel's list of locks
is read instead. Where there is no such list, or the writer keeps no lock file, the age of the log decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

QUIET_S: Final = 600
"""Unchanged for ten minutes: no writer, whatever a lock says."""
LOCK_NAME: Final = "session.lock"
_LOCKS: Final = Path("/proc/locks")


def writer_may_hold(log: Path, now_s: float, locks: Path = _LOCKS) -> bool:
    """True while a writer seems to hold ``log``: changed within ten minutes and its lock not known free.

    Args: now_s: seconds since the epoch. Raises: OSError: the log cannot be looked at.
    """
    if now_s - log.stat().st_mtime >= QUIET_S:
        return False
    return not _lock_is_free(log.parent / LOCK_NAME, locks)


def _lock_is_free(lock: Path, locks: Path) -> bool:
    """True only if the lock file is there and the kernel lists no lock on it."""
    try:
        found = lock.stat()
        lines = locks.read_text("ascii", "replace").splitlines()
    except OSError:
        return False
    # By inode number alone: layered file systems list another device than stat does, and taking a lock
    # on some other file for this one only makes a crash wait for its ten minutes.
    inode = f":{found.st_ino}"
    return not any(word.endswith(inode) for line in lines for word in line.split())
