"""A projection tells its title without reading the same event again, and never an old one."""

from __future__ import annotations

import pytest

from session_query.protocol.errors import Code
from session_query.protocol.event import Event
from session_query.protocol.json_value import JSON
from session_query.protocol.records import Title
from session_query.storage import projection as projection_module
from session_query.storage.projection import Projection, title_of_log


def _title(seq: int, data: JSON) -> Event:
    return Event(type="session/title", seq=seq, time=seq, data=data)


def _good(text: str) -> JSON:
    return {"title": text, "messageSeqs": [0], "source": {"kind": "user"}}


def test_the_title_is_always_that_of_the_last_title_event(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int | None] = []

    def counted(last: Event | None, reported: Title | None) -> tuple[Title | None, str | None]:
        looked.append(None if last is None else last.seq)
        return title_of_log(last, reported)

    monkeypatch.setattr(projection_module, "title_of_log", counted)
    projection = Projection()
    assert projection.title() == (None, None)
    log = [
        Event(type="turn/start", seq=0, time=0, data={}),
        _title(1, _good("one")),
        Event(type="turn/end", seq=2, time=2, data={}),
        _title(3, {"title": 7}),
        _title(4, _good("two")),
    ]
    told = []
    for event in log:
        projection.feed([event])
        told.append(projection.title())
        assert projection.title() == title_of_log(projection.titles.last, None)
    assert [title and title.title for title, _ in told] == [None, "one", "one", None, "two"]
    assert [error for _, error in told] == [None, None, None, Code.CORRUPT_SESSION.value, None]
    assert looked == [1, 3, 4], "an event is read once"
    newer = Title(title="reported", message_seqs=(), source=None, seq=None, time=9)
    assert projection.title(newer)[0] == newer
    assert projection.title()[0] == told[-1][0], "what was reported once is not remembered"
