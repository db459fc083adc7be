"""Other spellings of a caller's workspaces, where the service is configured to accept them (SPEC 14 L8)."""

from __future__ import annotations

from typing import Final

import attrs
import trio

from ..protocol.collected import Caller
from ..protocol.tools.authority import reach_of
from ..protocol.wire.identity import Reach
from ..storage.workspaces import canonical
from .storage import StorageActor

KEPT_S: Final = 30.0
"""How long a folder's form is believed: links and worktrees change seldom, and a look costs about 10 us."""


@attrs.define(eq=False)
class Aliases:
    """Finds, among the workspaces the index knows, those that are the same folder as a caller's."""

    storage: StorageActor
    _forms: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)
    _since: float = attrs.field(default=-1.0, init=False)

    async def of(self, caller: Caller, within: Reach) -> Caller:
        """The caller with every other spelling of its workspaces added; itself if there is none.

        Nothing is added for a caller that sees everything, or nothing. ``within``: what its token may see,
        by exact text: a link that a runtime made leads it nowhere else.
        """
        reach = reach_of(caller)
        if not reach:
            return caller
        known = self.storage.point(lambda reader: reader.index.workspaces())
        wanted = [cwd for cwd in reach if cwd is not None]
        forms = await self._look({*known, *wanted})
        own = {forms[cwd] for cwd in wanted}
        others = (cwd for cwd in known if forms[cwd] in own and cwd not in reach and within.holds(cwd))
        aliases = tuple(sorted(others))
        return attrs.evolve(caller, aliases=aliases) if aliases else caller

    async def _look(self, folders: set[str]) -> dict[str, str]:
        now = trio.current_time()
        if self._since < 0 or now - self._since > KEPT_S:
            self._forms, self._since = {}, now
        kept = {cwd: form for cwd, form in self._forms.items() if cwd in folders}
        new = folders - kept.keys()
        if new:
            found = await trio.to_thread.run_sync(lambda: {cwd: canonical(cwd) for cwd in new})
            self._forms.update(found)
            kept |= found
        return kept
