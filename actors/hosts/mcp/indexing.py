"""Progress of the first index, for a client that asked to see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import attrs
import trio

from ....protocol.json_value import JSON
from ....protocol.wire import messages as m
from ...clients import Client
from .link import Link

Report: TypeAlias = Callable[[int, int | None, str], Awaitable[None]]
"""``report(done, total, message)``: tell the client how far it is."""

WAIT_S: Final = 20.0
"""How long a search waits for the first index while its progress is shown. Hosts give a call 60 s or more,
of which the search itself may take 30."""


@attrs.define(eq=False)
class _Latest:
    """The last news, for a slower teller; news in between are left out."""

    news: m.Progress | None = None
    arrived: trio.Event = attrs.field(factory=trio.Event)

    def put(self, news: m.Progress) -> None:
        self.news = news
        self.arrived.set()


async def follow_first_index(link: Link, report: Report) -> bool:
    """Wait for the first index, telling how far it is. False: it takes longer than ``WAIT_S``.

    Raises: what asking the service raises.
    Cancellation: passes; the index goes on.
    """
    latest, finished, failure = _Latest(), False, None

    async def index(client: Client) -> JSON:
        return await client.query("index", {"full": False}, on_progress=latest.put)

    with trio.move_on_after(WAIT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell, latest, report)
            try:
                await link.ask(index)
                finished = True
            except Exception as exc:
                failure = exc
            nursery.cancel_scope.cancel(reason="the index is there")
    if failure is not None:
        raise failure
    return finished


async def _tell(latest: _Latest, report: Report) -> None:
    told = -1
    while True:
        await latest.arrived.wait()
        latest.arrived = trio.Event()
        news = latest.news
        if news is None or news.done <= told:  # MCP wants it to grow
            continue
        told = news.done
        await report(news.done, news.total, _message(news))


def _message(news: m.Progress) -> str:
    if not news.total:
        return "reading session logs"
    share = min(99, 100 * news.done // news.total)
    return f"reading session logs: {share} %"
