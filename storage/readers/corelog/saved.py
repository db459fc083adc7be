"""The state a mapper hands from one read to the next: a struct, a version, compressed.

Open runs hold native records that repeat nearly every byte, and surfaces are long runs of numbers:
zlib makes a tenth of both.
"""

from __future__ import annotations

import zlib
from typing import Final, TypeVar

import msgspec

_S = TypeVar("_S", bound=msgspec.Struct)
LEVEL: Final = 1
"""A tenth of the plain state becomes an eighth, in a quarter of the time: one is made every 2 MB of log."""
_MAX_BYTES: Final = 256 << 20


def pack_state(version: int, state: msgspec.Struct) -> bytes:
    """``state`` as bytes, to be read back by ``unpack_state`` with the same ``version``."""
    return version.to_bytes(2, "big") + zlib.compress(msgspec.msgpack.encode(state), LEVEL)


def unpack_state(version: int, data: bytes, kind: type[_S]) -> _S:
    """Raises: ValueError: another version wrote it, or it is damaged."""
    if data[:2] != version.to_bytes(2, "big"):
        raise ValueError("state of another version")
    try:
        inflater = zlib.decompressobj()
        inflated = inflater.decompress(data[2:], _MAX_BYTES)
        if not inflater.eof:
            raise ValueError("damaged state: cut")
        return msgspec.msgpack.decode(inflated, type=kind)
    except (zlib.error, msgspec.MsgspecError) as exc:
        raise ValueError("damaged state") from exc
