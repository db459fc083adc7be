"""Bells between a thread and a loop, of every kind this system has."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from session_query.actors.bell import Bell, SocketBell, open_bell

KINDS = [SocketBell, open_bell]


@pytest.fixture(params=KINDS, ids=["socket", "best"])
def bell(request: pytest.FixtureRequest) -> Iterator[Bell]:
    made = request.param()
    assert isinstance(made, Bell)
    yield made
    made.close()


async def test_a_thread_wakes_the_task_that_waits(bell: Bell) -> None:
    thread = threading.Thread(target=bell.ring)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.heard)
        await trio.testing.wait_all_tasks_blocked()
        thread.start()
    thread.join()


async def test_what_was_rung_before_is_heard_until_it_is_stilled(bell: Bell) -> None:
    for _ in range(3):
        bell.ring()
    await bell.heard()
    await bell.heard()
    bell.still()
    bell.still()
    with trio.move_on_after(0) as scope:
        await bell.heard()
    assert scope.cancelled_caught
    bell.ring()
    await bell.heard()


async def test_ringing_never_waits(bell: Bell) -> None:
    for _ in range(100_000):
        bell.ring()
    await bell.heard()


def test_linux_has_the_cheap_one() -> None:
    bell = open_bell()
    bell.close()
    assert (type(bell) is not SocketBell) == (sys.platform == "linux")
