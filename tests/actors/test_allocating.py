"""Threads of a process of our own share two heaps of the C library, where it would give each its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
import trio
import trio.testing

from session_query.actors.hosts import allocating
from session_query.actors.hosts.allocating import (
    GIVE_BACK_EVERY_S,
    HEAPS,
    give_back_regularly,
    share_heaps,
)

CODE = """
import ctypes, sys, threading
from session_query.actors.hosts.allocating import share_heaps

def hold(ready, done, kept):
    kept.append(bytearray(50_000))
    ready.wait()
    done.wait()

print(share_heaps() if sys.argv[1] == "share" else "untouched", flush=True)
ready, done, kept = threading.Barrier(7), threading.Barrier(7), []
for _ in range(6):
    threading.Thread(target=hold, args=(ready, done, kept)).start()
ready.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, stream)
libc.fflush(stream)
done.wait()
"""


def _is_glibc() -> bool:
    try:
        return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_info")
    except OSError:
        return False


def _told(how: str, **environment: str) -> tuple[str, int]:
    """What ``share_heaps`` said in a process of its own, and how many heaps seven threads then had."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", CODE, how]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=inherited | environment, timeout=60
    )
    said, _, rest = done.stdout.partition("\n")
    return said, rest.count("<heap nr=")


@pytest.mark.skipif(not _is_glibc(), reason="another C library has no such heaps")
def test_threads_share_few_heaps() -> None:
    assert _told("share") == ("True", HEAPS)
    said, heaps = _told("leave")
    assert (said, heaps > HEAPS) == ("untouched", True)


@pytest.mark.skipif(not _is_glibc(), reason="another C library has no such heaps")
def test_what_the_environment_says_stands() -> None:
    assert _told("share", MALLOC_ARENA_MAX="4") == ("False", 4)


async def test_where_there_is_no_such_thing_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: _Without())
    assert not share_heaps()
    await give_back_regularly()  # returns
    monkeypatch.setattr(sys, "platform", "win32")
    assert not share_heaps()
    await give_back_regularly()


class _Without:
    """A C library that has none of it."""

    def __getitem__(self, name: str) -> object:
        raise AttributeError(name)


@pytest.mark.skipif(not _is_glibc(), reason="another C library has no such heaps")
async def test_free_pages_are_given_back_again_and_again(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(allocating, "_function", lambda *_: asked.append)
    with trio.move_on_after(10 * GIVE_BACK_EVERY_S):
        await give_back_regularly()
    assert asked
    assert set(asked) == {0}
