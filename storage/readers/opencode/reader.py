"""The reader of OpenCode sessions: a tree of small JSON files, a SQLite database, or an exported document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ....protocol.json_value import JSON
from ..corelog.foreign_db import side_files
from ..corelog.session_db import read_sessions
from ..corelog.shapes import dict_of, list_of, text_of
from ..discovery import one_file, printable, walk
from ..seam import Checkpoint, LogUnit, ReadBatch, Refusal, SkippedPath
from ..whole import read_document
from .database import OpenCodeStore
from .mapper import FORMAT, VERSION, Message, map_session
from .tree import Tree, TreeReading, is_session_file, tree_files

_PASSED_OVER: Final = frozenset(
    (
        "message",
        "part",
        "snapshot",
        "session_diff",
        "session_share",
        "todo",
        "project",
        "log",
        "bin",
        "tool-output",
    )
)
_PRIVATE: Final = frozenset(("auth.json", "mcp-auth.json"))


class OpenCodeReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        data = environ.get("XDG_DATA_HOME")
        return [(Path(data) if data else home / ".local" / "share") / "opencode"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Sessions of trees, databases, and exported documents that lie outside of a store."""
        stores: set[Path] = set()
        found: list[Path] = []
        for path in walk(root, _is_wanted, lambda name: name not in _PASSED_OVER):
            if isinstance(path, SkippedPath):
                yield path
            elif path.suffix != ".json":
                stores.add(path.parent)
                yield one_file(FORMAT, root, path, *side_files(path))
            elif is_session_file(path):
                stores.update((Tree.of(path).messages.parent, Tree.of(path).messages.parent.parent))
                yield self._tree_unit(root, path)
            else:
                found.append(path)
        for path in found:
            if path.parent not in stores:
                yield one_file(FORMAT, root, path)

    def _tree_unit(self, root: Path, path: Path) -> LogUnit:
        store = Tree.of(path).messages.parent
        place = printable(store.relative_to(root).as_posix()) if store.is_relative_to(root) else ""
        return LogUnit(
            format=FORMAT,
            root=root,
            path=path,
            place="" if place == "." else place,
            files=tuple(tree_files(path)),
        )

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        """See ``Reader.read``. Raises OSError also while a database's owner keeps it locked."""
        if unit.path.suffix != ".json":
            return read_sessions(unit.path, OpenCodeStore(), checkpoint, stopped)
        return iter([_read_tree(unit.path) if is_session_file(unit.path) else _read_export(unit.path)])


def _is_wanted(name: str) -> bool:
    return (name.endswith(".json") and name not in _PRIVATE) or name.endswith(".db")


def _read_tree(path: Path) -> ReadBatch:
    reading = TreeReading(path)
    info = reading.session()
    if info is None:
        path.stat()  # a file that is gone or closed to us is the caller's to record
        return ReadBatch(sessions=(), refusal=Refusal(kind="corrupt", message="half written or damaged"))
    session_id = text_of(info.get("id")) or path.stem
    delta = map_session(info, reading.messages(session_id), session_id)
    lost = sum(loss.records for loss in reading.losses)
    return ReadBatch(
        sessions=(delta,),
        losses=tuple(reading.losses),
        records=reading.records,
        held=reading.records - lost,
        restart=True,
        bytes_read=reading.bytes_read,
    )


def _read_export(path: Path) -> ReadBatch:
    """One document ``{info, messages: [{info, parts}]}``."""
    size = path.stat().st_size
    try:
        document = read_document(path)
    except ValueError:
        return ReadBatch(sessions=(), refusal=Refusal(kind="corrupt", message="half written or damaged"))
    info, messages = dict_of(document).get("info"), dict_of(document).get("messages")
    if not isinstance(info, dict) or not isinstance(messages, list):
        return ReadBatch(
            sessions=(), restart=True, refusal=Refusal(kind="not-a-session", message="no exported session")
        )
    delta = map_session(info, map(_exported, messages), path.stem)
    return ReadBatch(sessions=(delta,), records=1, held=1, restart=True, bytes_read=size)


def _exported(entry: JSON) -> Message:
    parts = [part for part in list_of(dict_of(entry).get("parts")) if isinstance(part, dict)]
    return Message(dict_of(dict_of(entry).get("info")), parts)
