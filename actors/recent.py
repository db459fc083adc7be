"""What was looked up lately, kept for exactly as long as nothing it comes from has moved.

One call of a tool asks three times who a session is (may it be seen, what is it called, where is its log),
and agents read the same session again and again. A look-up costs some 60 us, a look in here two.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import attrs

T = TypeVar("T")

KEPT_MAX: Final = 1024


@attrs.define(eq=False)
class Recent(Generic[T]):
    """``version`` stands for everything the values come from; with another one nothing is kept."""

    _version: Hashable = attrs.field(default=None, init=False)
    _kept: dict[Hashable, T] = attrs.field(factory=dict, init=False)

    def get(self, version: Hashable, key: Hashable) -> T | None:
        """The value kept under ``key`` if ``version`` has not moved since."""
        return self._kept.get(key) if version == self._version else None

    def keep(self, version: Hashable, key: Hashable, value: T) -> None:
        if version != self._version or len(self._kept) >= KEPT_MAX:
            self._kept.clear()
            self._version = version
        self._kept[key] = value
