"""Titles of many sessions at once: the batch observation of SPEC 4.6, with the fold of SPEC 9."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from ..protocol.collected import Caller
from ..protocol.errors import Code, QueryError
from ..protocol.records import Title, TitleItem
from ..protocol.signal import Signal
from ..protocol.titles import fold_title
from .circle import Circle, Entry, Shown
from .corpus import Corpus
from .mounted import Told


@attrs.define(eq=False)
class Titles:
    """Reads titles. ``workers``: how many logs of mounted providers are inspected at once (SPEC 4.9)."""

    corpus: Corpus
    workers: int

    async def read(self, caller: Caller, session_ids: Sequence[str], signal: Signal) -> list[TitleItem]:
        """One item for each id, in the order given. A failure is its item's own.

        Live sessions are answered before anything is asked; one listing serves the rest. Sessions in the
        index bring their title along (SPEC 14 L31); a provider's logs are inspected, each let go before
        its worker takes the next.
        Cancellation: no further log is begun; begun ones settle.
        """
        known = await self.corpus.known(caller, session_ids)
        items = {one: _live_item(known, one) for one in session_ids}
        rest = [one for one, item in items.items() if item is None]
        if rest:
            items |= await self._stored(caller, rest, known, signal)
        return [item for item in items.values() if item is not None]

    async def _stored(
        self, caller: Caller, rest: Sequence[str], known: Circle, signal: Signal
    ) -> dict[str, TitleItem]:
        circle, told = known, Told()
        if self.corpus.mounted.names:
            circle, told = await self.corpus.around(caller, rest, signal)
        items: dict[str, TitleItem] = {}
        queue = iter(rest)

        async def worker() -> None:
            for session_id in queue:
                if signal.aborted:
                    return
                items[session_id] = await self._item(circle, told, session_id, signal)

        if not self.corpus.mounted.names:
            await worker()
            return items
        async with trio.open_nursery() as nursery:
            for _ in range(min(self.workers, len(rest))):
                nursery.start_soon(worker)
        return {one: items[one] for one in rest if one in items}

    async def _item(self, circle: Circle, told: Told, session_id: str, signal: Signal) -> TitleItem:
        entry = circle.resolve(session_id)
        try:
            if entry is None:
                told.raise_failure()
                raise QueryError(Code.SESSION_NOT_FOUND)
            return _shown_item(session_id, circle.show(entry), await self._title(entry, signal))
        except QueryError as failure:
            return TitleItem(session_id=session_id, error=failure)

    async def _title(self, entry: Entry, signal: Signal) -> Title | None:
        if entry.live is not None:
            return _live_title(entry)
        if entry.stored is None or entry.provider is not None:
            return fold_title(await self.corpus.events(entry, signal))
        state = entry.stored.state
        failure = state.error or state.title_error
        if failure is not None:
            raise QueryError(Code(failure))
        return state.title


def _live_item(circle: Circle, session_id: str) -> TitleItem | None:
    """The item of a session that is live now; None for every other."""
    entry = circle.resolve(session_id)
    if entry is None or entry.live is None:
        return None
    try:
        return _shown_item(session_id, circle.show(entry), _live_title(entry))
    except QueryError as failure:
        return TitleItem(session_id=session_id, error=failure)


def _live_title(entry: Entry) -> Title | None:
    assert entry.live is not None
    if entry.live.title_error is not None:
        raise QueryError(Code(entry.live.title_error))
    return entry.live.title


def _shown_item(session_id: str, shown: Shown, title: Title | None) -> TitleItem:
    return TitleItem(session_id=session_id, header=attrs.evolve(shown.header, id=session_id), title=title)
