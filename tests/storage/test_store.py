"""Opening a store: whose it is, what a crash left, and what is brought up to date."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from session_query.protocol.documents import build_documents
from session_query.protocol.errors import Code, QueryError
from session_query.protocol.event import Event
from session_query.protocol.header import SessionHeader
from session_query.protocol.outward import SessionKey
from session_query.storage import sqlite
from session_query.storage.guard import Opening
from session_query.storage.index.door import Reach, SearchSpec, SessionState
from session_query.storage.lock import DataDirectoryLocked
from session_query.storage.news import News
from session_query.storage.projection import Projection
from session_query.storage.store import (
    Store,
    StoreSettings,
    discard_index,
    find_running,
    open_store,
)
from session_query.storage.store_reader import CACHE_LOOK_EVERY, StoreReader
from support.kill import ROUNDS, run_and_kill
from support.stores import open_toy_store
from support.toy_logs import line

HEADER = SessionHeader(id="s", created_at=5, cwd="/w")
KEY = SessionKey("journal", "/w", "s")


def event(seq: int, text: str, **more: object) -> Event:
    return Event(
        type="user/message",
        seq=seq,
        time=seq,
        data={"content": [{"type": "text", "text": text}]},
        **{"surface_op": "append", **more},
    )


def found(store: Store, query: str) -> list[tuple[str, int]]:
    reader = store.open_reader()
    with reader.index.snapshot():
        hits = reader.index.search_sessions(SearchSpec(query=query), Reach()).hits
    reader.close()
    return [(hit.session.key.id, hit.best.seq) for hit in hits]


def in_data(directory: Path) -> StoreSettings:
    return StoreSettings(data_dir=directory / "data", readers={})


def test_files_are_private_and_one_process_owns_them(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    names = {path.name for path in (tmp_path / "data").iterdir()}
    assert {"lock", "journal.db", "index.db"} <= names
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "data").iterdir())
    store.announce("ws://127.0.0.1:9/")
    with pytest.raises(DataDirectoryLocked, match="127"):
        open_store(in_data(tmp_path))
    holder = find_running(tmp_path / "data")
    assert holder is not None
    assert (holder.pid, holder.url) == (os.getpid(), "ws://127.0.0.1:9/")
    store.close()
    store.close()
    assert find_running(tmp_path / "data") is None
    open_store(in_data(tmp_path)).close()


def test_an_index_elsewhere_is_locked_by_itself(tmp_path: Path) -> None:
    shared = str(tmp_path / "elsewhere" / "index.db")
    one = open_store(StoreSettings(data_dir=tmp_path / "a", index_path=shared, readers={}))
    with pytest.raises(DataDirectoryLocked):
        open_store(StoreSettings(data_dir=tmp_path / "b", index_path=shared, readers={}))
    assert find_running(tmp_path / "b") is None, "nothing stays locked"
    one.close()
    other = open_store(StoreSettings(data_dir=tmp_path / "b", index_path=shared, readers={}))
    assert other.opening is Opening.CREATED, "an index made for another journal is built anew"
    other.close()


@pytest.mark.parametrize(("name", "code"), [("index.db", "INDEX"), ("journal.db", "PERSISTENCE")])
def test_a_foreign_file_is_refused_and_nothing_stays_open(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_bytes(b"somebody's notes")
    with pytest.raises(QueryError) as caught:
        open_store(in_data(tmp_path))
    assert caught.value.code == f"SESSION_QUERY_{code}_FAILED"
    assert (tmp_path / "data" / name).read_bytes() == b"somebody's notes"
    (tmp_path / "data" / name).unlink()
    open_store(in_data(tmp_path)).close()


def test_a_damaged_index_is_discarded_when_asked(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    sid = store.journal.attach("/w", HEADER, None, 0).sid
    store.journal.append(sid, 0, [event(0, "alpha")])
    store.catch_up(KEY)
    with pytest.raises(DataDirectoryLocked):
        discard_index(in_data(tmp_path))
    store.close()
    path = tmp_path / "data" / "index.db"
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 12] = b"\xff" * 4096 * 11
    path.write_bytes(content)
    discard_index(in_data(tmp_path))
    store = open_store(in_data(tmp_path))
    assert found(store, "alpha") == [("s", 0)]
    store.close()
    discard_index(in_data(tmp_path / "nothing there"))


def test_the_index_catches_up_with_what_only_the_journal_has(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    sid = store.journal.attach("/w", HEADER, None, 0).sid
    store.journal.append(sid, 0, [event(0, "alpha"), event(1, "beta")])
    assert store.catch_up(KEY) == 2
    assert found(store, "beta") == [("s", 1)]
    store.journal.append(
        sid,
        2,
        [
            event(2, "gamma", surface_op={"op": "replace", "start": 0, "end": 0}, source_event_seqs=[0]),
            Event(
                type="session/title",
                seq=3,
                time=3,
                data={"title": "T", "messageSeqs": [], "source": {"kind": "user"}},
            ),
        ],
    )
    store.mark_behind(KEY)
    store.close()
    store = open_store(in_data(tmp_path))
    assert found(store, "gamma") == [("s", 2)]
    reader = store.open_reader()
    with reader.index.snapshot():
        row = reader.index.find(KEY)
        assert row is not None
        assert (row.state.length, row.state.rank, row.state.persisted) == (4, 1, True)
        assert row.state.title is not None
        events = [one for page in reader.journal.read_all(sid) for one in page]
        assert reader.index.documents(row.sid) == build_documents(events)
    reader.close()
    assert store.catch_up() == 0
    store.close()


def test_a_clean_end_needs_no_look_at_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(in_data(tmp_path)).close()

    def fail(*args: object) -> int:
        raise AssertionError("looked")

    monkeypatch.setattr("session_query.storage.store.catch_up_all", fail)
    open_store(in_data(tmp_path)).close()


def test_a_published_log_that_breaks_the_surface_is_quarantined(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    sid = store.journal.attach("/w", HEADER, None, 0).sid
    store.journal.append(sid, 0, [event(0, "alpha"), event(1, "x", surface_op="no")])
    store.catch_up(KEY)
    row = store.index.find(KEY)
    assert row is not None
    assert row.state.error == Code.INVALID_SURFACE
    store.close()


def test_a_damaged_journal_event_costs_its_session(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    for place in ("/w", "/x"):
        sid = store.journal.attach(place, SessionHeader(id="s", created_at=5, cwd=place), None, 0).sid
        store.journal.append(sid, 0, [event(0, "alpha"), event(1, "beta")])
    store.journal.connection.execute("UPDATE event SET body = x'01ff' WHERE key = ?", (sid << 32 | 1,))
    assert store.catch_up(SessionKey("journal", "/w", "s")) == 2
    store.catch_up(SessionKey("journal", "/x", "s"))
    row = store.index.find(SessionKey("journal", "/x", "s"))
    assert row is not None
    assert row.state.error == Code.CORRUPT_SESSION
    assert found(store, "beta") == [("s", 1)]
    store.close()


def news(store: Store, index_sid: int, projection: Projection, *texts: str) -> News:
    """Events committed to the journal, and what they change in the index."""
    from_seq = projection.length
    events = [event(from_seq + at, text) for at, text in enumerate(texts)]
    stored = store.journal.find(KEY)
    assert stored is not None
    store.journal.append(stored.sid, from_seq, events)
    length = from_seq + len(events)
    state = SessionState(header=HEADER, rank=1, length=length, revision=str(length))
    return News(KEY, index_sid, projection.feed(events, skeleton=False), state)


def full(*_: object) -> None:
    raise sqlite.OperationalError("database or disk is full")


def admitted(store: Store) -> int:
    """The session's row in the index, of length 0."""
    store.journal.attach("/w", HEADER, None, 0)
    with store.index.transaction():
        return store.index.put_session(KEY, SessionState(header=HEADER, rank=1))


