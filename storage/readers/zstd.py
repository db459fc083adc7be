"""Zstandard logs, frame by frame: writers append independent frames, each with its own checksum.

A decoder that stops after one frame returns only the first batch, in silence. Cutting at the magic
bytes is no better: they may stand inside a block. So frames are walked by the format (RFC 8878):
frame header, 3-byte block headers up to the last block, checksum. The magic is looked for only
behind damage, and a place it is found at must walk to the end of the file or to another frame.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

import attrs
import zstandard

from .lines import BLOCK_BYTES, TORN_TAIL, Chunk, open_regular

MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = b"\x2a\x4d\x18"
WINDOW_MAX_BYTES: Final = 1 << 27
"""What zstd's own decoder accepts by default; a frame that asks for more is damage."""
HOLD_MAX_BYTES: Final = 4 << 20
"""A frame up to this size is handed on only once its checksum held. A larger one streams, so that one
frame around a whole log does not become one block of memory; its records still have to parse."""
_EXPANDED_MAX_BYTES: Final = 1 << 30
_RATIO_MAX: Final = 1000
"""A frame may expand to 1 GiB, or to 1000 times its size if that is more: no bomb, no endless read."""
_SEARCH_BYTES: Final = 1 << 20
_TRIES_MAX: Final = 256


@attrs.frozen
class Frame:
    """Where one frame stands. ``whole`` is False if the file ends inside it."""

    start: int
    end: int
    whole: bool
    skippable: bool = False


class _Torn(Exception):
    """The file ends inside the frame."""


def zstd_chunks(path: Path, offset: int) -> Iterator[Chunk]:
    """Decompress ``path`` from the frame that starts at ``offset``. Raises: OSError.

    A whole frame that does not decompress is one lost record (nobody can tell how many it held); the
    next frame goes on. The last frame, if torn, yields what its whole blocks hold, unsettled.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        while offset < size:
            frame, cause = _frame_at(file, offset, size)
            found = None
            if frame is None or not frame.whole:
                found = _next_frame(file, offset + 1, size)
            torn = frame is not None and not frame.whole and found is None
            if frame is not None:
                frame = attrs.evolve(frame, end=frame.end if found is None else found)
                cause = yield from _frame_chunks(file, frame, settled=not torn)
                if cause is None:
                    offset = frame.end
                    continue
                if frame.whole:
                    found = _next_frame(file, offset + 1, size, before=frame.end) or frame.end
            end = size if found is None else found
            resume = None if torn else end
            yield Chunk(b"", offset, resume, lost=cause, size=end - offset, settled=not torn)
            offset = end


def _frame_at(file: BinaryIO, offset: int, size: int) -> tuple[Frame | None, str | None]:
    try:
        return walk_frame(file, offset, size), None
    except ValueError as exc:
        return None, f"not a zstd frame: {exc}"


def walk_frame(file: BinaryIO, start: int, size: int) -> Frame:
    """Find the end of the frame at ``start`` from its headers alone. Raises: ValueError: none is there."""
    try:
        head = _read(file, start, 4)
        if head[1:] == _SKIPPABLE and head[0] >> 4 == 5:
            end = start + 8 + int.from_bytes(_read(file, start + 4, 4), "little")
            return Frame(start, min(end, size), whole=end <= size, skippable=True)
        if head != MAGIC:
            raise ValueError("no zstd magic")
        return _walk_blocks(file, start, size)
    except _Torn:
        # Fewer bytes than a magic number can still become one.
        if size - start < 4 and not MAGIC.startswith(_read(file, start, size - start)):
            raise ValueError("no zstd magic") from None
        return Frame(start, size, whole=False)


def _walk_blocks(file: BinaryIO, start: int, size: int) -> Frame:
    descriptor = _read(file, start + 4, 1)[0]
    if descriptor & 0b1000:
        raise ValueError("reserved bit set in a frame header")
    single, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
    content = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    at = start + 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + content
    last = False
    while not last:
        head = int.from_bytes(_read(file, at, 3), "little")
        last, kind, length = bool(head & 1), head >> 1 & 3, head >> 3
        if kind == 3 or length > 1 << 17:
            raise ValueError("reserved or oversized block")
        at += 3 + (1 if kind == 1 else length)
    at += 4 * checksum
    return Frame(start, min(at, size), whole=at <= size)


def _read(file: BinaryIO, at: int, count: int) -> bytes:
    file.seek(at)
    data = file.read(count)
    if len(data) < count:
        raise _Torn
    return data


def _next_frame(file: BinaryIO, at: int, size: int, before: int | None = None) -> int | None:
    """The next place where a whole frame stands that decompresses, or None. Bounded in tries."""
    for _ in range(_TRIES_MAX):
        found = _find_magic(file, at, size)
        if found is None or (before is not None and found >= before):
            return None
        try:
            frame = walk_frame(file, found, size)
            if frame.whole:
                for _block in _decompress(file, frame):
                    pass
                return found
        except (ValueError, zstandard.ZstdError):
            pass  # magic bytes inside a block
        at = found + 1
    return None


def _find_magic(file: BinaryIO, at: int, size: int) -> int | None:
    while at < size:
        file.seek(at)
        block = file.read(_SEARCH_BYTES)
        found = block.find(MAGIC)
        if found >= 0:
            return at + found
        if len(block) < _SEARCH_BYTES:
            return None
        at += len(block) - len(MAGIC) + 1
    return None


def _frame_chunks(file: BinaryIO, frame: Frame, *, settled: bool) -> Generator[Chunk, None, str | None]:
    """Yield the content of one frame; return why it is damaged or torn, None for a sound one."""
    if frame.skippable and frame.whole:
        return None
    held: list[bytes] = []
    held_bytes = 0
    cause = None
    try:
        for block in _decompress(file, frame):
            held.append(block)
            held_bytes += len(block)
            if held_bytes > HOLD_MAX_BYTES:
                yield Chunk(b"".join(held), frame.start, settled=settled)
                held, held_bytes = [], 0
    except (ValueError, zstandard.ZstdError) as exc:
        cause = f"bad zstd frame: {exc}"
    if not frame.whole:
        yield Chunk(b"".join(held), frame.start, settled=settled)
        return "cut zstd frame" if settled else TORN_TAIL
    if cause is None:
        yield Chunk(b"".join(held), frame.start, frame.end)
    return cause


def _decompress(file: BinaryIO, frame: Frame) -> Iterator[bytes]:
    """Raises: zstandard.ZstdError, or ValueError for a frame that expands beyond reason."""
    decoder = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX_BYTES)
    allowed = max(_EXPANDED_MAX_BYTES, _RATIO_MAX * (frame.end - frame.start))
    piece = cast(BinaryIO, _Slice(file, frame.start, frame.end))
    with decoder.stream_reader(piece, read_size=BLOCK_BYTES, closefd=False) as reader:
        while block := reader.read(BLOCK_BYTES):
            allowed -= len(block)
            if allowed < 0:
                raise ValueError("expands beyond the bound")
            yield block


class _Slice:
    """The bytes of one frame as a file of their own: all that the decompressor asks of one is ``read``."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self._file, self._at, self._end = file, start, end

    def read(self, count: int = -1) -> bytes:
        left = self._end - self._at
        self._file.seek(self._at)
        data = self._file.read(left if count < 0 else min(count, left))
        self._at += len(data)
        return data
