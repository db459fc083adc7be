"""One answer on its way to one task, whichever loop the task runs in."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from ...protocol.wire import messages as m
from ...protocol.wire.client_errors import ClientError

Settled: TypeAlias = m.Answer | ClientError | None
"""What ends a wait: an answer, an error, or nothing but that it is done."""


class Waiter(Protocol):
    """``settle`` is called by the core, on the loop; ``wait`` is awaited by one task.

    Settling after that task was cancelled does nothing.
    """

    def settle(self, answer: Settled) -> None: ...

    async def wait(self) -> Settled: ...
