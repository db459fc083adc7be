"""One process owns a data directory (SPEC 6.12.6, 14 L27).

The lock is the operating system's, on an open file: it ends with its process, however that ends. What
the file says (process id, address of the service) is for people and for the command line, which then
talks to the owner instead of failing; it is never what decides.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import sys
import time
from pathlib import Path
from typing import Final

import attrs
import msgspec

from ..protocol.errors import Code, QueryError
from .guard import FILE_MODE, create_private_directory

logger = logging.getLogger(__name__)

LOCK_NAME: Final = "lock"
CONTENT_MAX_BYTES: Final = 4096
AGAIN_S: Final = 0.25
"""So long a taken lock is asked for again: whoever looks who owns it (``find_owner``) holds it for the look,
and an owner of this very moment has not said yet who it is."""
AGAIN_EVERY_S: Final = 0.01
WINDOWS_LOCK_OFFSET: Final = 1 << 30
"""Windows locks are mandatory: the locked byte lies far behind the text, which stays readable."""
UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})


class Holder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who owns the directory, in its own words. ``url``: where its service listens, if it does."""

    pid: int
    host: str = ""
    url: str | None = None


class DataDirectoryLocked(QueryError):
    """Another engine, in this process or another, owns the data directory; nobody is at fault.

    ``holder`` is None when the owner has not said who it is (it is just starting).
    """

    def __init__(self, path: Path, holder: Holder | None) -> None:
        who = "another process" if holder is None else f"process {holder.pid} on {holder.host}"
        where = f", serving at {holder.url}" if holder is not None and holder.url else ""
        super().__init__(Code.INDEX_FAILED, f"{path.parent} is in use by {who}{where}")
        self.holder = holder


@attrs.define(eq=False)
class DataLock:
    """A held lock. Owner: whoever opened the store. ``previous``: an owner that never released it."""

    path: Path
    previous: Holder | None
    _handle: int | None
    _url: str | None = None

    def announce(self, url: str) -> None:
        """Say where the service listens, for others that find the directory locked."""
        self._url = url
        self._write(Holder(pid=os.getpid(), host=socket.gethostname(), url=url))

    def release(self) -> None:
        """Give the directory up. Idempotent. The file stays: removing it would race with the next owner."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        os.ftruncate(handle, 0)
        os.close(handle)

    def _write(self, holder: Holder) -> None:
        if self._handle is None:
            return
        content = msgspec.json.encode(holder)
        os.lseek(self._handle, 0, os.SEEK_SET)
        os.write(self._handle, content)
        os.ftruncate(self._handle, len(content))


def acquire(path: Path) -> DataLock:
    """Take the lock file at ``path`` (made with mode 0600, directories with 0700) or fail within ``AGAIN_S``.

    A dead owner's lock is free. Where the file system knows no locks, the owner's process id decides.
    Raises: DataDirectoryLocked; QueryError INDEX_FAILED when the file cannot be made or opened.
    """
    try:
        create_private_directory(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError as exc:
        raise QueryError(Code.INDEX_FAILED, f"{path} cannot be opened: {exc}") from exc
    try:
        until_s = time.monotonic() + AGAIN_S
        while not _lock(handle, read_holder(path)):
            if time.monotonic() >= until_s:
                raise DataDirectoryLocked(path, read_holder(path))
            time.sleep(AGAIN_EVERY_S)
        previous = read_holder(path)
        lock = DataLock(path, previous, handle)
        lock._write(Holder(pid=os.getpid(), host=socket.gethostname()))
    except BaseException:
        os.close(handle)
        raise
    if previous is not None:
        logger.warning("the last owner of %s (process %d) did not close it", path.parent, previous.pid)
    return lock


def read_holder(path: Path) -> Holder | None:
    """What the lock file says, without taking it; None if nobody says anything. It may be out of date."""
    try:
        with path.open("rb") as file:
            return _parse(file.read(CONTENT_MAX_BYTES))
    except OSError:
        return None


def find_owner(path: Path) -> Holder | None:
    """The living owner of the lock at ``path``, or None if it is free (or not there).

    For a command line that would rather talk to a running service than open the store itself. ``pid`` is 0
    when the owner has not said who it is.
    """
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        holder = _parse(os.read(handle, CONTENT_MAX_BYTES))
        return None if _lock(handle, holder) else holder or Holder(pid=0)
    finally:
        os.close(handle)


def _parse(content: bytes) -> Holder | None:
    with contextlib.suppress(msgspec.DecodeError):  # being written, or not ours: says nothing
        return msgspec.json.decode(content, type=Holder)
    return None


def _lock(handle: int, previous: Holder | None) -> bool:
    try:
        _lock_file(handle)
    except OSError as exc:
        if exc.errno in UNSUPPORTED:
            return previous is None or not _alive(previous)
        if exc.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}:
            return False
        raise QueryError(Code.INDEX_FAILED, f"the data directory cannot be locked: {exc}") from exc
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock_file(handle: int) -> None:
        os.lseek(handle, WINDOWS_LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock_file(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _alive(holder: Holder) -> bool:
    """Whether the holder may still run; a holder on another machine may. Only where locks are missing."""
    if holder.host != socket.gethostname():
        return True
    if holder.pid == os.getpid():
        return True
    if sys.platform == "win32":  # os.kill would end the process there
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
