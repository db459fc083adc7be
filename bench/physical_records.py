"""Count the physical records of a log from the rules of storage/readers/README.md ("Counting") alone.

Written apart from the readers, slow and obvious, with nothing but the standard library and zstandard:
what a reader held and lost must add up to what is counted here.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
from pathlib import Path

import zstandard

FILL = "\0 \t\r\n\ufeff"
DECODER = json.JSONDecoder(strict=False)


def physical_records(path: Path) -> int:
    """The records of one file: rows of a database, one for a document, else those of its lines."""
    if path.suffix == ".db":
        return _rows(path)
    raw = path.read_bytes()
    if path.suffix in (".zst", ".zstd"):
        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw), read_across_frames=True)
        raw = reader.read()
    if path.suffix == ".json":
        value = json.loads(raw)
        items = value if isinstance(value, list) else [value]
        return sum(isinstance(item, dict) for item in items)
    return records_of_lines(raw)


def records_of_lines(raw: bytes) -> int:
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, tail = text.split("\n")
    if not _is_made_of_lines(lines, tail):
        whole = _values(text)
        if whole:
            return len(whole)
    return sum(_records_of_line(line) for line in lines) + _whole_objects(tail)[0]


def _rows(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        wanted = [name for name in ("session", "message", "part", "sessions", "messages") if name in tables]
        return sum(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in wanted)


def _is_made_of_lines(lines: list[str], tail: str) -> bool:
    good = bad = 0
    for line in lines[:4096]:
        content = line.strip(FILL)
        if not content or content.startswith("//"):
            continue
        value = _parse(content)
        if isinstance(value, dict) and not good + bad:
            return True
        whole, end = _whole_objects(content)
        if isinstance(value, dict) or (value is _NOTHING and whole and end == len(content)):
            good += 1
        else:
            bad += 1
    bad += isinstance(_parse(tail.strip(FILL)), list)
    return good > bad or not bad


_NOTHING = object()


def _parse(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _NOTHING


def _values(text: str) -> list[object]:
    """The objects of a text that is one value, or values one behind the other."""
    whole = _parse(text.strip(FILL))
    if whole is not _NOTHING:
        return [item for item in (whole if isinstance(whole, list) else [whole]) if isinstance(item, dict)]
    found: list[object] = []
    at = _skip(text, 0)
    while at < len(text):
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        if isinstance(value, dict):
            found.append(value)
        at = _skip(text, at)
    return found


def _records_of_line(line: str) -> int:
    content = line.strip(FILL)
    if not content or content.startswith("//"):
        return 0
    value = _parse(content)
    if value is not _NOTHING:
        return int(isinstance(value, dict))
    records, at = 0, 0
    while at < len(content):
        whole, end = _whole_objects(content[at:])
        records += whole
        if whole:
            at = _skip(content, at + end)
        else:
            records += 1  # a stretch passed over
            at = _next_start(content, at)
    return records


def _whole_objects(text: str) -> tuple[int, int]:
    """How many whole objects a text starts with, and where they end."""
    count, at, end = 0, _skip(text, 0), 0
    while at < len(text) and text[at] == "{":
        try:
            _, end = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        count += 1
        at = end = _skip(text, end)
    return count, end


def _next_start(text: str, at: int) -> int:
    """Where reading goes on behind what is no object at ``at``: the rule of three steps in salvage."""
    starts = [place for place in _places(text, '{"') if place > at and not _is_member(text, place)]
    seconds: list[int] = []
    for start in starts:
        count, end = _whole_objects(text[start:])
        if count and start + end == len(text):
            return start
        if count and text.startswith('{"', start + end):
            seconds.append(start)
    return seconds[0] if seconds else len(text)


def _is_member(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \t")
    return before.endswith((":", "[")) or (before.endswith(",") and before[:-1].rstrip(" \t").endswith("}"))


def _places(text: str, what: str) -> list[int]:
    found, at = [], text.find(what)
    while at >= 0:
        found.append(at)
        at = text.find(what, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in FILL:
        at += 1
    return at
