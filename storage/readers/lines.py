"""Split a stream of bytes into lines, on the byte 0x0A and on nothing else.

U+2028, U+2029, U+0085, a lone CR, VT and FF all stand raw inside valid JSON strings, so neither
``str.splitlines`` nor universal newlines will do.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

BLOCK_BYTES: Final = 1 << 18
"""One read. 256 KiB: larger blocks gain nothing measurable, smaller ones cost calls."""
LINE_MAX_BYTES: Final = 64 << 20
"""A longer line is a loss and is passed over without being held in memory."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a log as they come, and where a later read may go on behind them.

    ``offset`` is where they stand in the file: exactly if ``exact``, else the start of the compressed
    frame they came from. ``resume`` is the file offset to go on from after this chunk, None if there
    is none. ``lost`` names why bytes of the file yield nothing here; ``data`` is empty then and
    ``size`` their number. ``settled`` is False for what a writer may still be writing.
    """

    data: bytes
    offset: int
    resume: int | None = None
    exact: bool = False
    lost: str | None = None
    size: int = 0
    settled: bool = True


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without its line feed, or a stretch that yields none.

    ``offset`` is in the file (see ``Chunk``); ``length`` counts bytes, line feed excluded. ``resume``
    is the file offset behind the line, None if no read can start there. ``data`` is None for what is
    ``lost``. ``complete`` is False for a last line that no line feed ends. ``settled`` is False for
    what may look different at the next read; nothing settled comes behind it.
    """

    offset: int
    length: int
    data: bytes | None
    resume: int | None = None
    complete: bool = True
    lost: str = ""
    settled: bool = True


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, never a pipe, device or folder, and never waiting for one.

    Raises: OSError: it cannot be opened, or is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"not a regular file: {path.name!r}")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite database. Raises: OSError."""
    with open_regular(path) as file:
        return file.read(16) == b"SQLite format 3\x00"


def file_chunks(path: Path, offset: int) -> Iterator[Chunk]:
    """Read ``path`` from ``offset`` to its end in blocks. Raises: OSError."""
    with open_regular(path) as file:
        file.seek(offset)
        while block := file.read(BLOCK_BYTES):
            yield Chunk(block, offset, offset + len(block), exact=True)
            offset += len(block)


TORN_TAIL: Final = "torn tail"
"""Cause of what is not there yet; it counts for no record."""
_TOO_LONG: Final = "line above the size bound"


def split_lines(chunks: Iterable[Chunk], line_max_bytes: int = LINE_MAX_BYTES) -> Iterator[Line]:
    """Yield every line of ``chunks``; memory is bounded by ``line_max_bytes`` and one chunk."""
    held = _Held(line_max_bytes)
    for chunk in chunks:
        if chunk.lost is not None:
            # Bytes are missing here: what was held cannot be continued by what comes behind them.
            if held.length:
                yield held.line(b"", chunk, None, complete=chunk.settled)
            yield Line(chunk.offset, chunk.size, None, chunk.resume, lost=chunk.lost, settled=chunk.settled)
            continue
        start = 0
        while (end := chunk.data.find(b"\n", start)) >= 0:
            part = chunk.data[start:end]
            resume = chunk.offset + end + 1 if chunk.exact else None
            if resume is None and end + 1 == len(chunk.data):
                resume = chunk.resume
            if held.length:
                yield held.line(part, chunk, resume)
            else:
                offset = chunk.offset + start if chunk.exact else chunk.offset
                yield _line(offset, part, resume, chunk.settled, line_max_bytes)
            start = end + 1
        if start < len(chunk.data):
            held.add(chunk.data[start:], chunk.offset + start if chunk.exact else chunk.offset)
    if held.length:
        yield held.line(b"", None, None, complete=False)


def _line(offset: int, part: bytes, resume: int | None, settled: bool, line_max_bytes: int) -> Line:
    if len(part) > line_max_bytes:
        return Line(offset, len(part), None, resume, lost=_TOO_LONG, settled=settled)
    return Line(offset, len(part), part, resume, settled=settled)


class _Held:
    """The beginning of a line whose end has not come yet."""

    def __init__(self, line_max_bytes: int) -> None:
        self._max = line_max_bytes
        self._parts: list[bytes] = []
        self._offset = 0
        self.length = 0

    def add(self, part: bytes, offset: int) -> None:
        if not self.length:
            self._offset = offset
        self.length += len(part)
        if self.length > self._max:
            self._parts.clear()
        else:
            self._parts.append(part)

    def line(self, last: bytes, chunk: Chunk | None, resume: int | None, *, complete: bool = True) -> Line:
        self.add(last, 0)
        fits = self.length <= self._max
        line = Line(
            self._offset,
            self.length,
            b"".join(self._parts) if fits else None,
            resume,
            complete,
            lost="" if fits else _TOO_LONG,
            settled=complete and chunk is not None and chunk.settled,
        )
        self._parts, self.length = [], 0
        return line
