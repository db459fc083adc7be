"""What the folders of Kimi tell of a log (README.md).

Kimi Code: ``sessions/<workspace>/<session>/agents/<agent>/wire.jsonl`` with ``state.json`` in the session's
folder. Kimi CLI: ``sessions/<hash of the directory>/<session>/{wire,context}.jsonl``.
"""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from typing import Final

import attrs

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, list_of, text_of
from ..corelog.times import epoch_ms
from ..discovery import printable
from ..whole import read_document

WIRE: Final = "wire.jsonl"
CONTEXT: Final = "context.jsonl"
_MAIN: Final = "main"
_STATE_MAX_BYTES: Final = 4 << 20


@attrs.frozen
class Beside:
    """What names and ``state.json`` say of a session."""

    session_id: str
    parent: str | None = None
    cwd: str = ""
    title: str = ""
    created_ms: int | None = None
    updated_ms: int = 0
    fallback_ms: int = 0


def state_file(path: Path) -> Path:
    """Where the state of a log's session stands, if it does."""
    if _is_agent(path):
        return path.parent.parent.parent / "state.json"
    if path.name in (WIRE, CONTEXT):
        return path.with_name("state.json")
    return path.with_name(f"{path.stem}.state.json")


def registry_file(path: Path) -> Path | None:
    """Kimi CLI's ``kimi.json`` maps directories to the hashes that name its folders."""
    if path.name not in (WIRE, CONTEXT) or _is_agent(path):
        return None
    found = path.parent.parent.parent.parent / "kimi.json"
    return found if found.is_file() else None


def _is_agent(path: Path) -> bool:
    return path.name == WIRE and path.parent.parent.name == "agents"


def beside(path: Path, files: tuple[Path, ...]) -> Beside:
    """Read what lies beside a log. A file that is half written says nothing this time."""
    session_id, parent = printable(path.stem), None
    if _is_agent(path):
        session_id = printable(path.parent.parent.parent.name)
        if path.parent.name != _MAIN:
            session_id, parent = f"{session_id}/{printable(path.parent.name)}", session_id
    elif path.name in (WIRE, CONTEXT):
        session_id = printable(path.parent.name)
    state = dict_of(_read(state_file(path)))
    return Beside(
        session_id=session_id,
        parent=parent,
        cwd=text_of(state.get("workDir")) or _registered(path, files),
        title="" if parent is not None else text_of(state.get("title")),
        created_ms=epoch_ms(state.get("createdAt")) if parent is None else None,
        updated_ms=epoch_ms(state.get("updatedAt")) or 0,
        fallback_ms=path.stat().st_mtime_ns // 1_000_000,
    )


def _registered(path: Path, files: tuple[Path, ...]) -> str:
    registry = registry_file(path)
    if registry is None or registry not in files:
        return ""
    for entry in list_of(dict_of(_read(registry)).get("work_dirs")):
        directory = text_of(dict_of(entry).get("path"))
        digest = md5(directory.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if directory and path.parent.parent.name.endswith(digest):
            return directory
    return ""


def _read(path: Path) -> JSON:
    try:
        return read_document(path, _STATE_MAX_BYTES)
    except (OSError, ValueError):
        return None
