"""What appends tell the index: gathered, and written together in one transaction.

A transaction of the full-text index costs some 0.2 ms of CPU before the first word is in it. One for each
appended event would cost more than the journal's own commit; one for sixteen costs a quarter of it each.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..protocol.outward import SessionKey
from .index.door import IndexWriter, SessionState
from .projection import Change


@attrs.frozen(eq=False)
class News:
    """What one committed append changes in the index. ``state``: the session's, as of its end."""

    key: SessionKey
    sid: int
    change: Change
    state: SessionState

    @property
    def events(self) -> int:
        """What it weighs: events that go into the index, at least one."""
        return len(self.change.documents) or 1


def put_news(index: IndexWriter, news: Sequence[News]) -> None:
    """Write several appends in their order, all in one transaction. Raises: sqlite.Error, KeyError."""
    latest: dict[int, SessionState] = {}
    with index.transaction():
        for one in news:
            one.change.apply(index, one.sid)
            latest[one.sid] = one.state
        for sid, state in latest.items():
            index.grow(sid, state)
