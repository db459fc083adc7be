"""What the folders of Gemini CLI tell of a log: which files are logs, the project's path, the parent session.

``<home>/tmp/<project>/chats/session-….{json,jsonl}`` and ``chats/<parent>/<id>.jsonl``; ``<project>`` is the
SHA-256 of the project's path, or a name that ``<home>/projects.json`` maps from it.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of
from ..discovery import printable
from ..whole import read_document

_BESIDE: Final = frozenset(
    ("logs.json", "projects.json", "settings.json", "trustedFolders.json", "state.json")
)
_SMALL_BYTES: Final = 1 << 20
ROOT_NAME: Final = ".project_root"


def is_log_name(name: str) -> bool:
    if name.endswith(".jsonl"):
        return True
    return name.endswith(".json") and name not in _BESIDE and not name.startswith("checkpoint-")


def is_log(path: Path) -> bool:
    """Inside ``.gemini`` only what lies under ``chats``: nothing private is opened."""
    return ".gemini" not in path.parts or "chats" in path.parts


def project_folder(path: Path) -> Path | None:
    """The folder that holds ``chats``."""
    for folder in path.parents:
        if folder.name == "chats":
            return folder.parent
    return None


def parent_session(path: Path) -> str | None:
    """A sub-agent's log lies in a folder named after its parent's session."""
    return printable(path.parent.name) if path.parent.parent.name == "chats" else None


def told_by(path: Path) -> tuple[Path, ...]:
    """The files that may tell the project's path."""
    project = project_folder(path)
    if project is None:
        return ()
    return tuple(file for file in (project / ROOT_NAME, _registry(project)) if file.is_file())


def _registry(project: Path) -> Path:
    return project.parent.parent / "projects.json"


def project_path(path: Path) -> str | None:
    """The project's directory, or None if nothing tells it."""
    project = project_folder(path)
    if project is None:
        return None
    try:
        marker = (project / ROOT_NAME).read_bytes()[:_SMALL_BYTES]
        return marker.decode("utf-8", "replace").strip("\r\n") or None
    except OSError:
        pass
    try:
        known: JSON = read_document(_registry(project), _SMALL_BYTES)
    except (OSError, ValueError):
        return None
    for directory, name in dict_of(dict_of(known).get("projects")).items():
        if name == project.name or sha256(directory.encode("utf-8", "replace")).hexdigest() == project.name:
            return directory
    return None
