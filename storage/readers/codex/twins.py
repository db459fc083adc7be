"""Messages that Codex writes twice: as ``response_item`` for the model, as ``event_msg`` for the screen.

The response item is the message, whichever comes first; the equal event message is kept log-only. An
event message that comes first is therefore kept back, and becomes a message of its own when its turn
ends without the other (SPEC 16.7.2). In a log that has shown no response message yet (exports, very
old builds) event messages are the messages at once. All this looks backwards only, so that a log that
grows keeps its numbers.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec

from ....protocol.whitespace import collapse

Role: TypeAlias = Literal["user", "assistant"]
Verdict: TypeAlias = Literal["message", "twin", "wait"]

_WINDOW: Final = 16
"""Neighbours are a few records apart: reasoning, token counts, a turn context."""
_MARKER: Final = "## My request for Codex:"


def request_of(text: str) -> str:
    """What was typed, without the context an IDE puts before it."""
    return text.rpartition(_MARKER)[2]


def digest_of(text: str) -> bytes:
    """Equal for messages that say the same, whatever their spacing."""
    return blake2b(collapse(request_of(text)).encode("utf-8", "replace"), digest_size=8).digest()


class Seen(msgspec.Struct):
    """One message record of the last few. ``text`` is kept only while the record waits for its twin."""

    response: bool
    role: str
    digest: bytes
    seq: int
    waiting: bool = False
    text: str = ""


class Twins(msgspec.Struct):
    """The last messages, matched by role and text. Part of the mapper's state."""

    responses_seen: bool = False
    seen: list[Seen] = []

    def judge(self, *, response: bool, role: Role, text: str, seq: int) -> Verdict:
        """Say what the record is that gets ``seq``, and remember it."""
        self.responses_seen = self.responses_seen or response
        digest = digest_of(text)
        for index, other in enumerate(self.seen):
            if other.response is not response and other.role == role and other.digest == digest:
                del self.seen[index]
                return "message" if other.waiting else "twin"
        waits = not response and self.responses_seen
        self.seen.append(Seen(response, role, digest, seq, waits, text if waits else ""))
        settled = [item for item in self.seen if not item.waiting]
        if len(settled) > _WINDOW:
            self.seen.remove(settled[0])
        return "wait" if waits else "message"

    def give_up(self, role: Role | None = None, but: int = -1) -> list[Seen]:
        """The waiting records whose twin will not come any more (of ``role``; except the one at ``but``).

        They stay known, so that a late twin is one.
        """
        late = [item for item in self.seen if item.waiting and item.seq != but and role in (None, item.role)]
        found = [Seen(False, item.role, item.digest, item.seq, False, item.text) for item in late]
        for item in late:
            item.waiting, item.text = False, ""
        return found
