"""Session titles (SPEC 9): the last ``session/title`` event of a log, and nothing else.

Earlier title events play no part, so only the last one has to be well-formed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .errors import Code, QueryError
from .event import Event
from .json_codec import deep_copy
from .json_value import JSON, is_safe_integer, whole
from .records import Title
from .text import member

TITLE: Final = "session/title"


class MalformedTitle(QueryError):
    """The last title event of a log is malformed: the observation of this one session fails (SPEC 9.2)."""

    def __init__(self, seq: int, what: str) -> None:
        super().__init__(Code.CORRUPT_SESSION, f"the title event {seq} is malformed: {what}")
        self.seq = seq


class TitleFold:
    """The title of one log, event by event; keeps only the last title event."""

    def __init__(self, last: Event | None = None) -> None:
        self._last = last

    def feed(self, event: Event) -> None:
        """Take the next event."""
        if event.type == TITLE:
            self._last = event

    @property
    def last(self) -> Event | None:
        """The title event that counts now, well-formed or not: the whole state of the fold."""
        return self._last

    def title(self) -> Title | None:
        """The title as of now, detached; None without a title event. Raises: MalformedTitle."""
        return None if self._last is None else title_of(self._last)


def fold_title(events: Iterable[Event]) -> Title | None:
    """The title of a whole log. Raises: MalformedTitle: the last title event is malformed (SPEC 9.1, 9.2)."""
    fold = TitleFold()
    for event in events:
        fold.feed(event)
    return fold.title()


def title_of(event: Event) -> Title:
    """Read one title event. Raises: MalformedTitle: in the order title, message seqs, source."""
    title = member(event.data, "title")
    if not isinstance(title, str):
        raise MalformedTitle(event.seq, "title is no text")
    message_seqs = _message_seqs(event.seq, member(event.data, "messageSeqs"))
    source = member(event.data, "source")
    if defect := _source_defect(source):
        raise MalformedTitle(event.seq, defect)
    return Title(
        title=title, message_seqs=message_seqs, source=deep_copy(source), seq=event.seq, time=event.time
    )


def _message_seqs(seq: int, raw: JSON) -> tuple[int, ...]:
    if not isinstance(raw, list):
        raise MalformedTitle(seq, "messageSeqs is no array")
    found: list[int] = []
    for item in raw:
        number = whole(item)
        if not is_safe_integer(number) or number < 0:
            raise MalformedTitle(seq, "a member of messageSeqs is no event number")
        found.append(number)
    return tuple(found)


def _source_defect(source: JSON) -> str | None:
    kind = member(source, "kind")
    if kind in ("user", "fallback"):
        return None
    if kind != "provider":
        return "the source's kind is unknown"
    if not isinstance(member(source, "provider"), str):
        return "the source names no provider"
    if not isinstance(source, dict) or "model" not in source:
        return None
    model = source["model"]
    if not isinstance(member(model, "provider"), str) or not isinstance(member(model, "model"), str):
        return "the source's model names no provider and model"
    return None
