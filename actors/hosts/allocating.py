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
from collections.abc import Callable
from typing import Final

import trio

HEAPS: Final = 2
GIVE_BACK_EVERY_S: Final = 30.0
_M_ARENA_MAX: Final = -8


def share_heaps() -> bool:
    """Let all threads share so few heaps. Call it before the first thread starts.

    Returns: whether the C library took it. False where there is none like that, or where the environment
    (``MALLOC_ARENA_MAX``) says how many there are to be; all goes on as it is then.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return False
    mallopt = _function("mallopt", ctypes.c_int, ctypes.c_int)
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, HEAPS))


async def give_back_regularly() -> None:
    """Give whole free pages inside the heaps back to the system now and then; ends if there is no way to.

    Else a heap gives back its end alone, and holds the most that it held at once. 0.1 to 1.2 ms each time.
    """
    trim = _function("malloc_trim", ctypes.c_size_t)
    while trim is not None:
        await trio.sleep(GIVE_BACK_EVERY_S)
        await trio.to_thread.run_sync(trim, 0)


def _function(name: str, *arguments: type[ctypes.c_int | ctypes.c_size_t]) -> Callable[..., int] | None:
    """A function of glibc; None where the C library is another one."""
    if sys.platform != "linux":
        return None
    try:
        found = ctypes.CDLL(None)[name]
    except (AttributeError, OSError):
        return None
    found.argtypes, found.restype = arguments, ctypes.c_int
    return found
