"""Appends taken into the index together leave what they leave one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.documents import Document
from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.storage.index import Reach, SearchSpec, SessionKey
from session_query.storage.index.door import SessionState
from session_query.storage.news import News, put_news
from session_query.storage.projection import Projection
from support.index_files import IndexFile, open_index

WORDS = ("alpha", "beta", "gamma", "delta")
SESSIONS = 3

_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
_kinds = st.one_of(
    st.tuples(st.just("say"), _texts),
    st.tuples(st.just("replace"), _texts),
    st.tuples(st.just("title"), _texts),
    st.tuples(st.just("bad title"), st.just("")),
    st.tuples(st.just("nothing"), st.just("")),
)
_appends = st.lists(
    st.tuples(st.integers(0, SESSIONS - 1), st.lists(_kinds, min_size=1, max_size=3)), min_size=1, max_size=12
)


def _event(seq: int, kind: str, text: str, current: list[int]) -> Event:
    """An event that fits behind a log whose surface is ``current``, which is changed as it changes that."""
    content = {"content": [{"type": "text", "text": text}]}
    if kind == "title":
        data = {"title": text, "messageSeqs": [0], "source": {"kind": "user"}}
        return Event(type="session/title", seq=seq, time=seq, data=data)
    if kind == "bad title":
        return Event(type="session/title", seq=seq, time=seq, data={"title": None})
    if kind == "nothing":
        return Event(type="turn/start", seq=seq, time=seq, data={"turn": 1})
    if kind == "replace" and current:
        gone = current.pop()
        current.append(seq)
        operation = {"op": "replace", "start": gone, "end": gone}
        return Event(
            type="user/message",
            seq=seq,
            time=seq,
            data=content,
            surface_op=operation,
            source_event_seqs=[gone],
        )
    current.append(seq)
    return Event(type="user/message", seq=seq, time=seq, data=content, surface_op="append")


def _key(number: int) -> SessionKey:
    return SessionKey("journal", "/w", f"s{number}")


def _header(number: int) -> SessionHeader:
    return SessionHeader(id=f"s{number}", created_at=5, cwd="/w")


def _news(index: IndexFile, appends: list[tuple[int, list[tuple[str, str]]]]) -> list[News]:
    """What these appends tell, in their order; their sessions get their rows."""
    with index.writer.transaction():
        sids = [
            index.writer.put_session(_key(number), SessionState(header=_header(number), rank=1))
            for number in range(SESSIONS)
        ]
    projections = [Projection() for _ in sids]
    surfaces: list[list[int]] = [[] for _ in sids]
    told = []
    for number, kinds in appends:
        log = projections[number]
        events = [
            _event(log.length + at, kind, text, surfaces[number]) for at, (kind, text) in enumerate(kinds)
        ]
        change = log.feed(events, skeleton=False)
        assert log.broken is None
        title, error = log.title()
        state = SessionState(
            header=_header(number), rank=1, title=title, title_error=error, length=log.length,
            revision=str(log.length),
        )  # fmt: skip
        told.append(News(_key(number), sids[number], change, state))
    return told


def _left(index: IndexFile) -> list[object]:
    """Everything a reader can see, but for the generations."""
    left: list[object] = []
    for number in range(SESSIONS):
        row = index.reader.find(_key(number))
        assert row is not None
        documents: list[Document] = index.reader.documents(row.sid)
        left.append((row.state, row.documents, row.visible, documents))
    for word in WORDS:
        hits = index.reader.search_sessions(SearchSpec(query=word), Reach()).hits
        left.append([(hit.session.key.id, hit.best.seq, hit.best.surface) for hit in hits])
    return left


@given(_appends, st.lists(st.integers(1, 16), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_appends_taken_in_together_leave_what_they_leave_one_by_one(
    appends: list[tuple[int, list[tuple[str, str]]]], sizes: list[int]
) -> None:
    with open_index() as apart, open_index() as together:
        for one in _news(apart, appends):
            put_news(apart.writer, [one])
        waiting, turns = _news(together, appends), 0
        before = together.writer.generation()
        while waiting:
            size = sizes[turns % len(sizes)]
            put_news(together.writer, waiting[:size])
            waiting, turns = waiting[size:], turns + 1
        assert _left(together) == _left(apart)
        assert together.writer.generation() == before + turns, "one transaction for all that waited"
