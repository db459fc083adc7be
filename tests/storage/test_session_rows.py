"""How a session's state lies in its row: whatever it holds comes back, and the usual takes little room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_query.protocol.header import SessionHeader
from session_query.protocol.json_value import JSON
from session_query.protocol.outward import SessionKey
from session_query.protocol.records import Title
from session_query.storage import sqlite
from session_query.storage.index import rows
from session_query.storage.index.door import SessionState
from session_query.storage.index.reader import Reader
from session_query.storage.index.schema import create_index
from session_query.storage.index.writer import Writer, open_writer

texts = st.text(st.characters(), max_size=5) | st.sampled_from(["", "\0", "\ud800", "7f:1.2"])
numbers = st.sampled_from([0, 1, 2**53, -(2**40)])
sources: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | texts | st.sampled_from([0, 1, 1.0, -0.5, 2**70]),
    lambda inner: st.dictionaries(texts, inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=4,
)
titles = st.builds(
    Title,
    title=texts,
    message_seqs=st.lists(numbers, max_size=3).map(tuple),
    source=st.just({"kind": "fallback"}) | sources,
    seq=st.none() | numbers,
    time=numbers | st.just(2**66),
)
headers = st.builds(
    SessionHeader,
    id=texts,
    created_at=numbers,
    cwd=st.none() | texts,
    parent_session=st.none() | texts,
    seed_length=st.none() | numbers,
    origin=st.none() | st.just("subagent") | texts,
    delegation_depth=st.none() | numbers,
    agent_preset=st.none() | texts,
)
states = st.builds(
    SessionState,
    header=headers,
    rank=st.integers(0, 9),
    title=st.none() | titles,
    title_error=st.none() | st.just("CORRUPT"),
    length=numbers,
    revision=texts | st.sampled_from(["0f3ab001:7.1048577", "0f3ab001:07.1", "0F3ab001:7.1", "1:2.3", "a:1"]),
    inherited=st.integers(0, 3),
    persisted=st.booleans(),
    source_gone=st.booleans(),
    error=st.none() | st.just("X"),
    losses=st.integers(0, 3),
    durable=st.just(True),
)


def opened() -> Writer:
    connection = sqlite.connect_writer(sqlite.memory_path(), journal_mode=None)
    create_index(connection)
    return open_writer(connection)


WRITER = opened()


def same(one: object, other: object) -> bool:
    """Equal, and of equal types all through: 1 is neither 1.0 nor True."""
    return one == other and repr(one) == repr(other)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), texts, states), min_size=1, max_size=4))
def test_sessions_come_back_as_they_were(given_: list[tuple[str, str, SessionState]]) -> None:
    kept: dict[SessionKey, tuple[int, SessionState]] = {}
    with WRITER.transaction():
        for source, place, state in given_:
            key = SessionKey(source, place, state.header.id)
            sid = WRITER.put_session(key, state)
            assert kept.get(key, (sid, state))[0] == sid, "one row for one key"
            kept[key] = sid, state
        assert len({sid for sid, _ in kept.values()}) == len(kept)
        for key, (sid, state) in kept.items():
            found = WRITER.find(key)
            assert found is not None
            assert (found.sid, found.key) == (sid, key)
            assert same(found.state, state)
        for sid, _ in kept.values():
            WRITER.delete(sid)


def test_the_usual_session_takes_little_room() -> None:
    header = SessionHeader(id="x" * 36, created_at=1_796_067_511_688, cwd="/home/somebody/work/here")
    title = Title(
        title="Fix the flaky test",
        message_seqs=(3,),
        source={"kind": "fallback"},
        seq=None,
        time=header.created_at + 900,
    )
    state = SessionState(header=header, rank=2, title=title, length=240, revision="4d0ebb92:348.1048579")
    packed = rows.encode_state(state)
    assert len(packed) == 43
    assert b"home" not in packed


@given(st.lists(st.tuples(st.sampled_from(["claude-code", "journal", "live", ""]), texts, texts), max_size=8))
def test_keys_of_a_source_lie_together_and_each_has_its_hash(parts: list[tuple[str, str, str]]) -> None:
    keys = {SessionKey(*part) for part in parts}
    assert len({rows.key_hash(key) for key in keys}) == len(keys)
    for key in keys:
        assert -(2**63) <= rows.key_hash(key) < 2**63
        for other in keys:
            low, high, _ = rows.of_source(other.source)
            assert (key.source == other.source) == (low <= rows.key_hash(key) <= high)


def test_the_sessions_of_a_source_are_found_by_their_keys() -> None:
    writer = opened()
    with writer.transaction():
        for n, source in enumerate(["a", "b", "a"]):
            header = SessionHeader(id=str(n), created_at=1)
            writer.put_session(SessionKey(source, "p", str(n)), SessionState(header=header, rank=0))
    connection = writer._connection
    assert [row.key.id for row in Reader(connection).of_source("a")] == ["0", "2"]
    sql = f"EXPLAIN QUERY PLAN SELECT s.sid FROM session AS s WHERE {rows.OF_SOURCE}"
    plan = connection.execute(sql, rows.of_source("a")).fetchall()
    assert ["session_key" in step[3] for step in plan] == [True]


def test_a_hash_that_two_keys_share_confuses_nobody() -> None:
    keys = [SessionKey("a", "p", "s"), SessionKey("ap", "", "s"), SessionKey("a", "ps", "")]
    writer = opened()
    with pytest.MonkeyPatch.context() as patched, writer.transaction():
        patched.setattr(rows, "key_hash", lambda key: 7)
        sids = [
            writer.put_session(
                key, SessionState(header=SessionHeader(id=key.id, created_at=1), rank=0, length=n)
            )
            for n, key in enumerate(keys)
        ]
        assert len(set(sids)) == 3
        found = [writer.find(key) for key in keys]
        assert [(row.sid, row.key, row.state.length) for row in found if row is not None] == [
            (sid, key, n) for n, (sid, key) in enumerate(zip(sids, keys, strict=True))
        ]
        assert writer.find(SessionKey("b", "p", "s")) is None
