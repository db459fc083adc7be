"""Linux tells of every change before the call that made it returns: asked at a search, nothing is late.

The kernel puts an event into the queue of an inotify descriptor within the ``write`` itself. Whoever reads
that queue just before a search knows of everything that was written before the search began, for a
microsecond and without a ``stat``. A library that collects events in a thread of its own and hands them on
after a pause (``watchfiles``, 50 to 400 ms) cannot be asked like that; it remains for other systems.

One descriptor watches every folder under the roots. A folder that appears is watched when that is heard, and
told as changed from then on until its watch stands, so that what came in between is found by a walk.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

MODIFY: Final = 0x2
ATTRIB: Final = 0x4
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
DELETE_SELF: Final = 0x400
MOVE_SELF: Final = 0x800
OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
ONLY_FOLDERS: Final = 0x01000000
NO_LINKS: Final = 0x02000000
IS_FOLDER: Final = 0x40000000

_CHANGES: Final = MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
_HEAD: Final = struct.Struct("iIII")
READ_BYTES: Final = 1 << 16
"""One read takes some thousand events; a queue holds 16,384 by default."""
READS_MAX: Final = 64
"""Writers that are faster than we read must not keep a search: what is left over is read next time."""
FOLLOW_MAX: Final = 64
"""Folders that appeared and are watched at once, a millisecond; a tree that moved in takes several turns."""


@attrs.frozen
class Heard:
    """What the queue told. ``overflow``: events were dropped, anything may have changed.

    ``behind``: the queue was not read to its end. ``lost``: a root was deleted or moved, its watch is over,
    whatever stands in its place now (a new folder may even have the old one's inode number).
    """

    paths: frozenset[str] = frozenset()
    overflow: bool = False
    behind: bool = False
    lost: bool = False


@attrs.define(eq=False)
class Inotify:
    """One queue over many folders. ``watch`` is called once, ``hear`` after it has returned.

    ``only``: of folders in ``flat`` nothing but these files, and what is named after them, is told.
    """

    descriptor: int
    _folders: dict[int, tuple[str, ...]] = attrs.field(factory=dict)
    _numbers: dict[str, int] = attrs.field(factory=dict)
    _flat: set[str] = attrs.field(factory=set)
    _only: tuple[str, ...] = ()
    _roots: frozenset[str] = frozenset()
    _lost: bool = False
    _overflow: bool = False
    _new: set[str] = attrs.field(factory=set)

    @property
    def folders(self) -> int:
        """How many folders are watched."""
        return len(self._folders)

    def watch(self, folders: Sequence[Path], files: Sequence[Path], stopped: Callable[[], bool]) -> None:
        """Watch folders with all that is in them, and single files through the folders they lie in.

        Raises: OSError: the system's limit of watches is reached, or a root cannot be watched.
        """
        self._only = tuple(os.fsdecode(file) for file in files)
        self._roots = frozenset(os.fsdecode(folder) for folder in folders)
        for folder in dict.fromkeys(file.parent for file in files):
            if self._add(str(folder), 0):
                self._flat.add(str(folder))
        for folder in folders:
            self._flat.discard(str(folder))
            self._tree(str(folder), stopped)

    def hear(self) -> Heard:
        """Everything that changed until now. Never waits.

        Raises: OSError: a folder that appeared cannot be watched, the system's limit is reached.
        """
        paths: set[str] = set()
        whole = self._read(paths)
        self._follow(paths)
        paths |= self._new  # not watched yet: whatever happens in them is not told
        return Heard(frozenset(paths), self._overflow, behind=not whole, lost=self._lost)

    def close(self) -> None:
        """Stop watching everything."""
        os.close(self.descriptor)

    def _read(self, paths: set[str]) -> bool:
        """Empty the queue; False if writers are faster."""
        self._overflow = False
        for _ in range(READS_MAX):
            try:
                data = os.read(self.descriptor, READ_BYTES)
            except BlockingIOError:
                return True
            for number, mask, name in _events(data):
                self._overflow |= not self._take(number, mask, name, paths)
        return False

    def _follow(self, paths: set[str]) -> None:
        """Watch folders that appeared, and tell them once their watch stands: they may hold something."""
        for _ in range(FOLLOW_MAX):
            if not self._new:
                return
            folder = self._new.pop()
            if self._add(folder, NO_LINKS):
                self._new.update(_folders_in(folder))
            paths.add(folder)

    def _take(self, number: int, mask: int, name: bytes, paths: set[str]) -> bool:
        """Note one event; False if nobody can say what it was about."""
        if mask & OVERFLOW:
            return False
        if mask & IGNORED:
            for folder in self._folders.pop(number, ()):
                if self._numbers.get(folder) == number:
                    del self._numbers[folder]
            return True
        folders = self._folders.get(number)
        if folders is None:
            return False  # nobody knows what
        for folder in folders:
            self._take_in(folder, mask, os.fsdecode(name), paths)
        return True

    def _take_in(self, folder: str, mask: int, name: str, paths: set[str]) -> None:
        path = os.path.join(folder, name) if name else folder
        self._lost |= bool(mask & (DELETE_SELF | MOVE_SELF)) and folder in self._roots
        flat = folder in self._flat
        if flat and not path.startswith(self._only):
            return
        paths.add(path)
        if mask & IS_FOLDER and name and not flat:
            if mask & (CREATE | MOVED_TO):
                self._new.add(path)
            elif mask & MOVED_FROM:
                self._leave(path)

    def _leave(self, folder: str) -> None:
        """A folder moved away: its watches would go on telling of it under its old name."""
        inside = folder + os.sep
        for path in [path for path in list(self._numbers) if path == folder or path.startswith(inside)]:
            _libc().inotify_rm_watch(self.descriptor, self._numbers.pop(path))
        self._new = {path for path in self._new if path != folder and not path.startswith(inside)}

    def _tree(self, top: str, stopped: Callable[[], bool]) -> None:
        """The watch of a folder is set before it is looked into: what appears meanwhile is told."""
        self._add(top, 0, required=True)
        stack = _folders_in(top)
        while stack and not stopped():
            folder = stack.pop()
            if self._add(folder, NO_LINKS):
                stack += _folders_in(folder)

    def _add(self, folder: str, flags: int, *, required: bool = False) -> bool:
        """False if the folder is gone or may not be entered. Raises: OSError: nothing more can be watched."""
        number = _libc().inotify_add_watch(
            self.descriptor, os.fsencode(folder), _CHANGES | ONLY_FOLDERS | flags
        )
        if number < 0:
            code = ctypes.get_errno()
            if not required and code in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
                return False
            raise OSError(code, f"{os.strerror(code)} while watching", folder)
        known = self._folders.get(number, ())
        if folder not in known:  # another spelling of the same folder: both are told
            self._folders[number] = (*known, folder)
        self._numbers[folder] = number
        return True


def open_inotify() -> Inotify | None:
    """A queue without any folder yet; None where the system has no such thing.

    Raises: OSError: the system's limit of queues is reached.
    """
    if not sys.platform.startswith("linux") or not hasattr(_libc(), "inotify_init1"):
        return None
    descriptor = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)} while opening a watch")
    return Inotify(descriptor)


def _events(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at + _HEAD.size <= len(data):
        number, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield number, mask, data[at : at + length].rstrip(b"\x00")
        at += length


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


_LIBC: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _LIBC:
        _LIBC.append(ctypes.CDLL(None, use_errno=True))
    return _LIBC[0]
