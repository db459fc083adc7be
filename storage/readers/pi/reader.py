"""The reader of pi sessions, and of the tools that write the same family of logs (OpenClaw, omp)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..discovery import one_file, printable, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from .mapper import FORMAT, VERSION, PiMapper, id_from_name


class PiReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        named = environ.get("PI_CODING_AGENT_DIR")
        agent = Path(named) if named else home / ".pi" / "agent"
        return [agent / "sessions", home / ".omp" / "agent" / "sessions", home / ".openclaw" / "agents"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Every ``.jsonl``; OpenClaw's checkpoints are copies of a session and no sessions."""
        for path in walk(root, lambda name: name.endswith(".jsonl")):
            if isinstance(path, SkippedPath):
                yield path
            elif ".checkpoint." in path.name and path != root:
                yield SkippedPath(path=path, reason="a checkpoint copy of a session")
            else:
                yield one_file(FORMAT, root, path)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        fallback_ms = unit.path.stat().st_mtime_ns // 1_000_000

        def new_mapper(saved: bytes | None) -> Mapper:
            return PiMapper(id_from_name(printable(unit.path.name)), saved, fallback_ms=fallback_ms)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)
