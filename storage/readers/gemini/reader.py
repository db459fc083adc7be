"""The reader of Gemini CLI chats: JSONL streams, and the JSON documents of older builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..corelog.documents import read_rewritten
from ..discovery import one_file, printable, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from .mapper import FORMAT, VERSION, GeminiMapper
from .places import is_log, is_log_name, parent_session, project_path, told_by


class GeminiReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [home / ".gemini" / "tmp"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Every chat below ``root``. A document that a stream of the same name continues is skipped."""
        found: list[Path] = []
        for path in walk(root, is_log_name):
            if isinstance(path, SkippedPath):
                yield path
            elif path == root or is_log(path):
                found.append(path)
        streams = {path for path in found if path.suffix == ".jsonl"}
        for path in found:
            if path.suffix == ".json" and path.with_suffix(".jsonl") in streams:
                yield SkippedPath(path=path, reason="continued in the .jsonl beside it")
            else:
                yield one_file(FORMAT, root, path, *told_by(path))

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        """See ``Reader.read``. A document is rewritten whole: no checkpoint, and half of one is refused."""
        fallback_ms = unit.path.stat().st_mtime_ns // 1_000_000
        parent = parent_session(unit.path)
        cwd = project_path(unit.path)

        def new_mapper(saved: bytes | None) -> Mapper:
            return GeminiMapper(
                printable(unit.path.stem), saved, cwd=cwd, parent=parent, fallback_ms=fallback_ms
            )

        if unit.path.suffix != ".json":
            return read_jsonl(unit, checkpoint, new_mapper, stopped)
        return read_rewritten(unit, new_mapper)
