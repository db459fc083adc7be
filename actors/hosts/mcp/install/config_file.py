"""A configuration file that belongs to another program: read whole, changed in one step, with a backup."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs

from .edits import EditRefused

_MODE: Final = 0o600
"""Of a file that was not there: such files tend to hold keys."""
_BACKUPS_A_SECOND: Final = 100


@attrs.frozen
class ConfigFile:
    """One reading of a file. ``place`` is the file itself when ``path`` is a symbolic link to it.

    ``content`` is None when there is no file.
    """

    path: Path
    place: Path
    content: bytes | None

    @property
    def text(self) -> str:
        """The content; empty for no file. Raises: EditRefused: it is no UTF-8."""
        try:
            return (self.content or b"").decode("utf-8")
        except UnicodeDecodeError as exc:
            raise EditRefused(f"{self.path} is not UTF-8") from exc


def read_config(path: Path) -> ConfigFile:
    """Read ``path`` as it is now. Raises: EditRefused: it cannot be read, or is no file."""
    place = Path(os.path.realpath(path))
    try:
        return ConfigFile(path, place, place.read_bytes())
    except FileNotFoundError:
        return ConfigFile(path, place, None)
    except OSError as exc:
        raise EditRefused(f"{path} cannot be read: {exc.strerror}") from exc


def write_config(file: ConfigFile, text: str, now: datetime) -> Path | None:
    """Put ``text`` in the place of what was read; return the backup, None if there was no file.

    Written beside the file and moved over it, with its mode; the backup is complete before that. The program
    that owns the file may write it at any time: a change since it was read is not overwritten.
    Raises: EditRefused: it was changed since, or cannot be written; the file is as it was.
    """
    try:
        data = text.encode("utf-8")
        if read_config(file.path).content != file.content:
            raise EditRefused(f"{file.path} was changed meanwhile; run the command again")
        mode = _MODE if file.content is None else stat.S_IMODE(file.place.stat().st_mode)
        file.place.parent.mkdir(parents=True, exist_ok=True)
        backup = None if file.content is None else _back_up(file.place, file.content, mode, now)
        _replace(file.place, data, mode)
    except OSError as exc:
        raise EditRefused(f"{file.path} cannot be written: {exc.strerror}") from exc
    except UnicodeEncodeError as exc:
        raise EditRefused("a path that is not UTF-8 cannot be written into this file") from exc
    return backup


def _back_up(place: Path, content: bytes, mode: int, now: datetime) -> Path:
    stamp = now.strftime("%Y%m%d-%H%M%S")
    for number in range(_BACKUPS_A_SECOND):
        extra = f"-{number}" if number else ""
        backup = place.with_name(f"{place.name}.{stamp}{extra}.bak")
        try:
            handle = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        return backup
    raise EditRefused(f"{place} has been backed up too often in this second")


def _replace(place: Path, data: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
