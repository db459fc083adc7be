"""The reader of GitHub Copilot CLI sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ..discovery import one_file, printable, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from ..timed_head import TimedHead
from .mapper import FORMAT, VERSION, CopilotMapper

_IN_FOLDER: Final = "events.jsonl"


class CopilotReader:
    """Reads ``~/.copilot/session-state/<id>/events.jsonl`` and the older ``<id>.jsonl`` beside it."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        base = Path(environ.get("COPILOT_HOME") or home / ".copilot")
        return [base / "session-state", base / "history-session-state"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        for found in walk(root, lambda name: name.endswith(".jsonl")):
            yield found if isinstance(found, SkippedPath) else one_file(FORMAT, root, found)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        path = unit.path
        fallback_id = printable(path.parent.name if path.name == _IN_FOLDER else path.stem)

        def new_mapper(state: bytes | None) -> Mapper:
            return TimedHead(lambda saved, start: CopilotMapper(fallback_id, saved, start), state)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)
