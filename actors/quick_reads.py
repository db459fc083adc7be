"""Exact reads that take some tens of microseconds, answered in the loop without a task of their own.

``session_event_read`` of a journaled or live session is a look at what is remembered of the session, one
statement by key, and a text. Run as a task with a scope for each of its three questions it cost 250 us of
CPU beside the transport's 80; in one step it costs 65 (2 cores, Python 3.11, answers of 1.1 KB).

Only successes are told from here. Whatever is unusual (a failure, a large event, a log that lies elsewhere, a
mounted provider) is left to the ordinary way, which asks again and tells it with all its checks. Nothing
can come between two looks inside one step, so there is one look at who the session is (SPEC 10.7.4).
"""

from __future__ import annotations

from typing import Final

import attrs

from ..protocol.collected import Caller, FoundTitle
from ..protocol.reads import Window, check_window
from ..protocol.tools.arguments import EventReadArguments, decode_arguments
from ..protocol.tools.authority import is_authorized, own_id, require_caller
from ..protocol.tools.checks import check_seq
from ..protocol.tools.render_read import render_events
from .circle import Shown
from .corpus import Corpus
from .logs import POINT_BYTES
from .pool import Pool

READ_TOOL: Final = "session_event_read"
QUICK_BYTES: Final = POINT_BYTES // 4
"""Events of at most so many bytes of JSON in all: what is rendered here holds the loop for 0.1 ms at most."""
_ALONE: Final = Window()


@attrs.define(eq=False)
class QuickReads:
    """``read_window_max``: as ``Exact``'s."""

    corpus: Corpus
    pool: Pool
    read_window_max: int

    def text(self, caller: Caller, raw: object) -> str | None:
        """The text of ``session_event_read`` with these arguments; None: ask the ordinary way."""
        try:
            return self._text(require_caller(caller), raw)
        except Exception:  # whatever it is, the ordinary way meets it again and tells it at its boundary
            return None

    def _text(self, caller: Caller, raw: object) -> str | None:
        arguments = decode_arguments(READ_TOOL, EventReadArguments, raw)
        seq = check_seq("seq", arguments.seq)
        window = _ALONE
        if arguments.before or arguments.after:
            window = check_window(arguments.before, arguments.after, maximum=self.read_window_max)
        wanted = arguments.session_id if isinstance(arguments.session_id, str) else own_id(caller)
        if wanted is None or self.pool.is_full:
            return None
        shown = self.corpus.shown_nowait(caller, wanted)
        if shown is None or shown.header.id != wanted or not is_authorized(caller, shown.header):
            return None
        title = _title(shown)
        if title is None:
            return None
        point = self.corpus.logs.point_window(shown.entry, seq, window, QUICK_BYTES)
        if point is None:
            return None
        place, events = point
        return render_events(wanted, events[place], events, title)


def _title(shown: Shown) -> FoundTitle | None:
    """The title as it is known now; None when there is something to say about why it is not."""
    known = shown.entry.live
    if known is None:
        if shown.entry.stored is None:
            return None
        state = shown.entry.stored.state
        if state.error is not None or state.title_error is not None:
            return None
        return FoundTitle(text=None if state.title is None else state.title.title)
    if known.title_error is not None:
        return None
    return FoundTitle(text=None if known.title is None else known.title.title)
