"""The C library's heaps in a process that is ours alone. An embedded service leaves its host's as they are.

glibc gives new threads heaps of their own, up to eight for each core. What a search frees in one of them no
search in another can have, and each grows to the most its threads ever needed at once: after 150 s of the
soak (50 runtimes, 20 agents, 2 cores) seven heaps held 45 MiB for 26 in use, two hold 34. Threads that share
a heap wait for each other in the moment of a larger allocation; searches in one to three threads cost the
same CPU either way.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

HEAPS: Final = 2
_M_ARENA_MAX: Final = -8


def share_heaps() -> bool:
    """Let all threads share so few heaps. Call it before the first thread starts.

    Returns: whether the C library took it. False where there is none like that, or where the environment
    (``MALLOC_ARENA_MAX``) says how many there are to be; all goes on as it is then.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    return bool(mallopt(_M_ARENA_MAX, HEAPS))
