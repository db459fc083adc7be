"""OpenCode's older store: one small JSON file for each session, message and part (README.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from ....protocol.json_value import JSON
from ..corelog.shapes import dict_of, text_of
from ..corelog.times import epoch_ms
from ..decode import decode_record
from ..discovery import printable
from ..lines import open_regular
from ..seam import Loss
from .mapper import Message, Record

_FILE_MAX_BYTES: Final = 64 << 20


def is_session_file(path: Path) -> bool:
    """``storage/session/<project>/<id>.json``, or ``…/session/info/<id>.json`` of the oldest builds."""
    return path.suffix == ".json" and path.parent.parent.name == "session"


@attrs.frozen
class Tree:
    """Where the messages and parts of a session lie, told from the place of its file."""

    messages: Path
    parts: Path
    flat: bool

    @classmethod
    def of(cls, session_file: Path) -> Tree:
        base = session_file.parent.parent
        oldest = session_file.parent.name == "info"
        root = base if oldest else base.parent
        return cls(root / "message", root / "part", not oldest)

    def message_folder(self, session_file: Path, session_id: str = "") -> Path:
        """By id; by the name of the session's file if there is no such folder."""
        stem = session_file.stem
        for name in (session_id, stem, stem.removeprefix("ses_")):
            if name and _is_plain(name) and (self.messages / name).is_dir():
                return self.messages / name
        return self.messages / stem

    def part_folder(self, message_folder: Path, message_file: Path, message_id: str = "") -> Path:
        base = self.parts if self.flat else self.parts / message_folder.name
        if message_id and _is_plain(message_id) and (base / message_id).is_dir():
            return base / message_id
        return base / message_file.stem


def _is_plain(name: str) -> bool:
    """An id from a file's content must not lead out of the tree."""
    return name not in (".", "..") and "/" not in name and "\\" not in name and "\x00" not in name


def json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder in name order; none if it cannot be read. Links are not followed."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name.endswith(".json") and e.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def tree_files(session_file: Path) -> Iterator[Path]:
    """All files that a session is made of, by names alone; a folder of flat parts stands for its files."""
    yield session_file
    tree = Tree.of(session_file)
    folder = tree.message_folder(session_file)
    for message_file in json_files(folder):
        yield message_file
        yield from json_files(tree.part_folder(folder, message_file))
    if tree.flat and json_files(tree.parts):
        yield tree.parts


@attrs.define
class TreeReading:
    """One read of one session. Counts what it opens."""

    session_file: Path
    records: int = 0
    bytes_read: int = 0
    losses: list[Loss] = attrs.field(factory=list)

    def session(self) -> Record | None:
        """The session record, or None if it cannot be had (perhaps it is half written)."""
        return self._load(self.session_file)

    def messages(self, session_id: str) -> list[Message]:
        """Every message with its parts, by (created, id); parts by the name of their file."""
        tree = Tree.of(self.session_file)
        folder = tree.message_folder(self.session_file, session_id)
        found: list[tuple[int, str, Message]] = []
        for path in json_files(folder):
            info = self._load(path)
            if info is None:
                continue
            message_id = text_of(info.get("id")) or path.stem
            created = epoch_ms(dict_of(info.get("time")).get("created")) or 0
            parts = [self._load(part) for part in json_files(tree.part_folder(folder, path, message_id))]
            parts += [self._load(part) for part in _flat_parts(tree).get(message_id, ())]
            found.append((created, message_id, Message(info, [part for part in parts if part is not None])))
        found.sort(key=lambda item: item[:2])
        return [message for _, _, message in found]

    def _load(self, path: Path) -> Record | None:
        """One file; a half-written one is tried once more, then it is a loss."""
        self.records += 1
        cause = "not JSON"
        for _ in range(2):
            raw = _read(path)
            if raw is None:
                cause = "cannot be read"
                continue
            try:
                value: JSON = decode_record(raw)
            except ValueError:
                continue
            if isinstance(value, dict):
                self.bytes_read += len(raw)
                return value
            cause = "not an object"
        self.losses.append(Loss(path=printable(path), offset=0, length=len(raw or b""), cause=cause))
        return None


def _read(path: Path) -> bytes | None:
    try:
        with open_regular(path) as file:
            raw = file.read(_FILE_MAX_BYTES + 1)
    except OSError:
        return None
    return raw if len(raw) <= _FILE_MAX_BYTES else None


def _flat_parts(tree: Tree) -> dict[str, list[Path]]:
    """Parts that lie directly in the part folder, by the message they name."""
    if not tree.flat:
        return {}
    stamps = []
    for path in json_files(tree.parts):
        try:
            stat = path.stat()
        except OSError:
            continue
        stamps.append((path, stat.st_mtime_ns, stat.st_size))
    return _flat_index(tuple(stamps))


@lru_cache(maxsize=4)
def _flat_index(stamps: tuple[tuple[Path, int, int], ...]) -> dict[str, list[Path]]:
    """Read once for all sessions of a tree; a changed file makes another key."""
    index: dict[str, list[Path]] = {}
    for path, _, _ in stamps:
        try:
            value = decode_record(_read(path) or b"")
        except ValueError:
            continue
        index.setdefault(text_of(dict_of(value).get("messageID")), []).append(path)
    return index
