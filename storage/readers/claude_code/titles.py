"""Titles: a person's rename wins over a generated title, that over a summary (README.md, "Titles")."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from ....protocol.json_value import JSON
from .drafts import Draft, title_draft
from .fields import string
from .records import FORMAT

_SUMMARY, _GENERATED, _CUSTOM = 1, 2, 3
_PENDING_MAX: Final = 16
_PENDING_TEXT_MAX: Final = 300

TITLE_TYPES: Final = ("custom-title", "ai-title", "summary")

_KEYS: Final = {"custom-title": ("customTitle", _CUSTOM), "ai-title": ("aiTitle", _GENERATED)}


class Titles(msgspec.Struct, array_like=True):
    """What titles a log had so far. ``pending`` are summaries whose last message has not been seen yet."""

    rank: int = 0
    current: bytes = b""
    pending: list[tuple[bytes, str]] = []

    def draft(self, obj: dict[str, JSON], leaf_is_here: bool) -> Draft | None:
        """The title event of a title line; None if it is no title, or none that counts.

        A summary names the last message it sums up: it titles the session that holds that message.
        """
        kind = string(obj, "type") or ""
        if kind in _KEYS:
            key, rank = _KEYS[kind]
            return self._take(string(obj, key), rank)
        if kind == "summary":
            text, leaf = string(obj, "summary"), string(obj, "leafUuid")
            if text is None or leaf is None:
                return None
            if leaf_is_here:
                return self._take(text, _SUMMARY)
            self.pending.append((_digest(leaf), text[:_PENDING_TEXT_MAX]))
            del self.pending[:-_PENDING_MAX]
        return None

    def draft_for_leaf(self, uuid: str | None) -> Draft | None:
        """The title that an earlier summary gives the session, now that its last message is seen."""
        if not self.pending or uuid is None:
            return None
        leaf = _digest(uuid)
        texts = [text for digest, text in self.pending if digest == leaf]
        return self._take(texts[-1], _SUMMARY) if texts else None

    def _take(self, text: str | None, rank: int) -> Draft | None:
        if text is None or rank < self.rank or _digest(text) == self.current:
            return None
        self.rank, self.current = rank, _digest(text)
        source: dict[str, JSON] = {"kind": "user"}
        if rank < _CUSTOM:
            source = {"kind": "provider", "provider": FORMAT}
        return title_draft(text, source)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
