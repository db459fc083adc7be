"""The reader of Claude Code transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from ..timed_head import TimedHead
from .finding import beside_of, units, usual_places
from .mapper import ClaudeMapper
from .records import FORMAT


class ClaudeCodeReader:
    """Reads ``~/.claude/projects`` and anything shaped like it (README.md of this package)."""

    format = FORMAT
    version = 1

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return usual_places(environ, home)

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        return units(root)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        beside = beside_of(unit.path)

        def new_mapper(state: bytes | None) -> Mapper:
            return TimedHead(lambda inner, start: ClaudeMapper(beside, inner, start), state)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)
