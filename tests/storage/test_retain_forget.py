"""Copies that outlive their logs, and sessions that are forgotten for good (SPEC 16.10)."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.outward import SessionKey
from session_query.storage import sqlite
from session_query.storage.journal import Forgotten
from session_query.storage.sources.locate import locate, read_located
from support.stores import ToyStore, open_toy_store, toy_store
from support.toy_logs import CREATED, line


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyStore]:
    with toy_store(tmp_path, retain=True) as opened:
        yield opened


def copy_of(toys: ToyStore, session: str) -> list[str]:
    stored = toys.reader.journal.find(SessionKey("toy", "", session))
    if stored is None:
        return []
    return [
        str(event.data["content"][0]["text"])  # type: ignore[index, call-overload]
        for page in toys.reader.journal.read_all(stored.sid)
        for event in page
    ]


def test_a_copy_grows_with_its_log_and_outlives_it(tmp_path: Path) -> None:
    toys = open_toy_store(tmp_path, retain=True)
    path = toys.write("one.toy", line("one", "alpha", title="T"), line("one", "beta")[:-1])
    toys.refresh()
    assert copy_of(toys, "one") == ["alpha", "beta"]
    toys.append("one.toy", b"\n", line("one", "gamma"))
    toys.refresh()
    assert copy_of(toys, "one") == ["alpha", "beta", "gamma"]
    located = locate(toys.reader.connection, toys.sessions()["one"].sid)
    assert located is not None
    assert [event.seq for event in read_located(toys.toy, located)] == [0, 1, 2]
    path.unlink()
    toys.refresh()
    row = toys.sessions()["one"]
    assert row.state.source_gone
    assert toys.found("beta") == {"one"}
    assert locate(toys.reader.connection, row.sid) is None
    toys.close()
    os.unlink(tmp_path / "data/index.db")  # a new index knows it from the copy alone
    toys = open_toy_store(tmp_path, retain=True)
    toys.refresh()
    row = toys.sessions()["one"]
    assert row.state.source_gone
    assert row.state.title is not None
    assert toys.found("beta") == {"one"}
    toys.write("one.toy", line("one", "alpha"), line("one", "beta"))
    toys.refresh()
    assert not toys.sessions()["one"].state.source_gone, "it is back"
    assert copy_of(toys, "one") == ["alpha", "beta"]
    toys.close()


def test_keeping_copies_later_copies_what_was_read_before(tmp_path: Path) -> None:
    toys = open_toy_store(tmp_path)
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    toys.close()
    toys = open_toy_store(tmp_path, retain=True)
    toys.refresh()
    assert copy_of(toys, "one") == ["alpha"]
    toys.close()
    toys = open_toy_store(tmp_path)
    toys.refresh()
    assert toys.toy.reads in ([], [("one.toy", len(line("one", "alpha")))]), "no reason to start again"
    assert copy_of(toys, "one") == ["alpha"]
    toys.close()


def test_a_dropped_source_leaves_copies_and_takes_sessions(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha"))
    toys.refresh()
    spec = next(spec for spec in toys.store.sources.specs() if spec.format == "toy")
    assert toys.store.sources.drop(spec)
    assert not toys.store.sources.drop(spec)
    assert toys.sessions() == {}
    assert copy_of(toys, "one") == ["alpha"]
    toys.refresh()
    assert toys.sessions() == {}
    toys.store.sources.use([spec])
    toys.refresh()
    assert toys.found("alpha") == {"one"}


WORDS = ["zanzibarquince", "kumquatledger", "密语暗号", "marmaladecipher"]


def holding(directory: Path) -> dict[str, list[str]]:
    """Which file holds which of the words, plainly."""
    return {
        path.name: found
        for path in directory.rglob("*")
        if path.is_file() and (found := [word for word in WORDS if word.encode() in path.read_bytes()])
    }


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("created", [CREATED, 0])
def test_no_file_of_the_data_directory_holds_a_forgotten_word(
    tmp_path: Path, retain: bool, created: int
) -> None:
    toys = open_toy_store(tmp_path, retain=retain)
    dice = random.Random(5)
    noise = [" ".join(dice.choices(["lorem", "ipsum", "dolor", "sit"], k=40)) for _ in range(200)]
    toys.write("kept.toy", *(line("kept", text) for text in noise))
    secret = [
        line("secret", f"{WORDS[n % 3]} {noise[n]}", created=created, cwd=None if not created else "/w")
        for n in range(60)
    ]
    secret.append(line("secret", "", title="marmaladecipher", rename="marmaladecipher"))
    toys.write("secret.toy", *secret)
    toys.refresh()
    toys.append("secret.toy", line("secret", "zanzibarquince once more"))
    toys.refresh()
    assert toys.found("zanzibarquince") == {"secret"}
    key = toys.sessions()["secret"].key
    done = toys.store.forgetting.forget(key)
    assert done.keys == (key,)
    assert done.swept
    assert toys.found("zanzibarquince") == set()
    assert holding(tmp_path / "data") == {}
    assert copy_of(toys, "secret") == []
    toys.append("secret.toy", line("secret", "kumquatledger comes later"))
    toys.write("elsewhere/copy.toy", *secret)
    toys.refresh()
    assert set(toys.sessions()) == {"kept"}, "neither growth nor a copy brings it back"
    toys.close()
    assert holding(tmp_path / "data") == {}
    toys = open_toy_store(tmp_path, retain=retain)
    list(toys.store.sources.rebuild())
    assert set(toys.sessions()) == {"kept"}
    toys.close()
    os.unlink(tmp_path / "data/index.db")
    toys = open_toy_store(tmp_path, retain=retain)
    toys.refresh()
    assert set(toys.sessions()) == {"kept"}, "the tombstone is in the journal"
    toys.close()
    assert holding(tmp_path / "data") == {}


def test_a_copy_without_a_creation_time_is_forgotten_at_once(toys: ToyStore) -> None:
    """It begins as what was forgotten does: read again, it would be passed over."""
    secret = [line("secret", text, created=0, cwd=None, at=3) for text in ("alpha", "beta")]
    toys.write("a/secret.toy", *secret)
    toys.write("b/copy.toy", *secret)
    toys.write("c/secret.toy", line("secret", "gamma", created=0, cwd=None, at=3))
    toys.refresh()
    with toys.reader.index.snapshot():
        first, _, other = toys.reader.index.with_id("secret")
    toys.store.forgetting.forget(first.key)
    assert toys.found("alpha") == set()
    with toys.reader.index.snapshot():
        assert [row.key for row in toys.reader.index.with_id("secret")] == [other.key], "that is another one"


def test_another_session_with_the_same_id_is_not_forgotten(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "alpha", created=5, cwd="/a"))
    toys.refresh()
    toys.store.forgetting.forget(toys.sessions()["one"].key)
    toys.write("b/one.toy", line("one", "beta", created=6, cwd="/b"))
    toys.refresh()
    assert toys.found("beta") == {"one"}
    toys.write("one.toy", line("one", "gamma", created=7, cwd="/a"))
    toys.refresh()
    assert toys.found("gamma") == {"one"}, "the log tells another session now"


def test_forgetting_takes_the_session_from_every_source(toys: ToyStore) -> None:
    header = SessionHeader(id="both", created_at=CREATED, cwd="/w")
    event = Event(
        type="user/message",
        seq=0,
        time=1,
        data={"content": [{"type": "text", "text": "alpha"}]},
        surface_op="append",
    )
    stored = toys.store.journal.attach("/w", header, None, 0)
    toys.store.journal.append(stored.sid, 0, [event])
    toys.store.catch_up(stored.key)
    toys.write("both.toy", line("both", "alpha"))
    toys.refresh()
    done = toys.store.forgetting.forget(stored.key)
    assert {key.source for key in done.keys} == {"journal", "toy"}
    assert toys.found("alpha") == set()
    assert toys.store.journal.sessions() == []
    with pytest.raises(Forgotten):
        toys.store.journal.attach("/w", header, None, 0)


def test_forgetting_what_is_not_there(toys: ToyStore) -> None:
    done = toys.store.forgetting.forget(SessionKey("toy", "", "none"))
    assert done.keys == ()
    assert done.swept


def test_a_reader_in_the_middle_of_a_read_delays_the_sweep(toys: ToyStore) -> None:
    toys.write("one.toy", line("one", "zanzibarquince"))
    toys.refresh()
    toys.store.connection.execute("PRAGMA busy_timeout=1").fetchall()
    other = toys.store.open_reader()
    with sqlite.snapshot(other.connection):
        other.connection.execute("SELECT count(*) FROM session").fetchall()
        done = toys.store.forgetting.forget(toys.sessions()["one"].key)
        assert not done.swept
    other.close()
    assert toys.store.forgetting.sweep()
    assert holding(toys.logs.parent / "data") == {}


def test_a_crash_while_forgetting_is_finished_at_the_next_start(tmp_path: Path) -> None:
    toys = open_toy_store(tmp_path, retain=True)
    toys.write("one.toy", line("one", "zanzibarquince"))
    toys.refresh()
    (copy,) = toys.store.journal.sessions()
    toys.store.journal.bury("toy", copy.header, None, 0)  # and no further
    toys.store.mark_behind(copy.key)  # as if it had been killed: the index is not marked as in step
    toys.close()
    toys = open_toy_store(tmp_path, retain=True)
    assert toys.store.journal.sessions() == []
    assert toys.sessions() == {}
    assert holding(tmp_path / "data") == {}
    toys.close()
