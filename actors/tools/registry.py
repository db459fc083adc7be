"""The door of the five tools: what they are, and how one is called (SPEC 10.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from ...protocol.collected import Caller
from ...protocol.errors import Busy, Code, QueryError, ToolError
from ...protocol.json_value import JSON, SAFE_INTEGER_MAX
from ...protocol.records import Receipt
from ...protocol.signal import Signal
from ...protocol.tools.arguments import Concurrency, concurrency
from ...protocol.tools.cards import call_card
from ...protocol.tools.prompt import PROMPT_TEXT
from ...protocol.tools.schemas import SPECS
from ..wire_service import ToolInfo
from .boundary import sanitize
from .context import Answer, ToolContext
from .event_search import session_event_search
from .exact import session_event_read, session_event_trace, session_trace
from .service_protocol import ToolService
from .session_search import session_search

Body: TypeAlias = Callable[[ToolContext, object], Awaitable[Answer]]

_BODIES: Final[Mapping[str, Body]] = MappingProxyType(
    {
        "session_search": session_search,
        "session_event_search": session_event_search,
        "session_trace": session_trace,
        "session_event_trace": session_event_trace,
        "session_event_read": session_event_read,
    }
)
assert tuple(_BODIES) == tuple(SPECS)

_TIMEOUT_MAX_MS: Final = 2_147_483_647


@attrs.frozen(kw_only=True)
class ToolSettings:
    """The tools' settings (SPEC 10.2).

    Raises: QueryError: INVALID_CONFIG when constructed with a value out of range.
    """

    max_search_results: int = 100
    search_timeout_ms: int = 30_000

    def __attrs_post_init__(self) -> None:
        for name, value, largest in (
            ("max_search_results", self.max_search_results, SAFE_INTEGER_MAX),
            ("search_timeout_ms", self.search_timeout_ms, _TIMEOUT_MAX_MS),
        ):
            if type(value) is not int or not 1 <= value <= largest:
                raise QueryError(Code.INVALID_CONFIG, f"{name} must be an integer from 1 to {largest}")


@attrs.frozen(kw_only=True)
class Spilled:
    """Where the whole text is when the shown one is a preview (SPEC 12.1)."""

    locator: str
    total_bytes: int
    omitted_bytes: int


@attrs.frozen(kw_only=True)
class ToolResult:
    """One call's outcome. ``code`` is None for a success; policies may change text and ``spilled``."""

    text: str
    card: dict[str, JSON]
    receipt: Receipt | None = None
    is_error: bool = False
    code: str | None = None
    spilled: Spilled | None = None


@attrs.frozen(kw_only=True)
class ToolRegistry:
    """All five tools over one service, or none: a registry exists only with sound settings."""

    service: ToolService
    settings: ToolSettings = attrs.field(factory=ToolSettings)

    def tool_list(self) -> tuple[ToolInfo, ...]:
        """Return the tools in their fixed order."""
        return tuple(
            ToolInfo(
                name=spec.name,
                description=spec.description,
                parameters=spec.parameters(),
                concurrency=spec.concurrency,
                deadline_ms=self.settings.search_timeout_ms if spec.has_deadline else None,
            )
            for spec in SPECS.values()
        )

    def prompt(self) -> str:
        """Return the prompt section's text, the same for everyone."""
        return PROMPT_TEXT

    def concurrency(self, tool: str, arguments: object) -> Concurrency:
        """Return how one call may be scheduled (SPEC 10.1.2). Raises: KeyError: no such tool."""
        return concurrency(tool, arguments)

    async def call(
        self,
        tool: str,
        arguments: object,
        caller: Caller | None,
        signal: Signal,
        call_id: str | None = None,
    ) -> ToolResult:
        """Run one tool. A failure is a result with a code and a fixed text.

        Args: caller: who asks, as the runtime knows it. call_id: names the call in the log.
        Raises: KeyError: no such tool; the signal's exact reason once it is aborted; Busy.
        Cancellation: passes through after the running service call has settled.
        """
        body = _BODIES[tool]
        card = call_card(tool, arguments)
        context = ToolContext(
            service=self.service,
            caller=caller,
            signal=signal,
            max_results=self.settings.max_search_results,
            request_id=call_id,
        )
        failure, strange = None, None
        try:
            answer = await body(context, arguments)
        except ToolError as error:
            failure = error
        except Busy:
            raise
        except Exception as error:
            strange = error
        if strange is not None:
            # The abort reason itself, or a service's nonsense that only showed while it was rendered.
            signal.raise_if_aborted()
            failure = sanitize(tool, strange, call_id)
        if failure is None:
            return ToolResult(text=answer.text, card=card, receipt=answer.receipt)
        return ToolResult(text=failure.message, card=card, is_error=True, code=failure.code.value)
