"""One form for the many spellings of a folder (SPEC 14 L8). Looks at the file system, so: in a thread.

Fails closed: where a folder is not there or cannot be looked at, only what the text itself says is evened
out (a trailing slash, a drive letter's case). Two spellings are one workspace only if both come to the same.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_DRIVE: Final = re.compile(r"[a-z]:[\\/]")
_WORKTREE: Final = re.compile(r"gitdir: (.+)[\\/]\.git[\\/]worktrees[\\/][^\\/]+\s*")
_GITDIR_BYTES_MAX: Final = 4096


def canonical(cwd: str) -> str:
    """The form that is compared. Never raises, whatever the text."""
    even = _even(cwd)
    try:
        path = Path(os.path.realpath(even, strict=True))
        return _repository(path) or _even(str(path))
    except (OSError, ValueError, UnicodeError):
        return even


def _even(cwd: str) -> str:
    """What the text alone says: no trailing slash, drive letters in upper case."""
    if _DRIVE.match(cwd):
        cwd = cwd[0].upper() + cwd[1:]
    stripped = cwd.rstrip("/\\") if len(cwd) > 3 else cwd
    return stripped or cwd


def _repository(path: Path) -> str | None:
    """The repository that a git worktree belongs to; None for any other folder."""
    marker = path / ".git"
    if not marker.is_file():
        return None
    with marker.open("rb") as file:
        text = os.fsdecode(file.read(_GITDIR_BYTES_MAX))
    found = _WORKTREE.fullmatch(text)
    return None if found is None else _even(os.path.realpath(found[1], strict=True))
