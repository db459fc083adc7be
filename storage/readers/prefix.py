"""Does a log still begin with what was read of it? A digest over its head and the bytes before an offset.

Not over the whole prefix: logs reach gigabytes and grow by lines. A rewrite that keeps length, head
and the last bytes before the offset is not seen here; it moves the stamp of the file (size, mtime)
only by chance. Writers that rewrite in place change the end, which is what is looked at.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

SPAN_BYTES: Final = 8192
WHOLLY_DIGESTED_BYTES: Final = 2 * SPAN_BYTES
"""Up to this offset nothing before it escapes the digest."""
DIGEST_BYTES: Final = 8
"""A log that is made to collide deceives nobody but its own readers, and they could be told lies plainly."""


def prefix_digest(path: Path, offset: int) -> bytes:
    """Digest of the first and the last 8 KiB before ``offset``, and of ``offset`` itself. Raises: OSError."""
    digest = hashlib.blake2b(offset.to_bytes(8, "big"), digest_size=DIGEST_BYTES)
    with path.open("rb", buffering=0) as file:
        digest.update(file.read(min(offset, SPAN_BYTES)))
        if offset > SPAN_BYTES:
            start = max(SPAN_BYTES, offset - SPAN_BYTES)
            file.seek(start)
            digest.update(file.read(offset - start))
    return digest.digest()


def ends_with(path: Path, offset: int, expected: bytes) -> bool:
    """True if the bytes of ``path`` before ``offset`` end with ``expected``. Raises: OSError."""
    with path.open("rb", buffering=0) as file:
        file.seek(max(0, offset - len(expected)))
        return file.read(len(expected)) == expected


def prefix_verifies(path: Path, offset: int, expected: bytes) -> bool:
    """True if ``path`` still holds ``offset`` bytes whose digest is ``expected``. Raises: OSError."""
    return path.stat().st_size >= offset and prefix_digest(path, offset) == expected
