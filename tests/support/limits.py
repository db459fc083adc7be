"""Code for child processes: what a process may not do, set before anything of ours is imported."""

from __future__ import annotations

from typing import Final

OBEY_MODES: Final = """
import ctypes, os, struct
if os.geteuid() == 0:  # the superuser may write everywhere: give that power up
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("Ii", 0x20080522, 0)
    held = ctypes.create_string_buffer(24)
    assert libc.capget(header, held) == 0
    words = list(struct.unpack("6I", held.raw))
    for at in (0, 1, 2):  # effective, permitted, inheritable: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        words[at] &= ~(1 << 1 | 1 << 2)
    assert libc.capset(header, struct.pack("6I", *words)) == 0
"""
"""After this the modes of files hold, whoever runs the tests. Linux."""


def files_of_at_most(size_bytes: int) -> str:
    """No file may grow beyond this: writing on fails as it does on a full disk."""
    return f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size_bytes}, {size_bytes}))\n"
