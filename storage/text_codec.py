"""Compressed copies of document texts: the only source for snippets, checks and deletion (SPEC 16.2.3).

A copy is one byte that names the scheme, then the bytes. Texts of a few words stay as they are.
"""

from __future__ import annotations

from typing import Final

import zstandard

from ..protocol.json_encode import to_utf8

_PLAIN: Final = b"\x00"
_ZSTD: Final = b"\x01"
_PLAIN_BYTES_MAX: Final = 24
LEVEL: Final = 3


class TextCodec:
    """One owner at a time: the compressor is not to be shared between threads."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, text: str) -> bytes:
        """Return the stored form of ``text``; lone surrogates become U+FFFD (SPEC 0)."""
        return self.pack_bytes(to_utf8(text))

    def unpack(self, blob: bytes) -> str:
        """Return the text of ``pack``'s result."""
        return self.unpack_bytes(blob).decode("utf-8")

    def pack_bytes(self, data: bytes) -> bytes:
        """The same for bytes."""
        if len(data) <= _PLAIN_BYTES_MAX:
            return _PLAIN + data
        packed = self._compressor.compress(data)
        return _ZSTD + packed if len(packed) < len(data) else _PLAIN + data

    def unpack_bytes(self, blob: bytes) -> bytes:
        """Return what ``pack_bytes`` was given."""
        return self._decompressor.decompress(blob[1:]) if blob[:1] == _ZSTD else blob[1:]