def test_news_of_several_appends_are_taken_in_together(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    sid, log = admitted(store), Projection()
    before = store.index.generation()
    store.take_news([news(store, sid, log, "alpha"), news(store, sid, log, "beta", "gamma")])
    assert store.index.generation() == before + 1
    assert (found(store, "alpha"), found(store, "gamma")) == ([("s", 0)], [("s", 2)])
    row = store.index.find(KEY)
    assert row is not None
    assert (row.state.length, row.state.revision, row.documents) == (3, "3", 3)
    store.close()


def test_a_session_whose_news_were_not_taken_catches_up_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(in_data(tmp_path))
    sid, log = admitted(store), Projection()
    store.take_news([news(store, sid, log, "alpha")])
    with monkeypatch.context() as patched:
        patched.setattr(store.index, "grow", full)
        store.take_news([news(store, sid, log, "beta")])
    assert store.is_behind(KEY)
    store.take_news([news(store, sid, log, "gamma")])  # passed over: it would leave a hole for ever
    assert found(store, "beta") == found(store, "gamma") == []
    late = news(store, sid, log, "delta")
    assert store.catch_up() == 3
    assert not store.is_behind()
    store.take_news([late, news(store, sid, log, "epsilon")])  # the first of them was caught up with
    for seq, word in enumerate(("alpha", "beta", "gamma", "delta", "epsilon")):
        assert found(store, word) == [("s", seq)]
    row = store.index.find(KEY)
    assert row is not None
    assert (row.state.length, row.documents) == (5, 5)
    store.close()


def test_in_memory_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(StoreSettings(readers={}))
    sid = store.journal.attach("/w", HEADER, None, 0).sid
    store.journal.append(sid, 0, [event(0, "alpha")])
    store.catch_up(KEY)
    assert found(store, "alpha") == [("s", 0)]
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_refuses_an_append_whole(tmp_path: Path) -> None:
    store = open_store(in_data(tmp_path))
    sid = store.journal.attach("/w", HEADER, None, 0).sid
    connection = store.journal.connection
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count={pages + 1}").fetchall()

    with pytest.raises(sqlite.OperationalError, match="full"):
        store.journal.append(sid, 0, [event(0, os.urandom(90_000).hex())])
    connection.execute("PRAGMA max_page_count=100000").fetchall()
    store.journal.append(sid, 0, [event(0, "alpha")])
    assert store.journal.length(sid) == 1
    store.close()


STANDARD = """
import sys
sys.modules["pysqlite3"] = sys.modules["pysqlite3.dbapi2"] = None
sys.path[:0] = {path!r}
from contextlib import closing
from pathlib import Path
from support.stores import open_toy_store
from support.toy_logs import line
from session_query.storage import sqlite
assert sqlite.LIBRARY == "sqlite3", sqlite.LIBRARY
directory = Path({directory!r})
toys = open_toy_store(directory, retain=True)
for n in range(30):
    toys.write(f"{{n}}.toy", line(f"s{{n}}", "zanzibarquince common"), line(f"s{{n}}", "more"))
toys.refresh()
assert len(toys.found("zanzibarquince")) == 30
for row in list(toys.sessions().values()):
    assert toys.store.forgetting.forget(row.key).swept
assert toys.found("common") == set()
toys.close()
assert not any(b"zanzibarquince" in path.read_bytes() for path in (directory / "data").iterdir())
"""


@pytest.mark.slow
@pytest.mark.skipif(sqlite3.sqlite_version_info < sqlite.MINIMUM_VERSION, reason="too old an SQLite")
def test_the_standard_librarys_sqlite_serves_as_well(tmp_path: Path) -> None:
    path = [str(Path(__file__).parents[1]), *sys.path]
    code = STANDARD.format(path=path, directory=str(tmp_path))
    subprocess.run([sys.executable, "-c", code], check=True)


INGESTING = """
sys.path[:0] = [{tests!r}]
from contextlib import closing
from pathlib import Path
from support.stores import open_toy_store
from session_query.storage.sources import ingest
ingest.STEP_EVENTS = 40
toys = open_toy_store(Path({directory!r}), retain={retain})
print("open", len(toys.sessions()), flush=True)
for progress in toys.store.sources.refresh():
    print(progress.units_done, progress.events, flush=True)
toys.close()
"""


@pytest.mark.parametrize("retain", [False, True])
def test_a_killed_build_goes_on_where_it_was(tmp_path: Path, retain: bool) -> None:
    dice = random.Random(ROUNDS + retain)
    (tmp_path / "logs").mkdir()
    for n in range(60):
        lines = [line(f"s{n}", f"common w{n}x{at}", title=f"t{at}") for at in range(dice.randint(1, 60))]
        (tmp_path / f"logs/{n}.toy").write_bytes(b"".join(lines))
    code = INGESTING.format(tests=str(Path(__file__).parents[1]), directory=str(tmp_path), retain=retain)
    done_before = 0
    for _ in range(ROUNDS):
        lines_seen, _ = run_and_kill(code, dice.randint(1, 12), delay_s=dice.random() / 50)
        opened = int(lines_seen[0].split()[1])
        assert opened >= done_before, "what was committed is still there"
        done_before = opened
    toys = open_toy_store(tmp_path, retain=retain)
    assert toys.store.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    already = len(toys.sessions())
    toys.refresh()
    restarted = [name for name, offset in toys.toy.reads if not offset]
    assert already >= done_before
    assert len(restarted) <= 60 - already + ROUNDS, "a kill costs the log it struck, not those before it"
    assert len(toys.found("common")) == 60
    for n in (0, 17, 59):
        texts = [one for one in (tmp_path / f"logs/{n}.toy").read_bytes().splitlines() if one]
        assert len(toys.documents(f"s{n}")) == len(texts)
        if retain:
            copy = toys.store.journal.find(SessionKey("toy", "", f"s{n}"))
            assert copy is not None
            assert copy.length == len(texts)
    toys.close()


def test_a_lost_journal_is_told_and_nothing_is_deleted(tmp_path: Path) -> None:
    store = open_toy_published(tmp_path)
    store.close()
    data = tmp_path / "data"
    (data / "journal.db").rename(tmp_path / "backup.db")
    for attempt in (open_store, discard_index, open_store):
        with pytest.raises(QueryError, match=r"restore journal\.db") as caught:
            attempt(in_data(tmp_path))
        assert caught.value.code is Code.PERSISTENCE_FAILED
    (data / "journal.db").unlink()
    (tmp_path / "backup.db").rename(data / "journal.db")
    again = open_store(in_data(tmp_path))
    assert found(again, "precious") == [("s", 0)]
    again.close()


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_a_damaged_journal_costs_no_index(tmp_path: Path, clean: bool) -> None:
    store = open_toy_published(tmp_path)
    if not clean:
        store.mark_behind(KEY)  # nobody says that the index is in step: the next start reads the journal
    store.close()
    journal, index = tmp_path / "data" / "journal.db", tmp_path / "data" / "index.db"
    sound = journal.read_bytes()
    connection = sqlite3.connect(journal)
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'session'")
    connection.close()
    with journal.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    damaged = journal.read_bytes()
    attempts = [lambda: discard_index(in_data(tmp_path))]
    if not clean:
        attempts.insert(0, lambda: open_store(in_data(tmp_path)).close())
    for attempt in attempts:
        with pytest.raises(QueryError, match=r"^the journal .* is damaged") as caught:
            attempt()
        assert caught.value.code is Code.PERSISTENCE_FAILED
        assert sorted(path.name for path in index.parent.iterdir() if "damaged" in path.name) == []
    assert journal.read_bytes() == damaged
    journal.write_bytes(sound)
    again = open_store(in_data(tmp_path))
    assert (again.opening, found(again, "precious")) == (Opening.USED, [("s", 0)])
    again.close()


def open_toy_published(tmp_path: Path) -> Store:
    """A store with one published session that is indexed."""
    store = open_store(in_data(tmp_path))
    store.journal.attach("/w", HEADER, [event(0, "precious words")], 1)
    store.catch_up(KEY)
    return store


def test_the_page_cache_of_a_search_goes_by_the_size_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cache_kib(reader: StoreReader) -> int:
        return -int(reader.connection.execute("PRAGMA cache_size").fetchall()[0][0])

    monkeypatch.setattr(sqlite, "CACHE_SHARE", 1)
    with closing(open_store(StoreSettings(data_dir=tmp_path))) as store:
        searching, reading = store.open_reader(), store.open_reader(cache_kib=1024)
        with closing(searching), closing(reading):
            assert cache_kib(searching) == sqlite.READER_CACHE_KIB
            store.connection.execute("CREATE TABLE filler AS SELECT zeroblob(9000000) AS x")
            store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            for _ in range(CACHE_LOOK_EVERY - 1):
                searching.used()
            assert cache_kib(searching) == sqlite.READER_CACHE_KIB
            for _ in range(CACHE_LOOK_EVERY):
                searching.used()
                reading.used()
            assert 8_700 < cache_kib(searching) < 9_500
            assert cache_kib(reading) == 1024
            monkeypatch.setattr(sqlite, "READER_CACHE_MAX_KIB", 5000)
            with closing(store.open_reader()) as another:
                assert cache_kib(another) == 5000
