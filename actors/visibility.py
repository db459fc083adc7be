"""Which sources the index shows: ours always, a provider's only while it is mounted (SPEC 6.10.3)."""

from __future__ import annotations

import json

import attrs
import trio

from ..storage.store import Store
from .mounted import Mounted
from .storage import StorageActor

PROVIDERS = "providers"
"""The index's own list of every provider it holds rows of, mounted or not: it outlives the process."""


@attrs.define(eq=False)
class Visibility:
    """Keeps the index in step with the mounts. ``follow`` comes before every question to the index."""

    storage: StorageActor
    mounted: Mounted
    _shown: frozenset[str] | None = attrs.field(default=None, init=False)
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    @property
    def is_followed(self) -> bool:
        """Whether ``follow`` has nothing to do."""
        return self._shown == self.mounted.names

    async def follow(self) -> None:
        """Show the rows of mounted providers and hide those of all others. Costs nothing without a change."""
        if self.is_followed:
            return
        async with self._lock:
            while self._shown != (names := self.mounted.names):
                await self.storage.write(lambda store, names=names: _show(store, names))  # type: ignore[misc]
                self._shown = names


def _show(store: Store, names: frozenset[str]) -> None:
    known = frozenset(json.loads(store.index.get_meta(PROVIDERS) or b"[]"))
    if not known and not names:
        return
    with store.index.transaction():
        for name in sorted(known | names):
            store.index.show_source(name, name in names)
        if names - known:
            store.index.set_meta(PROVIDERS, json.dumps(sorted(known | names)).encode())
