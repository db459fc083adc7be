"""Compressed copies of document texts: the only source for snippets, checks and deletion (SPEC 16.2.3).

Several texts are packed together, and with a dictionary of what all logs have in common. Of real logs (2.6 MB
in 339 sessions, Zstandard level 3, runs within a session), as a share of the text:

=================  =====  =====  =====  =====
characters a run   8,000 16,000 24,000 32,000
=================  =====  =====  =====  =====
no dictionary      0.344  0.318  0.305  0.300
with it                   0.302  0.291  0.287
level 5, with it          0.289  0.279  0.275
=================  =====  =====  =====  =====

A dictionary trained on 0.8 MB of other texts, four times as large, gains no more. With it packing takes
5.5 us an event of 556 made-up characters instead of 3 (of real ones 3 instead of 2.4); level 5 takes 9.
Leaving it out for runs above 16 KB gave no first build that was faster beyond noise, and 0.01 more on disk.
Unpacking a full run of 24 KB takes 10 us, with or without.

What idle time packs, across sessions, may take longer. Share of the text in runs of 24,000 characters (their
length told in advance), and time to pack a byte:

==========  =====  =====  =====  =====  =====  =====  =====
level           3      5      7      9     12     15     17
==========  =====  =====  =====  =====  =====  =====  =====
share       0.278  0.263  0.256  0.254  0.253  0.248  0.248
ns a byte       5      9     16     24     36     84    131
==========  =====  =====  =====  =====  =====  =====  =====
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import zstandard

from ..protocol.json_encode import to_utf8_text
from .text_dictionary import DICTIONARY

LEVEL: Final = 3
TIGHT_LEVEL: Final = 15
"""In idle time alone: a gigabyte of text takes 70 s more than at level 9, and stays 6 MB smaller."""
LONG_LEVEL: Final = 6
"""In idle time, of one text far longer than a run: what is told to be short looks back over 32 KB alone.
Of 2.6 MB as one text level 15 made 0.222 so, at 73 ns a byte; this makes 0.203 at 9, and 50 MB take 0.5 s."""
_LONG_BYTES: Final = 100_000
_TIGHT_BYTES: Final = 24_000
"""What is packed tightly at once: told in advance, Zstandard chooses its tables for it."""
_PLAIN: Final = b"\x00"
_ZSTD: Final = b"\x01"
_PLAIN_BYTES_MAX: Final = 24
_MAGICLESS: Final = zstandard.FORMAT_ZSTD1_MAGICLESS

_DICTIONARY: Final = zstandard.ZstdCompressionDict(DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode
_decode_steps = msgspec.msgpack.Decoder(tuple[list[int], msgspec.Raw]).decode


class TextCodec:
    """One owner at a time: a compressor is not to be shared between threads."""

    def __init__(self) -> None:
        self._compressor = _compressor(LEVEL, 0)
        self._tight: zstandard.ZstdCompressor | None = None
        self._long: zstandard.ZstdCompressor | None = None
        self._decompressor = zstandard.ZstdDecompressor(format=_MAGICLESS, dict_data=_DICTIONARY)

    def pack(self, texts: Iterable[str]) -> bytes:
        """Return the stored form of a run of texts; lone surrogates become U+FFFD (SPEC 0)."""
        return self.pack_bytes(_encode([to_utf8_text(text) for text in texts]))

    def leave(self, texts: Iterable[str]) -> bytes:
        """The same without compressing anything."""
        return _PLAIN + _encode([to_utf8_text(text) for text in texts])

    def unpack(self, blob: bytes) -> list[str]:
        """Return the texts of ``pack``'s result."""
        return _decode(self.unpack_bytes(blob))

    def unpack_some(self, blob: bytes, wanted: Sequence[int]) -> list[str]:
        """Return only the texts at some places, ascending, those beyond the end left out.

        Making all 28 texts of a run and dropping them again takes as long as decompressing it.
        """
        return self.texts_at(self.unpack_bytes(blob), wanted)

    def count_in(self, data: bytes) -> int:
        """How many texts are in what is unpacked already."""
        return _array_start(data)[0]

    def texts_in(self, data: bytes) -> list[str]:
        """All texts of what is unpacked already."""
        return _decode(data)

    def texts_at(self, data: bytes, wanted: Sequence[int]) -> list[str]:
        """Those at some places, ascending, of what is unpacked already."""
        count, at = _array_start(data)
        found: list[str] = []
        number = 0
        for place in wanted:
            if place >= count:
                break
            while True:
                start, end = _string(data, at)
                at = end
                number += 1
                if number > place:
                    break
            found.append(data[start:end].decode())
        return found

    def pack_tightly(self, steps: Sequence[int], texts: Iterable[str]) -> bytes:
        """Return the stored form of texts with the steps between their numbers, for idle time to make."""
        data = _encode((steps, [to_utf8_text(text) for text in texts]))
        if len(data) > _LONG_BYTES:
            self._long = self._long or _compressor(LONG_LEVEL, 0)
            return _packed(self._long, data)
        self._tight = self._tight or _compressor(TIGHT_LEVEL, _TIGHT_BYTES)
        return _packed(self._tight, data)

    def unpack_steps(self, blob: bytes) -> tuple[list[int], bytes]:
        """Return the steps that ``pack_tightly`` was given, and the texts as ``texts_at`` takes them."""
        steps, texts = _decode_steps(self.unpack_bytes(blob))
        return steps, bytes(texts)

    def pack_bytes(self, data: bytes) -> bytes:
        """The same for bytes: one byte that names the scheme, then the data."""
        return _packed(self._compressor, data)

    def unpack_bytes(self, blob: bytes) -> bytes:
        """Return what ``pack_bytes`` was given."""
        return self._decompressor.decompress(blob[1:]) if blob[:1] == _ZSTD else blob[1:]


def _compressor(level: int, size: int) -> zstandard.ZstdCompressor:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        source_size=size,
        dict_size=len(DICTIONARY) if size else 0,
        format=_MAGICLESS,
        write_checksum=0,
        write_dict_id=0,
    )
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=_DICTIONARY)


def _packed(compressor: zstandard.ZstdCompressor, data: bytes) -> bytes:
    if len(data) > _PLAIN_BYTES_MAX:
        packed = compressor.compress(data)
        if len(packed) < len(data):
            return _ZSTD + packed
    return _PLAIN + data


def _array_start(data: bytes) -> tuple[int, int]:
    """(how many strings follow, where the first begins) of a packed list."""
    head = data[0]
    if head < 0xA0:  # 0x90..0x9f
        return head & 0x0F, 1
    size = 2 if head == 0xDC else 4
    return int.from_bytes(data[1 : 1 + size], "big"), 1 + size


def _string(data: bytes, at: int) -> tuple[int, int]:
    """(start, end) of the characters of the string whose head stands at ``at``."""
    head = data[at]
    if head == 0xDA:  # 256..65,535 bytes: most texts
        return at + 3, at + 3 + (data[at + 1] << 8 | data[at + 2])
    if head == 0xD9:
        return at + 2, at + 2 + data[at + 1]
    if head < 0xC0:  # 0xa0..0xbf
        return at + 1, at + 1 + (head & 0x1F)
    return at + 5, at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
