"""Where Codex keeps its logs and what their names say (README.md). Names alone; no file is opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_DATE: Final = re.compile(r"[0-9]{4}|[0-9]{2}")
_HOMES: Final = ("sessions", "archived_sessions")
SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".jsonl.zstd", ".json")
INDEX_NAME: Final = "session_index.jsonl"
BESIDE: Final = frozenset(("history.jsonl", INDEX_NAME))
"""Lists beside the logs: prompts, titles. They look like logs and are none."""


def is_log_name(name: str) -> bool:
    """A rollout by its name; any ``.jsonl`` may be one, a ``.json`` only if it says so."""
    return name.endswith(SUFFIXES[:3]) or (name.startswith("rollout-") and name.endswith(".json"))


def stem(name: str) -> str:
    """The name without what says how the log is written."""
    for suffix in SUFFIXES[1:3] + SUFFIXES[:1] + SUFFIXES[3:]:
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name


def id_from_name(name: str) -> str:
    """The id a log has if its first record is lost: the last UUID of the name, else the bare name."""
    found = _UUID.findall(stem(name))
    return found[-1].lower() if found else stem(name)


def home_of(root: Path, path: Path) -> Path:
    """The folder that holds ``sessions`` and ``archived_sessions``, else the log's own folder.

    A log moves between the two and is compressed in place; its home never changes. Folders that are
    only dates (``2026/10/02``) are passed over.
    """
    if path == root:
        return path.parent
    folder = path.parent
    while folder not in (root, folder.parent) and folder.name not in _HOMES:
        folder = folder.parent
    if folder.name in _HOMES:
        return folder.parent
    folder = path.parent
    while folder not in (root, folder.parent) and _DATE.fullmatch(folder.name):
        folder = folder.parent
    return folder
