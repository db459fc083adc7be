"""When to try again: doubling pauses with jitter, up to a bound, for as long as one is told."""

from __future__ import annotations

import random

import attrs


@attrs.frozen(kw_only=True)
class Backoff:
    """Pauses between attempts to connect, in seconds. ``give_up_after_s`` None: never give up.

    The jitter spreads clients that lost one server at one moment.
    """

    first_s: float = 0.1
    most_s: float = 10.0
    give_up_after_s: float | None = 60.0

    def pause_s(self, attempt: int, rng: random.Random) -> float:
        """The pause before attempt ``attempt`` (from 1): between half and all of the doubled pause."""
        full = min(self.most_s, self.first_s * 2.0 ** min(attempt - 1, 60))
        return full * rng.uniform(0.5, 1.0)


NO_RECONNECT = Backoff(give_up_after_s=0.0)
"""Connect once; when the line goes, everything ends with ``ConnectionLost``."""
