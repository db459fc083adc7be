"""The reader of Qwen Code chats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..discovery import one_file, printable, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from ..timed_head import TimedHead
from .mapper import FORMAT, VERSION, QwenMapper


class QwenReader:
    """Reads ``~/.qwen/projects/<slug>/chats/<id>.jsonl`` and anything shaped like it."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [home / ".qwen" / "projects"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        for found in walk(root, lambda name: name.endswith(".jsonl")):
            yield found if isinstance(found, SkippedPath) else one_file(FORMAT, root, found)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        session_id = printable(unit.path.stem)

        def new_mapper(state: bytes | None) -> Mapper:
            return TimedHead(lambda saved, start: QwenMapper(session_id, saved, start), state)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)
