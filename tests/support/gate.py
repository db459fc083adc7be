"""A job that holds a thread until the test lets it go on; bounded, so that a failing test ends."""

from __future__ import annotations

import threading
from typing import Final

import trio

BOUND_S: Final = 20.0


class Gate:
    """Call it in a thread; it returns when ``opened`` is set."""

    def __init__(self) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> bool:
        self.begun.set()
        return self.opened.wait(BOUND_S)

    async def reached(self) -> None:
        """Wait until the thread stands before it."""
        assert await trio.to_thread.run_sync(self.begun.wait, BOUND_S)
