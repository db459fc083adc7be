"""The worked file of a reader's README: its list of (seq, type) is read from there, so it cannot drift."""

from __future__ import annotations

import re
from pathlib import Path

READERS = Path(__file__).resolve().parents[2] / "storage" / "readers"
DATA = Path(__file__).resolve().parents[1] / "storage" / "data"

_SESSION = re.compile(r"^### Session `([^`]+)`")
_EVENT = re.compile(r"^ *(\d+) (\S+)")


def worked_lists(package: str) -> dict[str, list[tuple[int, str]]]:
    """Session id to its expected events, from the blocks under ``### Session `id` `` headings."""
    lists: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] | None = None
    fenced = False
    for line in (READERS / package / "README.md").read_text(encoding="utf-8").split("\n"):
        if heading := _SESSION.match(line):
            current = lists.setdefault(heading.group(1), [])
        elif line.startswith("```"):
            fenced = not fenced
        elif fenced and current is not None and (event := _EVENT.match(line)):
            current.append((int(event.group(1)), event.group(2)))
    assert lists, f"{package}/README.md has no worked file"
    return lists


def data_files(package: str) -> dict[str, bytes]:
    """The worked files of a format by their path below its data folder."""
    root = DATA / package / "worked"
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
