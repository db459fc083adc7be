"""The journal: what is acknowledged is stored, verbatim, once."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.protocol.outward import SessionKey
from session_query.protocol.records import Title
from session_query.storage import sqlite
from session_query.storage.journal import (
    Batch,
    Copy,
    HeaderConflict,
    Journal,
    JournalReader,
    SeqConflict,
    SeqGap,
    UnknownSession,
)
from session_query.storage.journal.codec import encode_event
from support.journals import HEADER, event, events, log, open_journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = open_journal(tmp_path / "journal.db")
    yield opened
    opened.connection.close()


def deep(levels: int) -> JSON:
    value: JSON = []
    for _ in range(levels):
        value = [value]
    return value


ODD: list[Event] = [
    event(0, "plain"),
    event(0, "中文 \ud83c lone, \x00 nul, \u2028 line"),
    event(0, "x" * 300_000),
    Event(type="a/\udcff", seq=0, time=-5, data=None),
    Event(
        type="x", seq=0, time=0, data={"": {"k": [1.5, 2**70, -(2**63), 1e308, True, None]}}, ignorable=True
    ),
    Event(
        type="x", seq=0, time=0, data=1, surface_op={"op": "replace", "start": 0}, source_event_seqs=[None]
    ),
    Event(type="x", seq=0, time=0, data=1, surface_op=None, source_event_seqs=[]),
]


@pytest.mark.parametrize("one", ODD, ids=range(len(ODD)))
def test_an_event_is_stored_verbatim(journal: Journal, one: Event) -> None:
    stored = journal.attach("", HEADER, None, 0)
    before = copy.deepcopy(one)
    assert journal.append(stored.sid, 0, [one]) == 0
    assert journal.read_event(stored.sid, 0) == before
    assert journal.read_json(stored.sid, 0) == encode_event(one)


def test_any_depth(journal: Journal) -> None:
    stored = journal.attach("", HEADER, None, 0)
    one = Event(type="x", seq=0, time=0, data=deep(30_000))
    journal.append(stored.sid, 0, [one])
    assert journal.append(stored.sid, 0, [one]) == 0, "and compared without recursion"
    read = journal.read_event(stored.sid, 0)
    assert read is not None
    assert encode_event(read) == encode_event(one)


def test_keys_keep_their_order(journal: Journal) -> None:
    stored = journal.attach("", HEADER, None, 0)
    one = Event(type="x", seq=0, time=0, data={"z": 1, "a": {"y": 2, "b": 3}}, surface_op="append")
    journal.append(stored.sid, 0, [one])
    expected = b'{"type":"x","seq":0,"time":0,"data":{"z":1,"a":{"y":2,"b":3}},"surfaceOp":"append"}'
    assert journal.read_json(stored.sid, 0) == expected


@pytest.mark.parametrize(
    ("seed", "types"),
    [
        (None, []),
        ([], ["session/end-seed"]),
        ([event(0)], ["user/message", "session/end-seed"]),
        ([event(0, kind="session/end-seed")], ["session/end-seed"]),
    ],
)
def test_1_3_3_the_seed_marker(journal: Journal, seed: list[Event] | None, types: list[str]) -> None:
    stored = journal.attach("", HEADER, seed, 77)
    assert [one.type for one in log(journal, stored.sid)] == types
    assert stored.length == len(types)
    assert stored == journal.find(stored.key)
    again = journal.attach("", HEADER, seed, 99)
    assert again == stored, "attaching again adds nothing"
    assert [one.seq for one in log(journal, stored.sid)] == list(range(len(types)))


def test_attaching_again(journal: Journal) -> None:
    stored = journal.attach("", HEADER, events(0, 2), 0)
    journal.append(stored.sid, 4, events(4, 5))
    assert journal.attach("", HEADER, None, 0).length == 6
    assert journal.attach("", HEADER, events(0, 1), 0).length == 6, "a shorter prefix"
    with pytest.raises(SeqConflict) as conflict:
        journal.attach("", HEADER, [*events(0, 1), event(2, "another")], 0)
    assert conflict.value.seq == 2
    with pytest.raises(SeqConflict):
        journal.attach("", HEADER, [*events(0, 2), *log(journal, stored.sid)[3:], *events(6, 9)], 0)
    with pytest.raises(SeqGap):
        journal.attach("", HEADER, events(1, 2), 0)
    assert journal.length(stored.sid) == 6


def test_1_1_3_the_header_of_a_second_attach(journal: Journal) -> None:
    journal.attach("", HEADER, None, 0)
    same = SessionHeader(
        id="s-1", created_at=HEADER.created_at, cwd="/proj/a", delegation_depth=0, agent_preset="x"
    )
    journal.attach("", same, None, 0)
    for other in (
        SessionHeader(id="s-1", created_at=1, cwd="/proj/a"),
        SessionHeader(id="s-1", created_at=HEADER.created_at),
        SessionHeader(id="s-1", created_at=HEADER.created_at, cwd="/proj/a", parent_session="p"),
        SessionHeader(id="s-1", created_at=HEADER.created_at, cwd="/proj/a", seed_length=0),
        SessionHeader(id="s-1", created_at=HEADER.created_at, cwd="/proj/a", delegation_depth=1),
    ):
        with pytest.raises(HeaderConflict):
            journal.attach("", other, None, 0)


def test_one_id_in_two_places_is_two_sessions(journal: Journal) -> None:
    one = journal.attach("/proj/a", HEADER, events(0, 0), 0)
    other = journal.attach("/proj/b", HEADER, None, 0)
    assert one.sid != other.sid
    assert journal.length(other.sid) == 0
    assert {stored.key.place for stored in journal.sessions()} == {"/proj/a", "/proj/b"}


def test_appending_is_safe_to_repeat(journal: Journal) -> None:
    sid = journal.attach("", HEADER, None, 0).sid
    assert journal.append(sid, 0, events(0, 3)) == 3
    assert journal.append(sid, 0, events(0, 3)) == 3
    assert journal.append(sid, 2, events(2, 6)) == 6, "what is new of an overlap is stored"
    assert journal.append(sid, 7, []) == 6
    assert log(journal, sid) == events(0, 6)
    reordered = Event(type="user/message", seq=3, time=events(3, 3)[0].time, surface_op="append", data={})
    with pytest.raises(SeqConflict):
        journal.append(sid, 3, [reordered])
    with pytest.raises(SeqGap) as gap:
        journal.append(sid, 8, events(8, 8))
    assert gap.value.length == 7
    with pytest.raises(SeqGap):
        journal.append(sid, 7, [event(7), event(9)])
    with pytest.raises(SeqGap):
        journal.append(sid, -1, [event(-1)])
    with pytest.raises(UnknownSession):
        journal.append(sid + 1, 0, [])
    assert log(journal, sid) == events(0, 6)


def test_equal_means_equal_as_json(journal: Journal) -> None:
    sid = journal.attach("", HEADER, None, 0).sid
    journal.append(sid, 0, [Event(type="x", seq=0, time=0, data={"a": 1, "b": [4]})])
    assert journal.append(sid, 0, [Event(type="x", seq=0, time=0, data={"b": [4.0], "a": 1})]) == 0
    for data in ({"a": True, "b": [4]}, {"a": 1}, {"a": 1, "b": [4], "c": None}):
        with pytest.raises(SeqConflict):
            journal.append(sid, 0, [Event(type="x", seq=0, time=0, data=data)])


def test_group_commit_gives_each_batch_its_own_outcome(journal: Journal) -> None:
    one, two = (journal.attach(place, HEADER, None, 0).sid for place in "ab")
    results = journal.commit(
        [
            Batch(sid=one, from_seq=0, events=events(0, 1)),
            Batch(sid=two, from_seq=5, events=events(5, 5)),
            Batch(sid=99, from_seq=0, events=[]),
            Batch(sid=one, from_seq=2, events=events(2, 3)),
            Batch(sid=one, from_seq=1, events=[event(1, "another")]),
        ]
    )
    assert results[0] == 1
    assert isinstance(results[1], SeqGap)
    assert isinstance(results[2], UnknownSession)
    assert results[3] == 3
    assert isinstance(results[4], SeqConflict)
    assert log(journal, one) == events(0, 3)
    assert journal.commit([]) == []


def test_ranges(journal: Journal) -> None:
    sids = [journal.attach(place, HEADER, None, 0).sid for place in "abc"]
    for sid in sids:
        journal.append(sid, 0, events(0, 1200))
    middle = sids[1]
    assert [one.seq for one in journal.read_events(middle, -5, 2)] == [0, 1, 2]
    assert [one.seq for one in journal.read_events(middle, 1199, 2**53)] == [1199, 1200]
    assert journal.read_events(middle, 7, 6) == []
    assert [one.seq for one in journal.read_events(middle, 4, 900, 2)] == [4, 5]
    assert journal.read_event(middle, 1201) is None
    assert journal.read_event(99, 0) is None
    pages = list(journal.read_all(middle, 100))
    assert [one.seq for page in pages for one in page] == list(range(100, 1201))
    assert max(map(len, pages)) <= 512
    assert journal.last_time(middle) == events(1200, 1200)[0].time
    assert journal.last_time(99) is None


def test_reopened_and_read_by_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    lone = SessionHeader(
        id="i\ud800d",
        created_at=1,
        cwd="/w/\udfff",
        parent_session="p",
        seed_length=2,
        origin="subagent",
        delegation_depth=3,
        agent_preset="deep",
    )
    sid = journal.attach("\udc00", lone, events(0, 1), 5).sid
    journal.detach(sid)
    before = journal.sessions()
    journal.connection.close()
    journal = open_journal(path)
    reader = JournalReader(sqlite.connect_reader(path))
    assert reader.sessions() == journal.sessions() == before
    assert before[0].header == lone
    assert before[0].clean
    assert reader.find(before[0].key) == before[0] == reader.find_sid(sid)
    assert reader.find(SessionKey("other", "\udc00", lone.id)) is None
    assert log(reader, sid) == log(journal, sid)
    journal.attach("\udc00", lone, None, 5)
    again = journal.find_sid(sid)
    assert again is not None
    assert not again.clean, "attached again"
    reader.connection.close()
    journal.connection.close()


def test_1_9_1_revisions(tmp_path: Path) -> None:
    one, other = open_journal(tmp_path / "a.db"), open_journal(tmp_path / "b.db")
    seen: list[str] = []
    for journal in (one, other):
        stored = journal.attach("", HEADER, None, 0)
        assert journal.attach("", HEADER, None, 0).revision == stored.revision
        journal.append(stored.sid, 0, events(0, 0))
        again = journal.find(stored.key)
        assert again is not None
        seen += [stored.revision, again.revision]
        journal.drop_copy(stored.sid)
        seen.append(journal.attach("", HEADER, None, 0).revision)
        journal.connection.close()
    assert len(set(seen)) == 6, "never equal for different content, forgotten logs included"


def test_retained_copies_follow_their_source(journal: Journal) -> None:
    key = SessionKey("codex", "2026/01", "s-1")
    title = Title(title="T", message_seqs=(1, 2), source={"kind": "x"}, seq=None, time=4)

    def copy_of(first: int, some: list[Event], **more: object) -> Copy:
        return Copy(key=key, header=HEADER, first_seq=first, events=some, title=title, **more)

    journal.retain([copy_of(0, events(0, 3), inherited=2, notes=["n\ud800"]), copy_of(4, events(4, 5))])
    first = journal.find(key)
    assert first is not None
    sid = first.sid
    assert log(journal, sid) == events(0, 5)
    journal.retain([copy_of(3, [event(3, "again")], inherited=1, notes=["m"])])
    assert log(journal, sid) == [*events(0, 2), event(3, "again")], "read again from 3 on"
    stored = journal.find(key)
    assert stored is not None
    assert stored.sid == sid
    assert (stored.title, stored.inherited, stored.notes) == (title, 1, ("m",))
    with pytest.raises(SeqGap):
        journal.retain([copy_of(4, events(4, 4)), copy_of(9, events(9, 9))])
    assert journal.length(sid) == 4, "all or nothing"
    assert journal.sessions("codex") == [stored]
    assert journal.sessions("journal") == []
    journal.drop_copy(sid)
    assert journal.find(key) is None
    assert log(journal, sid) == []


STEP = st.tuples(st.integers(0, 2), st.integers(-1, 3), st.integers(0, 4), st.booleans())


@given(st.lists(st.lists(STEP, max_size=4), max_size=12))
@settings(max_examples=60, deadline=None)
def test_commits_follow_a_model_of_lists(commits: list[list[tuple[int, int, int, bool]]]) -> None:
    """Model: one Python list a session. ``back`` is how far before the end a batch begins."""
    journal = open_journal(sqlite.memory_path())
    sids = [journal.attach(place, HEADER, None, 0).sid for place in "abc"]
    model: dict[int, list[Event]] = {sid: [] for sid in sids}
    for commit in commits:
        batches, expected = [], []
        for which, back, count, spoil in commit:
            sid = sids[which]
            known = model[sid]
            first = len(known) - back
            batch = [event(seq, f"{which}") for seq in range(first, first + count)]
            if spoil and batch:
                batch[0] = event(first, "spoilt")
            batches.append(Batch(sid=sid, from_seq=first, events=batch))
            stored = known[max(first, 0) : first + count]
            if first < 0 or first > len(known):
                expected.append("gap")
            elif any(a != b for a, b in zip(stored, batch, strict=False)):
                expected.append("conflict")
            else:
                known += batch[len(stored) :]
                expected.append(str(first + count - 1))
        names = {SeqGap: "gap", SeqConflict: "conflict"}
        assert [names.get(type(result), str(result)) for result in journal.commit(batches)] == expected
    for sid in sids:
        assert log(journal, sid) == model[sid]
    journal.connection.close()


def test_a_small_read_judges_the_restored_size_and_restores_nothing_larger(journal: Journal) -> None:
    """What is small on disk may be large in memory: whoever reads in the loop bounds both."""
    noise = os.urandom(90_000).hex()
    seed = [event(0, "x"), event(1, "[" * 1_000_000), event(2, "y" * 70), event(3, noise)]
    sid = journal.attach("/w", HEADER, seed, 0).sid
    events = journal.read_events(sid, 0, 3)
    plain = [len(encode_event(one)) for one in events]
    for seq, size in enumerate(plain):
        assert journal.read_small(sid, seq, seq, size) == [events[seq]]
        assert journal.read_small(sid, seq, seq, size - 1) is None
    assert journal.read_small(sid, 0, 2, sum(plain[:3])) == events[:3]
    assert journal.read_small(sid, 0, 2, sum(plain[:3]) - 1) is None
    assert journal.read_small(sid, 5, 9, 1) == journal.read_small(99, 0, 9, 1) == []
