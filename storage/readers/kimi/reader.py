"""The reader of Kimi sessions: Kimi Code's agents, Kimi CLI's wires, else its contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..discovery import one_file, walk
from ..driver import Mapper, read_jsonl
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from .mapper import FORMAT, VERSION, KimiMapper
from .places import CONTEXT, WIRE, beside, registry_file, state_file


class KimiReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [home / ".kimi-code" / "sessions", home / ".kimi" / "sessions"]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Every ``.jsonl``. A context that stands beside a wire tells the same session, and less of it."""
        for path in walk(root, lambda name: name.endswith(".jsonl")):
            if isinstance(path, SkippedPath):
                yield path
            elif path.name.startswith("context") and path != root and path.with_name(WIRE).is_file():
                yield SkippedPath(path=path, reason="the session's wire beside it is read")
            elif path.name.startswith("context_") and path.with_name(CONTEXT).is_file():
                yield SkippedPath(path=path, reason="an older context of the session beside it")
            else:
                registry = registry_file(path)
                told = (state_file(path), *((registry,) if registry is not None else ()))
                yield one_file(FORMAT, root, path, *(file for file in told if file.is_file()))

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        facts = beside(unit.path, unit.files)

        def new_mapper(saved: bytes | None) -> Mapper:
            return KimiMapper(facts, saved)

        return read_jsonl(unit, checkpoint, new_mapper, stopped)
