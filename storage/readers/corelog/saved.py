"""The state a mapper hands from one read to the next: a struct and a version.

Open runs hold native records that repeat nearly every byte, and surfaces are long runs of numbers: whoever
keeps a state compresses it, better than could be done here without a dictionary.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

_S = TypeVar("_S", bound=msgspec.Struct)


def pack_state(version: int, state: msgspec.Struct) -> bytes:
    """``state`` as bytes, to be read back by ``unpack_state`` with the same ``version``."""
    return version.to_bytes(2, "big") + msgspec.msgpack.encode(state)


def unpack_state(version: int, data: bytes, kind: type[_S]) -> _S:
    """Raises: ValueError: another version wrote it, or it is damaged."""
    if data[:2] != version.to_bytes(2, "big"):
        raise ValueError("state of another version")
    try:
        return msgspec.msgpack.decode(memoryview(data)[2:], type=kind)
    except msgspec.MsgspecError as exc:
        raise ValueError("damaged state") from exc
