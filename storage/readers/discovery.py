"""Find logs under a root by names and stat alone, in a stable order, whatever lies there.

Roots are folders other programs write: there may be links that loop, pipes that block, folders with a
log's name, names that are no UTF-8, and folders we may not enter. None of it stops the walk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from .seam import LogUnit, SkippedPath

DEPTH_MAX: Final = 32


def _any(_: str) -> bool:
    return True


def walk(
    root: Path, wanted: Callable[[str], bool], entered: Callable[[str], bool] = _any
) -> Iterator[Path | SkippedPath]:
    """Yield every regular file under ``root`` whose name is ``wanted``, folders in name order.

    Folders below ``root`` whose name is not ``entered`` are passed over.

    ``root`` may be one log file: it is yielded whatever its name. Symbolic links below ``root`` are
    not followed (they loop, and they lead out of what was named); those that look like logs, and what
    else has a log's name and is none, come as ``SkippedPath``. A root that is not there yields nothing.
    """
    try:
        mode = root.stat().st_mode
    except OSError as exc:
        if not isinstance(exc, FileNotFoundError):
            yield SkippedPath(path=root, reason=f"cannot be read: {exc.strerror}")
        return
    if stat.S_ISREG(mode):
        yield root
    elif stat.S_ISDIR(mode):
        yield from _walk_folder(root, wanted, entered)
    else:
        yield SkippedPath(path=root, reason="neither a file nor a folder")


def _walk_folder(
    root: Path, wanted: Callable[[str], bool], entered: Callable[[str], bool]
) -> Iterator[Path | SkippedPath]:
    stack = [(root, 0)]
    while stack:
        folder, depth = stack.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as exc:
            yield SkippedPath(path=folder, reason=f"cannot be read: {exc.strerror}")
            continue
        folders: list[tuple[Path, int]] = []
        for entry in found:
            reason = _kind(entry)
            if reason == "a folder" and depth < DEPTH_MAX and entered(entry.name):
                folders.append((folder / entry.name, depth + 1))
            if wanted(entry.name):
                path = folder / entry.name
                yield path if reason is None else SkippedPath(path=path, reason=reason)
        stack.extend(reversed(folders))


def _kind(entry: os.DirEntry[str]) -> str | None:
    """What an entry is instead of a regular file; None if it is one."""
    try:
        if entry.is_symlink():
            return "a symbolic link"
        if entry.is_dir(follow_symlinks=False):
            return "a folder"
        return None if entry.is_file(follow_symlinks=False) else "not a regular file"
    except OSError as exc:
        return f"cannot be read: {exc.strerror}"


def one_file(format_name: str, root: Path, path: Path, *beside: Path) -> LogUnit:
    """The unit of a log that is one file; files ``beside`` it move its revision too."""
    return LogUnit(
        format=format_name, root=root, path=path, place=place_of(root, path), files=(path, *beside)
    )


def place_of(root: Path, path: Path) -> str:
    """The folder of ``path`` relative to ``root``, with ``/``; empty for the root itself or a file named."""
    name, top = str(path), str(root)
    return "" if name == top else _folder_place(top, os.path.dirname(name))


@lru_cache(maxsize=64)
def _folder_place(root: str, folder: str) -> str:
    """Logs of one folder come one after the other, so this is worked out once a folder."""
    relative = Path(folder).relative_to(root).as_posix()
    return "" if relative == "." else printable(relative)


def printable(text: str | Path) -> str:
    r"""A name as text that any store takes: bytes that are no UTF-8 become ``\xNN``."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")
