"""The reader of ACP captures, and of the tools that keep their sessions as such (Grok CLI)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, first_text, text_of
from ..corelog.times import epoch_ms
from ..discovery import one_file, printable, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from ..whole import read_document
from .mapper import FORMAT, VERSION, AcpMapper, Beside

_UPDATES: Final = "updates.jsonl"
_SUMMARY: Final = "summary.json"
_SUMMARY_MAX_BYTES: Final = 1 << 20


class AcpReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [home / ".grok" / "sessions"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Every ``.jsonl``; beside an ``updates.jsonl`` only that."""
        for path in walk(root, lambda name: name.endswith(".jsonl")):
            if isinstance(path, SkippedPath):
                yield path
            elif path.name != _UPDATES and path != root and path.with_name(_UPDATES).is_file():
                yield SkippedPath(path=path, reason="another form of the session in updates.jsonl")
            else:
                summary = path.with_name(_SUMMARY)
                beside = (summary,) if path.name == _UPDATES and summary.is_file() else ()
                yield one_file(FORMAT, root, path, *beside)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        beside = _beside(unit)

        def new_mapper(saved: bytes | None) -> Mapper:
            return AcpMapper(beside, saved)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)


def _beside(unit: LogUnit) -> Beside:
    """Grok keeps a session's facts in ``summary.json``; a capture alone is known by its name and mtime."""
    path = unit.path
    fallback_ms = path.stat().st_mtime_ns // 1_000_000
    name = printable(path.parent.name if path.name == _UPDATES else path.stem)
    facts: JSON = None
    if len(unit.files) > 1:
        try:
            facts = read_document(unit.files[1], _SUMMARY_MAX_BYTES)
        except (OSError, ValueError):
            facts = None  # half written: the next change of the file brings it
    info = dict_of(dict_of(facts).get("info"))
    title = first_text(dict_of(facts).get("generated_title"), dict_of(facts).get("session_summary"))
    return Beside(
        session_id=first_text(info.get("id"), name),
        cwd=text_of(info.get("cwd")),
        title=title,
        created_ms=epoch_ms(dict_of(facts).get("created_at")),
        updated_ms=epoch_ms(dict_of(facts).get("updated_at")) or 0,
        fallback_ms=fallback_ms,
    )
