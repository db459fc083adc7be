"""One signal, one scope: how an abort reaches running work and comes back as its exact reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from ..protocol.signal import Signal

T = TypeVar("T")


async def run_exact(signal: Signal, work: Callable[[], Awaitable[T]]) -> T:
    """Run ``work`` in a scope that the signal cancels; raise the signal's exact reason if it aborted.

    A signal already aborted raises before ``work`` is called. Once started, ``work`` is awaited to its
    end; then the reason wins over whatever it returned or raised (SPEC 4.8).
    """
    signal.raise_if_aborted()
    with trio.CancelScope() as scope:
        forget = signal.on_abort(scope.cancel)
        try:
            result = await work()
        except Exception:
            signal.raise_if_aborted()
            raise
        finally:
            forget()
    signal.raise_if_aborted()
    return result


def alone(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception in a group of one, however deeply nested; else the group itself.

    For errors of a start: a caller of one operation expects that operation's own error.
    """
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return group if isinstance(error, BaseExceptionGroup) else error
