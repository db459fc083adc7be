"""The private store for tool results too long to show (SPEC 12.1.8, 14 L34, 16.10).

One directory for each owner, named by a hash; one file for each result, with an unpredictable prefix.
A locator is ``spill:<owner hash>:<prefix>``: opaque to everyone else, found again without any index, and
never a path, so that it can say nothing about the machine and reach nothing outside the store.
All calls block; actors run them in threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import attrs

from ..protocol.json_codec import to_utf8
from ..protocol.preview import cut_after, cut_before
from ..protocol.tools.lines import shown_id

SPILL_FOLDER: Final = "spill"
"""Where a data directory keeps its store."""

_LOCATOR: Final = re.compile(r"spill:([0-9a-f]{32}):([0-9a-f]{32})")
_OWNER_DIR: Final = re.compile(r"[0-9a-f]{32}")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._-]")
_NAME_CHARS_MAX: Final = 180  # with prefix and dash still below the 255 bytes of a file name
_POINT_BYTES_MAX: Final = 4
_ERASE_CHUNK: Final = 1 << 20


class SpillNotFound(Exception):
    """The locator names nothing that this owner may read: unknown, swept, forgotten or another's."""


class SpillRangeError(ValueError):
    """The offset lies beyond the end or inside a code point, or the limit is not positive."""


@attrs.frozen(kw_only=True)
class PlannedSpill:
    """A result's place, decided before anything is written (SPEC 14 L34)."""

    locator: str
    hint: str
    path: Path


@attrs.frozen(kw_only=True)
class SpillPiece:
    """Whole code points from ``offset_bytes`` on; ``next_offset == total_bytes`` on the last piece."""

    offset_bytes: int
    next_offset: int
    total_bytes: int
    data: str


@attrs.frozen(kw_only=True)
class SpillRetention:
    """What ``sweep`` keeps. ``None`` means without bound."""

    max_age_s: float | None = 30 * 86_400
    max_owner_bytes: int | None = 256 * 1024 * 1024
    max_total_bytes: int | None = 2 * 1024 * 1024 * 1024


@attrs.frozen(kw_only=True)
class Swept:
    files: int
    bytes: int


@attrs.frozen
class _Artifact:
    modified_s: float
    name: str
    path: Path
    size: int


def locator_hint(locator: str, path: Path) -> str:
    """The hint for callers that reach the store through the service."""
    return "Fetch it through the host with this locator."


def path_hint(locator: str, path: Path) -> str:
    """The hint for hosts whose agents read the same file system."""
    return f"It is in the file {path}."


