"""The reader of OpenAI Codex CLI logs: rollouts of every age, compressed or not, and exec captures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..discovery import printable, walk
from ..driver import Mapper, read_jsonl
from ..lines import file_chunks
from ..seam import Checkpoint, LogUnit, ReadBatch, SkippedPath
from ..zstd import zstd_chunks
from .mapper import FORMAT, VERSION, CodexMapper
from .names import BESIDE, home_of, id_from_name, is_log_name, stem
from .titles import index_for, title_of


class CodexReader:
    """One format; see ``Reader``. Stateless."""

    format = FORMAT
    version = VERSION

    def usual_places(self, environ: Mapping[str, str], home: Path, platform: str) -> list[Path]:
        return [Path(environ.get("CODEX_HOME") or home / ".codex")]

    def units(self, root: Path) -> Iterator[LogUnit | SkippedPath]:
        """Every log below ``root``; of a log and its compressed or archived copy only the plainest."""
        found: dict[tuple[Path, str], Path] = {}
        for path in walk(root, is_log_name):
            if isinstance(path, SkippedPath):
                yield path
            elif path.name in BESIDE and path != root:
                yield SkippedPath(path=path, reason="a list beside the sessions, no session")
            else:
                key = (home_of(root, path), stem(path.name))
                other = found.setdefault(key, path)
                if other is not path:
                    found[key], twin = sorted((other, path), key=_preference)
                    yield SkippedPath(path=twin, reason="another copy of a session that is read")
        seen: dict[Path, Path | None] = {}
        for (home, _), path in found.items():
            yield _unit(root, path, home, index_for(root, path.parent, seen))

    def read(
        self, unit: LogUnit, checkpoint: Checkpoint | None, stopped: Callable[[], bool]
    ) -> Iterator[ReadBatch]:
        """See ``Reader.read``. A compressed log has no place to go on from inside it."""
        index = unit.files[1] if len(unit.files) > 1 else None
        fallback_ms = unit.path.stat().st_mtime_ns // 1_000_000

        def title_for(session_id: str) -> tuple[str, int] | None:
            return None if index is None else title_of(index, session_id)

        def new_mapper(saved: bytes | None) -> Mapper:
            return CodexMapper(
                id_from_name(printable(unit.path.name)), saved, fallback_ms=fallback_ms, title_of=title_for
            )

        packed = unit.path.name.endswith((".zst", ".zstd"))
        return read_jsonl(unit, checkpoint, new_mapper, stopped, zstd_chunks if packed else file_chunks)


def _preference(path: Path) -> tuple[bool, bool, str]:
    """Plain before compressed: a log is compressed behind its writer's back. Then the one in use."""
    return path.name.endswith((".zst", ".zstd")), "archived_sessions" in path.parts, str(path)


def _unit(root: Path, path: Path, home: Path, index: Path | None) -> LogUnit:
    """The unit of a log; its place is its home, which stays when the log moves inside it."""
    relative = home.relative_to(root).as_posix() if home.is_relative_to(root) else "."
    return LogUnit(
        format=FORMAT,
        root=root,
        path=path,
        place="" if relative == "." else printable(relative),
        files=(path,) if index is None else (path, index),
    )
