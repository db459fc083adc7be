"""The dsh reader: units by folder and generation, and the driver with a dsh mapper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from ..discovery import one_file, place_of, walk
from ..driver import read_jsonl
from ..lines import file_chunks
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from ..zstd import MAGIC, zstd_chunks
from .mapper import DshMapper
from .places import decode_id, generation_of, is_log_name, usual_places

VERSION: Final = 1


class DshReader:
    """DeepSeek Harness, formats 0 to 4, plain or zstd, in the usual layout or loose (see README.md)."""

    format = "dsh"
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return usual_places(environ, home)

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """One unit for each folder with generations of a session, one for each other log.

        Of several generations the highest is read, of two encodings the compressed one (the writer's
        default); the others are told as skipped.
        """
        folder: list[Path] = []
        for found in walk(root, is_log_name):
            if isinstance(found, SkippedPath):
                yield found
                continue
            if folder and found.parent != folder[0].parent:
                yield from _generations(root, folder)
                folder = []
            if found == root or generation_of(found.name) is None:
                yield _loose(root, found)
            else:
                folder.append(found)
        if folder:
            yield from _generations(root, folder)

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        fallback_id = _fallback_id(unit.path)
        return read_jsonl(
            unit,
            checkpoint,
            lambda state: DshMapper(fallback_id, state),
            stopped,
            zstd_chunks if _is_zstd(unit.path) else file_chunks,
        )


READER: Final = DshReader()


def _generations(root: Path, paths: list[Path]) -> Iterator[LogUnit | SkippedPath]:
    ranked = sorted(paths, key=lambda path: generation_of(path.name) or (0, False))
    for path in ranked[:-1]:
        yield SkippedPath(path=path, reason=f"the same session as {ranked[-1].name}, which is read")
    yield one_file("dsh", root, ranked[-1])


def _loose(root: Path, path: Path) -> LogUnit:
    """A log outside the layout: its place is its own name, for many may lie in one folder."""
    unit = one_file("dsh", root, path)
    if path == root:
        return unit
    return attrs.evolve(unit, place=place_of(root, path / "x"))


def _fallback_id(path: Path) -> str:
    """What names a session whose header is lost: its folder in the layout, else the file."""
    return decode_id(path.parent.name if generation_of(path.name) is not None else path.name)


def _is_zstd(path: Path) -> bool:
    """By the name, except that a log named itself may be called anything."""
    if path.name.endswith(".zstd"):
        return True
    if path.name.endswith(".jsonl"):
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