@attrs.frozen(kw_only=True)
class SpillStore:
    """Results kept under ``root``. ``hint`` tells a model how to get one back."""

    root: Path
    hint: Callable[[str, Path], str] = locator_hint

    def plan(self, owner: str, suggested_name: str) -> PlannedSpill:
        """Choose a place for one result of ``owner``; touches no file."""
        folder, prefix = _owner_hash(owner), secrets.token_hex(16)
        path = self.root / folder / f"{prefix}-{_escape(suggested_name)}"
        locator = f"spill:{folder}:{prefix}"
        return PlannedSpill(locator=locator, hint=self.hint(locator, path), path=path)

    def write(self, plan: PlannedSpill, data: bytes) -> None:
        """Write ``data`` where planned: directories 0700, the file new and 0600.

        Raises: OSError: nothing is left behind then.
        """
        _private_dir(self.root)
        _private_dir(plan.path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(plan.path, flags, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
        except BaseException:
            plan.path.unlink(missing_ok=True)
            raise

    def read_range(self, locator: str, offset: int, limit: int, *, owner: str | None = None) -> SpillPiece:
        """Return at most ``limit`` bytes from byte ``offset`` on, cut between code points.

        At least one code point is returned before the end, so that following ``next_offset`` always ends.
        Args: owner: if given, the result must be this owner's.
        Raises: SpillNotFound; SpillRangeError; OSError.
        """
        path = self._find(locator, owner)
        if limit < 1 or offset < 0:
            raise SpillRangeError("offset and limit must be positive")
        with _opened(path) as descriptor:
            total = os.fstat(descriptor).st_size
            if offset > total:
                raise SpillRangeError("the offset lies beyond the end")
            os.lseek(descriptor, offset, os.SEEK_SET)
            data = _read_exactly(descriptor, min(limit, total - offset) + _POINT_BYTES_MAX)
        if data and data[0] & 0xC0 == 0x80:
            raise SpillRangeError("the offset lies inside a code point")
        piece = data[: cut_before(data, min(limit, len(data))) or cut_after(data, 1)]
        return SpillPiece(
            offset_bytes=offset,
            next_offset=offset + len(piece),
            total_bytes=total,
            data=piece.decode("utf-8", "replace"),
        )

    def sweep(self, now_s: float, retention: SpillRetention) -> Swept:
        """Delete what is too old, then the oldest beyond each owner's and the store's size."""
        kept: list[_Artifact] = []
        gone: list[_Artifact] = []
        for folder in self._folders():
            artifacts = sorted(_artifacts(folder), key=lambda item: (item.modified_s, item.name))
            old = sum(_is_older(item, now_s, retention.max_age_s) for item in artifacts)
            gone.extend(artifacts[:old])
            dropped, rest = _oldest_beyond(artifacts[old:], retention.max_owner_bytes)
            gone.extend(dropped)
            kept.extend(rest)
        kept.sort(key=lambda item: (item.modified_s, item.name))
        gone.extend(_oldest_beyond(kept, retention.max_total_bytes)[0])
        for item in gone:
            item.path.unlink(missing_ok=True)
        self._drop_empty_folders()
        return Swept(files=len(gone), bytes=sum(item.size for item in gone))

    def forget(self, owner: str) -> int:
        """Overwrite and delete everything ``owner`` has; return how many results that were (SPEC 16.10)."""
        erased = sum(_erase(item.path) for item in _artifacts(self.root / _owner_hash(owner)))
        self._drop_empty_folders()
        return erased

    def forget_sessions(self, ids: Iterable[str]) -> int:
        """Overwrite and delete every result, of any owner, that quotes one of these sessions.

        Each quotation carries its session's id as results show it (SPEC 10.11), so the ids find all.
        """
        needles = [
            to_utf8(form) for session_id in ids if session_id for form in (session_id, shown_id(session_id))
        ]
        erased = 0
        for folder in self._folders():
            for item in _artifacts(folder):
                if _holds_any(item.path, needles):
                    erased += _erase(item.path)
        self._drop_empty_folders()
        return erased

    def _find(self, locator: str, owner: str | None) -> Path:
        match = _LOCATOR.fullmatch(locator)
        if match is None or (owner is not None and match[1] != _owner_hash(owner)):
            raise SpillNotFound("no such result")
        for item in _artifacts(self.root / match[1]):
            if item.name.startswith(f"{match[2]}-"):
                return item.path
        raise SpillNotFound("no such result")

    def _folders(self) -> list[Path]:
        try:
            names = sorted(os.listdir(self.root))
        except FileNotFoundError:
            return []
        return [self.root / name for name in names if _OWNER_DIR.fullmatch(name)]

    def _drop_empty_folders(self) -> None:
        for folder in self._folders():
            with contextlib.suppress(OSError):  # not empty: it stays
                folder.rmdir()


def _owner_hash(owner: str) -> str:
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _escape(name: str) -> str:
    """Return an injective, plain file name: other UTF-16 units (and ``~``) become ``~XXXX``."""
    units = name.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    escaped = "".join(chr(code) if _PLAIN_NAME.fullmatch(chr(code)) else f"~{code:04X}" for code in codes)
    if len(escaped) <= _NAME_CHARS_MAX:
        return escaped
    return "~sha-" + hashlib.sha256(units).hexdigest()  # no escape looks like this: s is no hex digit


def _private_dir(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o700)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise SpillNotFound("no such result") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_exactly(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _artifacts(folder: Path) -> list[_Artifact]:
    found: list[_Artifact] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    found.append(_Artifact(stat.st_mtime, entry.name, Path(entry.path), stat.st_size))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return found


def _is_older(item: _Artifact, now_s: float, max_age_s: float | None) -> bool:
    return max_age_s is not None and now_s - item.modified_s > max_age_s


def _oldest_beyond(items: list[_Artifact], max_bytes: int | None) -> tuple[list[_Artifact], list[_Artifact]]:
    """Split ``items`` (oldest first) into those that must go and those that fit."""
    if max_bytes is None:
        return [], items
    excess = sum(item.size for item in items) - max_bytes
    at = 0
    while excess > 0 and at < len(items):
        excess -= items[at].size
        at += 1
    return items[:at], items[at:]


def _holds_any(path: Path, needles: list[bytes]) -> bool:
    overlap = max((len(needle) for needle in needles), default=1) - 1
    tail = b""
    try:
        with _opened(path) as descriptor:
            while chunk := os.read(descriptor, _ERASE_CHUNK):
                window = tail + chunk
                if any(needle in window for needle in needles):
                    return True
                tail = window[-overlap:] if overlap else b""
    except SpillNotFound:
        return False
    return False


def _erase(path: Path) -> int:
    """Overwrite the file, then delete it; 1 if it was there."""
    try:
        with open(path, "r+b", buffering=0) as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0:
                left -= file.write(bytes(min(left, _ERASE_CHUNK)))
            os.fsync(file.fileno())
        path.unlink()
    except FileNotFoundError:
        return 0
    return 1
