"""Split a stream of bytes into lines, on the byte 0x0A and on nothing else.

U+2028, U+2029, U+0085, a lone CR, VT and FF all stand raw inside valid JSON strings, so neither
``str.splitlines`` nor universal newlines will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

BLOCK_BYTES: Final = 1 << 18
"""One read. 256 KiB: larger blocks gain nothing measurable, smaller ones cost calls."""
LINE_MAX_BYTES: Final = 64 << 20
"""A longer line is a loss and is passed over without being held in memory."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a log as they come, and where a later read may go on behind them.

    ``resume`` is an offset in the *file* for the end of this chunk, or None when reading cannot start
    there (the middle of a compressed frame). ``exact`` tells that file offsets are stream offsets, so
    that every line end is a place to go on from.
    """

    data: bytes
    resume: int | None
    exact: bool = False


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without its line feed.

    ``offset`` and ``length`` are bytes of the stream, line feed excluded. ``resume`` is the file offset
    behind the line, None if no read can start there. ``data`` is None for a line above the bound.
    """

    offset: int
    length: int
    data: bytes | None
    resume: int | None
    complete: bool


def file_chunks(path: Path, offset: int) -> Iterator[Chunk]:
    """Read ``path`` from ``offset`` to its end in blocks. Raises: OSError."""
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        while block := file.read(BLOCK_BYTES):
            offset += len(block)
            yield Chunk(block, offset, exact=True)


def split_lines(
    chunks: Iterable[Chunk], offset: int = 0, line_max_bytes: int = LINE_MAX_BYTES
) -> Iterator[Line]:
    """Yield every line of ``chunks``, the last one with ``complete=False`` if no line feed ends it.

    ``offset`` is where the stream starts. Memory is bounded by ``line_max_bytes`` and one chunk.
    """
    held: list[bytes] = []
    held_bytes = 0
    dropped = False
    for chunk in chunks:
        parts = chunk.data.split(b"\n")
        base = chunk.resume - len(chunk.data) if chunk.exact and chunk.resume is not None else None
        inside = 0
        for index, part in enumerate(parts[:-1]):
            length = held_bytes + len(part)
            dropped = dropped or length > line_max_bytes
            data = None if dropped else (b"".join([*held, part]) if held else part)
            inside += len(part) + 1
            resume = base + inside if base is not None else None
            if index == len(parts) - 2 and not parts[-1] and resume is None:
                resume = chunk.resume
            yield Line(offset, length, data, resume, complete=True)
            offset += length + 1
            held, held_bytes, dropped = [], 0, False
        if parts[-1]:
            held_bytes += len(parts[-1])
            dropped = dropped or held_bytes > line_max_bytes
            held = [] if dropped else [*held, parts[-1]]
    if held_bytes:
        yield Line(offset, held_bytes, None if dropped else b"".join(held), None, complete=False)
