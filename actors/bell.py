"""A bell that a thread rings and a task hears: the cheapest way into a loop that trio leaves open.

``TrioToken.run_sync_soon`` passes a lock, a socket and a task of the loop's own on its way: some 30 us of CPU
more for each time (2 cores, Python 3.11).
"""

from __future__ import annotations

import os
import socket
import sys
from abc import ABC, abstractmethod

import trio


class Bell(ABC):
    """Rung several times, it is heard at least once behind the last of them. Its owner closes it."""

    @abstractmethod
    def ring(self) -> None:
        """Wake the task that waits, or the next one to wait. Any thread; never waits."""

    @abstractmethod
    async def heard(self) -> None:
        """Wait until it has been rung. One task at a time. Cancellation: at once."""

    @abstractmethod
    def still(self) -> None:
        """Stop the ringing: what was rung before is heard no more."""

    @abstractmethod
    def close(self) -> None:
        """Give it up; nobody may wait or ring any more."""


class SocketBell(Bell):
    """A pair of sockets: on every system."""

    def __init__(self) -> None:
        self._inside, self._outside = socket.socketpair()
        self._inside.setblocking(False)
        self._outside.setblocking(False)

    def ring(self) -> None:
        try:
            self._outside.send(b"!")
        except BlockingIOError:
            return  # it rings so loudly that nothing more goes in

    async def heard(self) -> None:
        await trio.lowlevel.wait_readable(self._inside)

    def still(self) -> None:
        try:
            self._inside.recv(65_536)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._inside.close()
        self._outside.close()


if sys.platform == "linux":

    class EventBell(Bell):
        """A counter of the kernel's: 10 us less than a socket for each time."""

        def __init__(self) -> None:
            self._descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

        def ring(self) -> None:
            os.eventfd_write(self._descriptor, 1)

        async def heard(self) -> None:
            await trio.lowlevel.wait_readable(self._descriptor)

        def still(self) -> None:
            try:
                os.eventfd_read(self._descriptor)
            except BlockingIOError:
                return

        def close(self) -> None:
            os.close(self._descriptor)


def open_bell() -> Bell:
    """The best bell this system has. A Python for Linux may be built without event counters."""
    if sys.platform == "linux" and hasattr(os, "eventfd"):
        return EventBell()
    return SocketBell()
