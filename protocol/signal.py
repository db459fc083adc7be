"""The caller's abort: one flag, one reason, handed back as the same object (SPEC 0).

Pure: whoever must react registers a callback; actors turn that into cancelled scopes.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs


class Aborted(Exception):
    """Raised by exact operations when their signal is aborted and its reason is no exception.

    ``reason`` is the identical object given to ``Signal.abort`` (SPEC 4.8).
    """

    def __init__(self, reason: object) -> None:
        super().__init__("aborted")
        self.reason = reason


@attrs.define(eq=False)
class Signal:
    """A cancellation handle. The first reason wins; later aborts are ignored."""

    aborted: bool = attrs.field(default=False, init=False)
    reason: object = attrs.field(default=None, init=False)
    _callbacks: set[Callable[[], None]] = attrs.field(factory=set, init=False, repr=False)

    def abort(self, reason: object) -> None:
        """Set the flag and the reason, then tell every listener once."""
        if self.aborted:
            return
        self.aborted, self.reason = True, reason
        for callback in tuple(self._callbacks):
            callback()

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on abort (at once if already aborted). Returns its remover."""
        if self.aborted:
            callback()
            return lambda: None
        self._callbacks.add(callback)
        return lambda: self._callbacks.discard(callback)

    def raise_if_aborted(self) -> None:
        """Raise the exact reason: the object itself if it is an exception, else ``Aborted(reason)``."""
        if self.aborted:
            if isinstance(self.reason, BaseException):
                raise self.reason
            raise Aborted(self.reason)
