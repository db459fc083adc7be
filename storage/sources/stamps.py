"""What ``stat`` says about the files of a log: equal stamps mean nothing has to be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import msgspec

SETTLE_NS: Final = 2_000_000_000
"""A file changed this short before it was looked at may change again within one tick of its clock
(FAT counts in 2 s, ext4 in about 4 ms): its stamp is not trusted until a later look."""

FileStamp: TypeAlias = tuple[int, int, int, int]
"""(device, inode, size in bytes, mtime in ns)."""


@attrs.frozen
class Stamp:
    """The stamps of a unit's files, in order; None for one that is not there.

    ``settled`` is False while another change could still leave the stamp as it is.
    """

    files: tuple[FileStamp | None, ...]
    settled: bool = True

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file[2] for file in self.files if file is not None)

    @property
    def newest_ns(self) -> int:
        """The latest mtime; 0 if no file is there."""
        return max((file[3] for file in self.files if file is not None), default=0)

    @property
    def log(self) -> FileStamp | None:
        """The log itself: the first file."""
        return self.files[0] if self.files else None

    def same(self, other: Stamp | None) -> bool:
        """Nothing has to be read again since ``other`` was taken."""
        return other is not None and other.settled and self.files == other.files


def take_stamp(files: Sequence[Path | str], now_ns: int) -> Stamp:
    """Look at the files of a unit, one ``stat`` each. ``now_ns``: wall clock, to judge ``settled``.

    Raises: OSError: a file is there and cannot be looked at.
    """
    found: list[FileStamp | None] = []
    for file in files:
        try:
            seen = os.stat(file)
        except (FileNotFoundError, NotADirectoryError):
            found.append(None)
        else:
            found.append((seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns))
    newest_ns = max([file[3] for file in found if file is not None], default=0)
    age_ns = now_ns - newest_ns  # a file from the future is as settled as it will be
    return Stamp(tuple(found), not -SETTLE_NS <= age_ns <= SETTLE_NS)


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[list[FileStamp | None], bool])


def pack_stamp(stamp: Stamp) -> bytes:
    """The stamp as it is kept in the catalog."""
    return _encoder.encode((stamp.files, stamp.settled))


def unpack_stamp(packed: bytes | None) -> Stamp | None:
    """What ``pack_stamp`` was given. Inodes above 2^63 (some network file systems) are kept as well."""
    if packed is None:
        return None
    files, settled = _decoder.decode(packed)
    return Stamp(tuple(files), settled)
