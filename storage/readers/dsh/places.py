"""Where dsh keeps its logs, and what the names of its folders and files say (SPEC 1.8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_ESCAPE: Final = re.compile("~([0-9A-F]{4})")
_GENERATION: Final = re.compile(r"session(?:\.v([1-9][0-9]{0,8}))?\.jsonl(\.zstd)?")
_KEY_MAX: Final = 251


def usual_places(environ: Mapping[str, str], home: Path) -> list[Path]:
    """``$DSH_HOME/sessions``, by default ``~/.dsh/sessions``."""
    named = environ.get("DSH_HOME")
    return [(Path(named) if named else home / ".dsh") / "sessions"]


def is_log_name(name: str) -> bool:
    """True for any plain or zstd JSONL: exported and hand-kept logs are read wherever they lie."""
    return name.endswith((".jsonl", ".jsonl.zstd"))


def generation_of(name: str) -> tuple[int, bool] | None:
    """The format generation a file name of the usual layout tells, and whether it is zstd; else None."""
    match = _GENERATION.fullmatch(name)
    return None if match is None else (int(match.group(1) or 0), match.group(2) is not None)


def encode_id(session_id: str) -> str:
    """The folder name of a session id (SPEC 1.8.3). Raises: ValueError: an empty id has none."""
    if not session_id:
        raise ValueError("an empty id cannot be stored")
    if session_id in (".", ".."):
        return "~002E" * len(session_id)
    return "".join(unit if unit in _PLAIN else f"~{ord(unit):04X}" for unit in _units(session_id))


def decode_id(folder: str) -> str:
    """The session id that a folder name stands for; lone surrogates come back as U+FFFD."""
    units = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), folder)
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def project_key(cwd: str) -> str:
    """The folder name of a working directory (SPEC 1.8.2). Lossy: the header's ``cwd`` is the authority."""
    readable = "".join(
        "-" if unit in "/\\:" else unit if unit in _PLAIN else f"~{ord(unit):04X}"
        for unit in _units(re.sub(r"[/\\:]+", "-", cwd))
    )
    return f"--{(readable.lstrip('-') or 'root')[:_KEY_MAX]}--"


def _units(text: str) -> str:
    """``text`` as its UTF-16 units, one character each."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(raw[at] | raw[at + 1] << 8) for at in range(0, len(raw), 2))
