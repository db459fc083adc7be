"""The garbage collector of a process that is ours alone. An embedded service leaves its host's as it is.

A full collection looks at every container there is: with 1,000 connections 214,000 objects, during which
nothing else runs. Measured under the load bench (64 runtimes, 64 agents, 872 idle connections, 2 cores with
other load) with Python's own thresholds: five full collections in 25 s, 84 to 483 ms each, and every read
that came meanwhile waited for them. So: what the start made is set aside for good, and collections come
seldom; then two came in 25 s, of 37 and 48 ms. Almost nothing of ours needs them: requests make no cycles.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 2, 500)
"""Containers made and not freed before a look at the youngest (2 ms), of those before one at the middle-aged
too, of those before one at all (CPython 3.11 does that only when a quarter is new). The second is small, for
a look at the middle-aged takes as long as there are of them: with 10 the events of a long log, 200,000 young
containers at a time, stopped everybody for 60 to 90 ms. The third is large: old cycles are few."""


def calm_collector() -> None:
    """Set it up. Call it when everything is open that stays open: before the first connection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
