"""How long some recurring work took: a few numbers for the operator, from the latest thousand times."""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

from ..protocol.json_value import JSON

KEPT: Final = 1024


@attrs.define(eq=False)
class Durations:
    """Seconds go in, milliseconds come out."""

    count: int = attrs.field(default=0, init=False)
    _latest: deque[float] = attrs.field(factory=lambda: deque(maxlen=KEPT), init=False)

    def note(self, seconds: float) -> None:
        self.count += 1
        self._latest.append(seconds)

    def told(self) -> dict[str, JSON]:
        """``count`` of all; median, 99th percentile and largest of the latest."""
        ordered = sorted(self._latest) or [0.0]
        last = len(ordered) - 1
        return {
            "count": self.count,
            "p50_ms": round(ordered[last // 2] * 1e3, 3),
            "p99_ms": round(ordered[min(last, len(ordered) * 99 // 100)] * 1e3, 3),
            "max_ms": round(ordered[-1] * 1e3, 3),
        }
