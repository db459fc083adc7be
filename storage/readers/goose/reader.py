"""The reader of Goose sessions: its database, and the JSONL logs of older builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..corelog.foreign_db import side_files
from ..corelog.session_db import read_sessions
from ..discovery import one_file, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from .database import GooseStore
from .mapper import FORMAT, VERSION, GooseMapper

_SUFFIXES = (".jsonl", ".db")


class GooseReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        if platform == "win32":
            data = environ.get("APPDATA")
            return [
                (Path(data) if data else home / "AppData" / "Roaming")
                / "Block"
                / "goose"
                / "data"
                / "sessions"
            ]
        data = environ.get("XDG_DATA_HOME")
        return [(Path(data) if data else home / ".local" / "share") / "goose" / "sessions"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        for path in walk(root, lambda name: name.endswith(_SUFFIXES)):
            if isinstance(path, SkippedPath):
                yield path
            else:
                beside = side_files(path) if path.suffix == ".db" else ()
                yield one_file(FORMAT, root, path, *beside)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        if unit.path.suffix == ".db":
            return read_sessions(unit.path, GooseStore(), checkpoint, stopped)
        fallback_ms = unit.path.stat().st_mtime_ns // 1_000_000

        def new_mapper(saved: bytes | None) -> Mapper:
            return GooseMapper(unit.path.stem, saved, fallback_ms=fallback_ms)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)
