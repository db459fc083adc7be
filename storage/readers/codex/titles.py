"""Titles Codex keeps beside its logs: ``session_index.jsonl``, append-only, the last line of an id wins."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from ..corelog.shapes import first_text, text_of
from ..corelog.times import epoch_ms
from ..decode import decode_record
from ..lines import file_chunks, split_lines
from .names import INDEX_NAME

_LOOK_UP: Final = 6
"""``sessions/YYYY/MM/DD`` is four folders below the index."""


def index_for(root: Path, folder: Path, seen: dict[Path, Path | None]) -> Path | None:
    """The title index of the home that a log in ``folder`` lies in, or None. Looks at names alone.

    ``seen`` remembers folders during one walk: a home has thousands of logs and one index.
    """
    passed: list[Path] = []
    found: Path | None = None
    while folder not in seen and len(passed) < _LOOK_UP:
        passed.append(folder)
        if (folder / INDEX_NAME).is_file():
            found = folder / INDEX_NAME
            break
        if folder in (root.parent, folder.parent):
            break
        folder = folder.parent
    else:
        found = seen.get(folder)
    seen.update(dict.fromkeys(passed, found))
    return found


def title_of(index: Path, session_id: str) -> tuple[str, int] | None:
    """The title of a session and when it was given. An index that cannot be read knows none."""
    try:
        stat = index.stat()
        return _titles(index, stat.st_mtime_ns, stat.st_size).get(session_id)
    except OSError:
        return None


@lru_cache(maxsize=4)
def _titles(index: Path, _mtime_ns: int, _size: int) -> dict[str, tuple[str, int]]:
    """Read once for all logs of a home; a changed file has another key."""
    titles: dict[str, tuple[str, int]] = {}
    for line in split_lines(file_chunks(index, 0)):
        try:
            entry = decode_record(line.data or b"")
        except ValueError:
            continue
        if isinstance(entry, dict):
            name = first_text(entry.get("thread_name"), entry.get("name"))
            titles[text_of(entry.get("id"))] = (name, epoch_ms(entry.get("updated_at")) or 0)
    return titles
