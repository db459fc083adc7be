"""The vocabulary of event types (SPEC 1.4, 1.5) and who may add to it.

A query over a live log takes any type. Loading from storage is stricter: an unknown type means a newer
writer, and guessing what it did to the log would be worse than refusing it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .errors import UnsupportedFormat
from .event import Event

CORE_TYPES: Final = frozenset(
    (
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "user/message",
        "assistant/chunk",
        "assistant/message",
        "tool/call",
        "tool/result",
        "todo/write",
        "request/header",
        "request/context",
        "session/title",
        "session/end-seed",
    )
)
"""SPEC 1.4."""

EXTENSION_TYPES: Final = frozenset(
    (
        "agent/inbox/spliced",
        "agent-preset/selected",
        "approval/asked",
        "approval/decided",
        "approval/policy",
        "command/run",
        "command/done",
        "compaction/start",
        "compaction/summary",
        "compaction/prune",
        "compaction/end",
        "feedback/record",
        "goal/change",
        "hook/invoked",
        "hook/result",
        "llm/retry",
        "llm/retry-started",
        "permission/preset",
        "plan/mode",
        "sandbox/mode",
        "schedule/change",
        "session/title-llm-request",
        "subagent/descriptor",
        "team/member",
        "team/task",
        "team/message/queued",
        "team/message/delivered",
        "tool/code-dispatch",
        "tool/code-dispatch-start",
        "tool-workflow/run-start",
        "tool-workflow/run-end",
        "tool-workflow/agent-start",
        "tool-workflow/agent-end",
        "web/deepseek-search-llm-request",
    )
)
"""SPEC 1.5.2: known, log-only, without text."""

RETIRED_TYPES: Final = frozenset(("request/header-delta", "mode/set"))
"""SPEC 1.5.4: refused always, ``ignorable`` or not."""


class EventTypes:
    """Which event types storage accepts. A host registers its extensions' own (SPEC 14 L28).

    Registered types are log-only and carry no text, like the known extensions.
    """

    def __init__(self) -> None:
        self._registered: set[str] = set()

    def register(self, types: Iterable[str]) -> None:
        """Accept these types when loading from storage; again is harmless.

        Raises: ValueError: one is empty, core or retired; then none is registered.
        """
        wanted = tuple(types)
        for type_ in wanted:
            if not isinstance(type_, str) or not type_:
                raise ValueError("an event type is a non-empty text")
            if type_ in CORE_TYPES or type_ in RETIRED_TYPES:
                raise ValueError(f"{type_} is a core or a retired event type")
        self._registered.update(wanted)

    def knows(self, type_: str) -> bool:
        """True if an event of this type loads without ``ignorable``."""
        return type_ in CORE_TYPES or type_ in EXTENSION_TYPES or type_ in self._registered

    def check_stored(self, event: Event) -> None:
        """Judge one stored event.

        Raises: UnsupportedFormat: a retired shape, or an unknown type that is not ``ignorable``. The log
            is intact; a newer (or much older) writer made it.
        Source: SPEC 1.5.3, 1.5.4.
        """
        if is_retired(event):
            raise UnsupportedFormat(f"event {event.seq} has the retired shape {event.type}")
        if event.ignorable is not True and not self.knows(event.type):
            raise UnsupportedFormat(
                f"event {event.seq} has the unknown type {event.type!r}: probably written by a newer version"
            )


def is_retired(event: Event) -> bool:
    """True for the shapes of SPEC 1.5.4."""
    if event.type in RETIRED_TYPES:
        return True
    data = event.data
    return event.type == "request/header" and isinstance(data, dict) and data.get("reason") == "fallback"
