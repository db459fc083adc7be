"""The spill policy: a result too long to show becomes a preview and a locator (SPEC 12.1).

Best effort by design: without an owner or a store, or with a store that fails, the text stays whole and
a warning is logged. Code, error flag, card and receipt are never touched. Our results are one text block
each, from outermost calls, so the other exceptions of SPEC 12.1.2 cannot occur here.
"""

from __future__ import annotations

import logging
from typing import Final

import attrs
import trio

from ...protocol.errors import Code, QueryError
from ...protocol.json_codec import to_utf8
from ...protocol.preview import Preview, make_preview
from ...storage.spill import PlannedSpill, SpillStore
from ..tools.registry import Spilled, ToolResult
from .stage import Stage, ToolCall

logger = logging.getLogger(__name__)
DEFAULT_MAX_INLINE_BYTES: Final = 50_000


@attrs.frozen(kw_only=True)
class SpillPolicy:
    """``max_inline_bytes``: the longest result shown whole, in UTF-8 bytes; exactly that many still is.

    Raises: QueryError: INVALID_CONFIG when constructed with anything but an integer >= 0.
    """

    store: SpillStore | None
    max_inline_bytes: int = DEFAULT_MAX_INLINE_BYTES

    def __attrs_post_init__(self) -> None:
        if type(self.max_inline_bytes) is not int or self.max_inline_bytes < 0:
            raise QueryError(Code.INVALID_CONFIG, "max_inline_bytes must be an integer, 0 or more")

    def fits(self, text: str) -> bool:
        """Whether a result is short enough to be shown whole."""
        most = self.max_inline_bytes
        return 4 * len(text) <= most or (len(text) <= most and len(to_utf8(text)) <= most)

    async def apply(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return ``result``, or its preview once the whole text is safely in the store.

        Cancellation: a write that has begun is awaited; then the cancellation goes on.
        """
        data = to_utf8(result.text)
        if len(data) <= self.max_inline_bytes:
            return result
        if self.store is None or call.owner is None:
            missing = "store" if self.store is None else "owner"
            logger.warning("%s: %d bytes shown whole, no spill %s", call.tool, len(data), missing)
            return result
        plan = self.store.plan(call.owner, f"{call.tool}.txt")
        preview = make_preview(data, self.max_inline_bytes, lambda omitted: _notice(plan, omitted))
        if preview is None:
            logger.warning("%s: %d bytes shown whole, the notice does not fit", call.tool, len(data))
            return result
        return await self._replaced(call, result, plan, preview, data)

    async def _replaced(
        self, call: ToolCall, result: ToolResult, plan: PlannedSpill, preview: Preview, data: bytes
    ) -> ToolResult:
        assert self.store is not None
        try:
            await trio.to_thread.run_sync(self.store.write, plan, data)
        except Exception as error:
            # SPEC 12.1.7: a spill problem never turns success into failure.
            logger.warning("%s: shown whole, the spill store failed: %s", call.tool, type(error).__name__)
            return result
        spilled = Spilled(locator=plan.locator, total_bytes=len(data), omitted_bytes=preview.omitted_bytes)
        return attrs.evolve(result, text=preview.text, spilled=spilled)


def with_spill(inner: Stage, policy: SpillPolicy) -> Stage:
    """Return a stage that bounds what ``inner`` and every stage inside it produced."""

    async def stage(call: ToolCall) -> ToolResult:
        return await policy.apply(call, await inner(call))

    return stage


def _notice(plan: PlannedSpill, omitted: int) -> str:
    return f"[{omitted} bytes are left out here. The whole text is kept as {plan.locator}. {plan.hint}]"
