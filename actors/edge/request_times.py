"""How long requests took, by what they ask for: cumulative buckets, as Prometheus histograms want them.

A request's time runs from its arrival until its answer is known: waiting in line counts, a slow peer does
not. The classes are few and ours, so that no client can grow the table by inventing methods.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

import attrs

from ...protocol.json_value import JSON
from ...protocol.wire import messages as m
from ...protocol.wire.methods import METHODS

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds, inclusive. An exact read takes below one millisecond, a search has 30 s at most."""

_OTHER: Final = "other"
_OF_TOOL: Final[Mapping[str, str]] = {
    "session_search": "search",
    "session_event_search": "search",
    "session_trace": "trace",
    "session_event_trace": "trace",
    "session_event_read": "read",
}
_TRACES: Final = frozenset({"trace_session", "trace_event", "lineage", "event_trace"})
_LISTS: Final = frozenset({"list_sessions", "filter_sessions", "workspaces", "sessions", "sources"})
_LOOKS: Final = frozenset({"health", "statistics", "metrics"})
_WORKS: Final = frozenset({"index", "add_source", "drop_source", "doctor", "forget"})
_FINDS: Final = frozenset({"find_sessions", "find_events"})

CLASSES: Final = (
    "append", "attach", "search", "trace", "read", "list", "fetch", "tools", "look", "maintain", _OTHER,
)  # fmt: skip


def request_class(message: m.Request) -> str:
    """One of ``CLASSES``."""
    match message:
        case m.Append():
            return "append"
        case m.Attach() | m.Detach():
            return "attach"
        case m.Fetch():
            return "fetch"
        case m.ToolsRequest():
            return "tools"
        case m.Call():
            return _OF_TOOL.get(message.tool, _OTHER)
        case m.Query():
            return _class_of_method(message.method)


def _class_of_method(name: str) -> str:
    method = METHODS.get(name)
    if method is None:
        return _OTHER
    if method.searches or name in _FINDS:
        return "search"
    for kind, names in (("trace", _TRACES), ("list", _LISTS), ("look", _LOOKS), ("maintain", _WORKS)):
        if name in names:
            return kind
    return "read"


@attrs.define(eq=False)
class Histogram:
    """Seconds go in; counts by bound come out."""

    sum_s: float = attrs.field(default=0.0, init=False)
    _counts: list[int] = attrs.field(factory=lambda: [0] * (len(BOUNDS_S) + 1), init=False, repr=False)

    def note(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds

    def told(self) -> dict[str, JSON]:
        """``count``, ``sum_s``, and for each bound how many took at most so long (``+Inf``: all)."""
        names = [*(format(bound, "g") for bound in BOUNDS_S), "+Inf"]
        within = list(accumulate(self._counts))
        buckets: dict[str, JSON] = dict(zip(names, within, strict=True))
        return {"count": within[-1], "sum_s": round(self.sum_s, 6), "buckets": buckets}


@attrs.define(eq=False)
class RequestTimes:
    """A histogram for every class, from the start on: a class nobody has asked for yet reads as zero."""

    _of: dict[str, Histogram] = attrs.field(
        factory=lambda: {name: Histogram() for name in CLASSES}, init=False, repr=False
    )

    def note(self, message: m.Request, seconds: float) -> None:
        self._of[request_class(message)].note(seconds)

    def told(self) -> dict[str, JSON]:
        return {name: histogram.told() for name, histogram in self._of.items()}
