"""Where Claude Code keeps its transcripts, and which files of a root are some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ....protocol.json_value import JSON
from ..discovery import one_file, printable, walk
from ..seam import LogUnit, SkippedPath
from .fields import string
from .mapper import Beside
from .records import FORMAT

_META_MAX_BYTES: Final = 65_536
_NOT_LOGS: Final = {
    "journal.jsonl": "a workflow's journal; the agents' own logs hold what it repeats",
    "history.jsonl": "prompts only; the transcripts hold them",
}
_SPILLED: Final = "tool-results"
"""Outputs too large for the transcript, which names them; not read."""


def usual_places(environ: Mapping[str, str], home: Path) -> list[Path]:
    """``$CLAUDE_CONFIG_DIR`` takes the place of both usual folders, which newer versions may both use."""
    named = environ.get("CLAUDE_CONFIG_DIR")
    if named:
        return [Path(named) / "projects"]
    return [home / ".claude" / "projects", home / ".config" / "claude" / "projects"]


def units(root: Path) -> Iterator[LogUnit | SkippedPath]:
    """Every ``.jsonl`` under ``root``; ``root`` itself may be one log, or a JSON export of one."""
    for found in walk(root, lambda name: name.endswith(".jsonl"), lambda name: name != _SPILLED):
        if isinstance(found, SkippedPath):
            yield found
        elif found != root and found.name in _NOT_LOGS:
            yield SkippedPath(path=found, reason=_NOT_LOGS[found.name])
        else:
            beside = [_meta_path(found)] if _is_agent(found) else []
            yield one_file(FORMAT, root, found, *beside)


def beside_of(path: Path) -> Beside:
    """What the path of a log and the file beside it say. Never raises: a bad meta file is none."""
    return Beside(printable(path.stem), _folder_session(path), _meta_title(path) if _is_agent(path) else None)


def _is_agent(path: Path) -> bool:
    return path.name.startswith("agent-")


def _folder_session(path: Path) -> str | None:
    """The session in whose ``subagents`` folder (or a workflow's below it) a log lies."""
    for folder in list(path.parents)[:3]:
        if folder.name == "subagents":
            return printable(folder.parent.name) or None
    return None


def _meta_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.meta.json")


def _meta_title(path: Path) -> tuple[str, str, int] | None:
    """The task a sub-agent was given, as its meta file words it (SPEC 16.6.7)."""
    meta = _meta_path(path)
    try:
        if not meta.is_file():
            return None
        with meta.open("rb") as file:
            raw = file.read(_META_MAX_BYTES)
        written = meta.stat().st_mtime_ns // 1_000_000
        value: JSON = msgspec.json.decode(raw)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    description = string(value, "description")
    return None if description is None else (description, FORMAT, written)
