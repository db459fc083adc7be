"""What may have changed since the sources were last looked at. The one piece that two threads share.

The watch marks on the event loop, the writer thread takes. While the watch is healthy and nothing is
marked, a search costs no ``stat``; without a watch a look is due at most once a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

import attrs

LOOK_EVERY_S: Final = 1.0
PATHS_MAX: Final = 256
"""More changed paths than this are dearer to look at one by one than a walk over their roots."""


@attrs.frozen
class Marks:
    """What to look at: everything, or only these paths."""

    everything: bool = False
    paths: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.paths)


@attrs.define(eq=False)
class Freshness:
    """Marks, and when they were last taken care of. Every method may be called from any thread.

    ``watched``: changes are told by a healthy watch. ``clock``: monotonic seconds. ``on_mark`` is called
    after every mark, on the thread that marked; it must not block.
    """

    clock: Callable[[], float] = time.monotonic
    watched: bool = False
    on_mark: Callable[[], None] | None = None
    listen: Callable[[], None] | None = None
    """Marks what the watch has not told yet, if the watch can be asked; set and called on the loop."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _marks: Marks = attrs.field(factory=lambda: Marks(everything=True), init=False)
    _looked_s: float | None = attrs.field(default=None, init=False)
    _looking: int = attrs.field(default=0, init=False)

    def mark_everything(self) -> None:
        """Every root has to be walked: at start, after a hole in the watch, when sources change."""
        with self._lock:
            self._marks = Marks(everything=True)
        self._tell()

    def mark_paths(self, paths: Iterable[str]) -> None:
        """These files or folders changed, appeared or vanished."""
        with self._lock:
            if not self._marks.everything:
                marked = self._marks.paths | frozenset(paths)
                self._marks = Marks(everything=True) if len(marked) > PATHS_MAX else Marks(paths=marked)
        self._tell()

    def _tell(self) -> None:
        if self.on_mark is not None:
            self.on_mark()

    def hear(self) -> None:
        """Let the watch say what changed until now, before ``look_is_due`` is asked. On the loop."""
        if self.listen is not None:
            self.listen()

    def look_is_due(self) -> bool:
        """Whether a search should have the sources looked at first. Costs nothing."""
        with self._lock:
            if self._marks or self._looked_s is None:
                return True
            return not self.watched and self.clock() - self._looked_s >= LOOK_EVERY_S

    def take(self) -> Marks:
        """What to look at now; without a watch always everything. Call ``done`` or ``put_back`` after."""
        with self._lock:
            marks = self._marks if self.watched and self._looked_s is not None else Marks(everything=True)
            self._marks = Marks()
            self._looking += 1
            return marks

    def done(self, began_s: float) -> None:
        """What was taken has been looked at and read; ``began_s``: the clock when the look began."""
        with self._lock:
            self._looking -= 1
            self._looked_s = began_s

    def put_back(self, marks: Marks) -> None:
        """The look did not come to its end."""
        with self._lock:
            self._looking -= 1
            everything = marks.everything or self._marks.everything
            self._marks = (
                Marks(everything=True) if everything else Marks(paths=marks.paths | self._marks.paths)
            )

    def checked_ago_s(self) -> float | None:
        """None: the index is current. Else seconds since the last whole look (SPEC 16.3).

        Before the first look it is infinite.
        """
        with self._lock:
            if self._looked_s is None:
                return float("inf")
            if self._marks or self._looking:
                return max(0.0, self.clock() - self._looked_s)
            age_s = self.clock() - self._looked_s
            return None if self.watched or age_s < LOOK_EVERY_S else age_s
