"""The reader of Hermes sessions: its database, and the documents and lines it writes beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ..corelog.documents import read_rewritten
from ..corelog.foreign_db import side_files
from ..corelog.session_db import read_sessions
from ..discovery import one_file, printable, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from .database import HermesStore
from .mapper import FORMAT, VERSION, HermesMapper

_SUFFIXES: Final = (".json", ".jsonl", ".db")
_STORE: Final = "state.db"


class HermesReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        named = environ.get("HERMES_HOME")
        return [Path(named) if named else home / ".hermes"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Databases, and session files. Inside ``.hermes`` nothing but those is opened."""
        for path in walk(root, lambda name: name.endswith(_SUFFIXES)):
            if isinstance(path, SkippedPath):
                yield path
            elif path.suffix == ".db":
                if path.name == _STORE or ".hermes" not in path.parts or path == root:
                    yield one_file(FORMAT, root, path, *side_files(path))
            elif path == root or _is_session(path):
                if path != root and path.parent.with_name(_STORE).is_file():
                    yield SkippedPath(path=path, reason=f"the session's rows in {_STORE} are read")
                else:
                    yield one_file(FORMAT, root, path)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        if unit.path.suffix == ".db":
            return read_sessions(unit.path, HermesStore(), checkpoint, stopped)
        fallback_ms = unit.path.stat().st_mtime_ns // 1_000_000

        def new_mapper(saved: bytes | None) -> Mapper:
            return HermesMapper(printable(unit.path.stem), saved, fallback_ms=fallback_ms)

        if unit.path.suffix == ".json":
            return read_rewritten(unit, new_mapper)
        return read_jsonl(unit, checkpoint, new_mapper, stopped)


def _is_session(path: Path) -> bool:
    if path.name in ("sessions.json", "auth.json") or path.name.startswith("request_dump_"):
        return False
    return ".hermes" not in path.parts or path.parent.name == "sessions"
