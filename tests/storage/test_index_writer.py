"""What the writer leaves in the tables: postings, spans, texts, generations, visibility (SPEC 6, 16)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET

from session_query.protocol.documents import Document
from session_query.protocol.records import Title
from session_query.storage import sqlite
from session_query.storage.index import Reach, SearchSpec, SessionKey, Skeleton, spans
from session_query.storage.index import writer as writer_module
from session_query.storage.index.bodies import Bodies
from session_query.storage.index.writer import open_writer
from session_query.storage.text_codec import TextCodec
from support.index_files import IndexFile, document, open_index, state

KEY = SessionKey("journal", "", "s")
WORDS = [f"w{n}" for n in range(40)]


@pytest.fixture
def index() -> Iterator[IndexFile]:
    with open_index() as opened:
        yield opened


def skeleton(found: list[Document]) -> list[Skeleton]:
    return [Skeleton(seq=d.seq, type=d.type, time=d.time, surface_op="append") for d in found]


def check_tables(index: IndexFile) -> None:
    """Postings and spans say exactly what the text copies hold."""
    execute = index.connection.execute
    spanned = execute("SELECT 1 FROM index_meta WHERE name = 'spans'").fetchone() is not None
    for table in ("fts", "span") if spanned else ("fts",):
        execute(f"INSERT INTO {table}({table}, rank) VALUES('integrity-check', 0)")
    texts = dict(Bodies(index.connection, TextCodec()).between(0, 1 << 60))
    searches = {doc for (doc,) in execute("SELECT doc FROM doc WHERE search = 1").fetchall()}
    assert texts.keys() == {doc for (doc,) in execute("SELECT doc FROM doc").fetchall()}
    if spanned:
        check_spans(index, texts, searches)
    for word in WORDS:
        held = {row for row, text in texts.items() if word in text.split()}
        found = {
            r for (r,) in execute("SELECT rowid FROM fts WHERE fts MATCH ?", (f'text : "{word}"',)).fetchall()
        }
        assert found == held - searches


def check_spans(index: IndexFile, texts: dict[int, str], searches: set[int]) -> None:
    execute = index.connection.execute
    ends = dict(execute("SELECT doc, last FROM span_end").fetchall())
    frequent = {token for (token,) in execute("SELECT token FROM span_word").fetchall()}
    todo = {block for (block,) in execute("SELECT block FROM span_todo").fetchall()}
    for word in WORDS:
        held = {row for row, text in texts.items() if word in text.split()}
        rows = {r for (r,) in execute("SELECT rowid FROM span WHERE span MATCH ?", (f'"{word}"',)).fetchall()}
        expected = {
            row
            for row, last in ends.items()
            if any(abs(row) <= doc <= last and (doc in searches) == (row < 0) for doc in held)
        }
        assert rows == (expected if word in frequent else set())
        if word in frequent:
            covered = {doc for doc in held if doc >> 12 not in todo}
            assert all(
                any(abs(row) <= doc <= last and (doc in searches) == (row < 0) for row, last in ends.items())
                for doc in covered
            )


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_changes_leaves_exact_tables(
    index: IndexFile, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "SPANS_FROM_DOCUMENTS", 20 if seed else 1 << 30)
    monkeypatch.setattr(spans, "FREQUENT_BLOCKS_MIN", 2)
    monkeypatch.setattr(spans, "FREQUENT_SHARE", 0.05)
    monkeypatch.setattr(spans, "COVER_DOCUMENTS", 3)
    rng = random.Random(seed)
    writer, kept = index.writer, {}
    for _ in range(120):
        key = SessionKey("journal", "", f"s{rng.randrange(6)}")
        cwd = rng.choice(["/a", "/a", "/a", "/b"])
        with writer.transaction():
            sid = writer.put_session(key, state(key.id, cwd=cwd))
            known = kept.setdefault(key, [])
            choice = rng.random()
            if choice < 0.6:
                start = known[-1].seq + 1 if known else 0
                new = [
                    document(
                        start + n,
                        " ".join(rng.choices(WORDS, k=rng.randrange(1, 6))),
                        is_search=rng.random() < 0.2,
                    )
                    for n in range(rng.randrange(1, 8))
                ]
                writer.append(sid, new, skeleton(new))
                known += new
            elif choice < 0.8 and known:
                cut = rng.randrange(known[-1].seq + 2)
                writer.truncate(sid, cut)
                known[:] = [d for d in known if d.seq < cut]
            elif choice < 0.87:
                writer.delete(sid)
                del kept[key]
        if rng.random() < 0.4:
            writer.merge_step()
    check_tables(index)
    while writer.merge_step():
        pass
    check_tables(index)
    with index.reader.snapshot():
        for key, known in kept.items():
            stored = index.reader.find(key)
            assert stored is not None
            assert stored.documents == len(known)
            assert index.reader.documents(stored.sid) == known
            assert [row.seq for row in index.reader.skeleton(stored.sid)] == [d.seq for d in known]
            assert all(index.reader.document(stored.sid, d.seq) == d for d in known)
            assert index.reader.document(stored.sid, 10_000) is None


def test_a_session_longer_than_a_block_is_one_session(index: IndexFile) -> None:
    found = [document(2 * n, f"needle{n:05d} common") for n in range(9_000)]
    sid = index.put(KEY, state("s"), found)
    with index.reader.snapshot():
        reader = index.reader
        assert [
            hit.best.seq for hit in reader.search_sessions(SearchSpec(query="needle08999"), Reach()).hits
        ] == [17_998]
        page = reader.search_events(SearchSpec(query="common", limit=100), Reach(), sid)
        assert [hit.seq for hit in page.hits] == [2 * n for n in range(8_999, 8_899, -1)]
        assert len(reader.documents(sid)) == 9_000
    with index.writer.transaction():
        index.writer.truncate(sid, 10_001)
        index.writer.append(sid, [document(20_000, "needle08999 again")])
    with index.reader.snapshot():
        assert len(index.reader.documents(sid)) == 5_002
        found_again = index.reader.search_events(SearchSpec(query="needle08999"), Reach(), sid)
        assert [hit.seq for hit in found_again.hits] == [20_000]


def test_documents_come_in_order_only(index: IndexFile) -> None:
    sid = index.put(KEY, state("s"), [document(3, "x")])
    with pytest.raises(ValueError, match="after 3"), index.writer.transaction():
        index.writer.append(sid, [document(3, "y")])
    check_tables(index)


def test_what_fails_inside_a_transaction_leaves_nothing(index: IndexFile) -> None:
    def failing() -> None:
        with index.writer.transaction():
            sid = index.writer.put_session(KEY, state("s"))
            index.writer.append(sid, [document(0, "gone")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with index.reader.snapshot():
        assert index.reader.find(KEY) is None
        assert index.reader.generation() == 0


def test_a_part_that_fails_takes_nothing_of_the_rest_with_it(index: IndexFile) -> None:
    other = SessionKey("journal", "", "t")

    def failing(sid: int) -> None:
        with index.writer.transaction():
            index.writer.append(index.writer.put_session(other, state("t")), [document(0, "w2 lost")])
            index.writer.append(sid, [document(1, "w3 lost")])
            raise ZeroDivisionError

    with index.writer.transaction():
        sid = index.writer.put_session(KEY, state("s"))
        index.writer.append(sid, [document(0, "w1 first")])
        with pytest.raises(ZeroDivisionError):
            failing(sid)
        index.writer.append(sid, [document(1, "w4 second")])
    check_tables(index)
    with index.reader.snapshot():
        assert [d.text for d in index.reader.documents(sid)] == ["w1 first", "w4 second"]
        assert index.reader.find(other) is None


def test_state_comes_back_as_it_was_put(index: IndexFile) -> None:
    whole = state(
        "s\ud800", cwd="/a\udc00", parent_session="p\ud801", origin="subagent", seed_length=3, inherited=2,
        title=Title(title="T", message_seqs=(1, 2), source={"kind": "user", "x": [None]}, seq=4, time=-5),
        title_error="E", length=9, revision="r\ud800", persisted=False, source_gone=True, losses=7,
        rank=4,
    )  # fmt: skip
    key = SessionKey("codex", "pl\ud800ace", "s\ud800")
    sid = index.put(key, whole)
    with index.reader.snapshot():
        stored = index.reader.session(sid)
        assert stored is not None
        assert (stored.key, stored.state) == (key, whole)
        assert index.reader.find(key) == stored


def test_skeletons_keep_what_the_fold_needs(index: IndexFile) -> None:
    rows = [
        Skeleton(seq=0, type="user/message", time=-1, surface_op="append", source_event_seqs=None),
        Skeleton(seq=1, type="turn/start", time=5),
        Skeleton(
            seq=2,
            type="assistant/message",
            time=5,
            surface_op={"op": "replace", "start": 0, "end": 0},
            source_event_seqs=[0],
        ),
        Skeleton(seq=3, type="odd\ud800", time=2**53 - 1, surface_op=[1.5, {"a": None}]),
    ]
    with index.writer.transaction():
        sid = index.writer.put_session(KEY, state("s"))
        index.writer.append(sid, [], rows[:3])
        index.writer.append(sid, [], rows[3:])
    with index.reader.snapshot():
        assert index.reader.skeleton(sid) == rows
        assert index.reader.skeleton(sid)[1].surface_op is UNSET
    with index.writer.transaction():
        index.writer.truncate(sid, 1)
    with index.reader.snapshot():
        assert index.reader.skeleton(sid) == rows[:1]


def generations(index: IndexFile, *sids: int) -> tuple[int, ...]:
    with index.reader.snapshot():
        reader = index.reader
        each = [reader.session_generation(sid) for sid in sids]
        return (
            reader.generation(),
            reader.workspace_generation("/a"),
            reader.workspace_generation("/b"),
            *each,
        )


def test_generations_move_with_what_changed_and_only_then(index: IndexFile) -> None:
    a = index.put(KEY, state("s"), [document(0, "x")])
    b = index.put(SessionKey("journal", "", "t"), state("t", cwd="/b"), [document(0, "x")])
    assert generations(index, a, b) == (2, 1, 2, 1, 2)
    with index.writer.transaction():
        index.writer.put_session(KEY, state("s"))
        index.writer.append(a, [])
        index.writer.truncate(a, 5)
    assert generations(index, a, b) == (2, 1, 2, 1, 2)
    with index.writer.transaction():
        index.writer.append(a, [document(1, "y")])
        index.writer.reclassify(a, {0: "shadowed", 77: "current"})
    assert generations(index, a, b) == (3, 3, 2, 3, 2)
    with index.writer.transaction():
        index.writer.touch([b])
    assert generations(index, a, b) == (4, 3, 4, 3, 4)
    with index.writer.transaction():
        index.writer.delete(b)
    assert generations(index, a, b) == (5, 3, 5, 3, 0)
    with index.writer.transaction():
        index.writer.put_session(KEY, state("s", cwd="/b"))
    assert generations(index, a) == (6, 6, 6, 6)
    check_tables(index)


def test_generations_and_sids_go_on_after_reopening(tmp_path: Path) -> None:
    with open_index(tmp_path / "index.db") as index:
        first = index.put(KEY, state("s", durable=False), [document(0, "words")])
        index.put(SessionKey("journal", "", "t"), state("t"), [document(0, "words")])
        index.connection.close()
        again = sqlite.connect_writer(tmp_path / "index.db")
        writer = open_writer(again)
        assert writer.generation() == 3  # the session nobody stored is gone
        assert writer.find(KEY) is None
        with writer.transaction():
            assert writer.put_session(KEY, state("s")) > first
        again.close()


def test_the_best_readable_row_of_a_session_is_the_visible_one(index: IndexFile) -> None:
    keys = [SessionKey(source, "", "s") for source in ("live", "journal", "codex")]
    sids = [index.put(key, state("s", rank=rank), [document(0, key.source)]) for rank, key in enumerate(keys)]

    def seen() -> list[str]:
        with index.reader.snapshot():
            listed = index.reader.sessions(Reach())
            found = [index.reader.search_sessions(SearchSpec(query=key.source), Reach()).hits for key in keys]
            assert [s.key.source for s in listed] == [hits[0].session.key.source for hits in found if hits]
            assert index.reader.fallbacks(sids[2])[0].sid == listed[0].sid
            return [s.key.source for s in listed]

    assert seen() == ["live"]
    with index.writer.transaction():
        index.writer.delete(sids[0])
    assert seen() == ["journal"]
    with index.writer.transaction():
        index.writer.put_session(keys[1], state("s", rank=1, error="SESSION_QUERY_CORRUPT_SESSION"))
    assert seen() == ["codex"]
    with index.writer.transaction():
        index.writer.show_source("codex", False)
    with index.reader.snapshot():
        assert index.reader.sessions(Reach()) == []
        assert [s.key.source for s in index.reader.unread(Reach())] == ["journal"]
    with index.writer.transaction():
        index.writer.show_source("codex", True)
    assert seen() == ["codex"]


def test_a_live_session_with_another_header_covers_nothing(index: IndexFile) -> None:
    index.put(SessionKey("live", "", "s"), state("s", rank=0, parent_session="p"))
    index.put(SessionKey("journal", "", "s"), state("s", rank=1))
    with index.reader.snapshot():
        assert [s.key.source for s in index.reader.sessions(Reach())] == ["live", "journal"]


def test_meta_values(index: IndexFile) -> None:
    with index.writer.transaction():
        index.writer.set_meta("a", b"1")
        index.writer.set_meta("b", b"2")
        index.writer.set_meta("b", None)
    with index.reader.snapshot():
        assert (index.reader.get_meta("a"), index.reader.get_meta("b")) == (b"1", None)


@pytest.mark.parametrize("merged", [False, True])
def test_words_of_a_deleted_session_are_in_no_file(
    tmp_path: Path, merged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "SPANS_FROM_DOCUMENTS", 20)
    monkeypatch.setattr(spans, "FREQUENT_BLOCKS_MIN", 2)
    rng = random.Random(5)
    with open_index(tmp_path / "index.db") as index:
        kept = index.put(
            SessionKey("journal", "", "kept"), state("kept"), [document(n, "plain words") for n in range(30)]
        )
        secret = [" ".join(["zzsecret", f"zzcode{n:04d}", *rng.choices(WORDS, k=40)]) for n in range(200)]
        sid = index.put(
            KEY, state("s", cwd="/zzhidden"), [document(n, text) for n, text in enumerate(secret[:100])]
        )
        with index.writer.transaction():
            index.writer.append(sid, [document(100 + n, text) for n, text in enumerate(secret[100:])])
            index.writer.truncate(sid, 150)
        while merged and index.writer.merge_step():
            pass
        with index.writer.transaction():
            index.writer.delete(sid)
        index.writer.scrub()
        index.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for path in tmp_path.iterdir():
            data = path.read_bytes()
            assert b"zzsecret" not in data
            assert b"zzcode" not in data
            assert b"0042" not in data, "terms share prefixes on a page; the rest of one must be gone too"
        check_tables(index)
        with index.reader.snapshot():
            assert len(index.reader.documents(kept)) == 30


def test_readers_see_one_state_while_the_writer_goes_on(tmp_path: Path) -> None:
    with open_index(tmp_path / "index.db") as index:
        sid = index.put(KEY, state("s"), [document(0, "before")])
        with index.reader.snapshot():
            assert [d.text for d in index.reader.documents(sid)] == ["before"]
            with index.writer.transaction():
                index.writer.truncate(sid)
                index.writer.append(sid, [document(0, "after")])
            assert [d.text for d in index.reader.documents(sid)] == ["before"]
            assert not index.reader.search_sessions(SearchSpec(query="after"), Reach()).hits
        with index.reader.snapshot():
            assert [d.text for d in index.reader.documents(sid)] == ["after"]


def test_parents_and_children_are_found_near_before_far(index: IndexFile) -> None:
    far = index.put(SessionKey("codex", "", "p"), state("p", created_at=5, rank=2))
    near = index.put(SessionKey("journal", "", "p"), state("p"))
    child = index.put(KEY, state("s", parent_session="p"))
    cousin = index.put(SessionKey("codex", "", "q"), state("q", parent_session="p", rank=2))
    alone = index.put(SessionKey("dsh", "", "r"), state("r", parent_session="nowhere", rank=3))
    with index.reader.snapshot():
        found = {sid: index.reader.parent(sid) for sid in (child, cousin, alone, near)}
        assert {sid: parent and parent.sid for sid, parent in found.items()} == {
            child: near, cousin: far, alone: None, near: None,
        }  # fmt: skip
        assert [s.sid for s in index.reader.children(near)] == [child]
        assert [s.sid for s in index.reader.children(far)] == [cousin]


def test_a_session_that_only_grew_rewrites_none_of_its_index_entries(tmp_path: Path) -> None:
    with open_index(tmp_path / "index.db") as index:
        index.connection.execute("PRAGMA wal_autocheckpoint=0").fetchall()
        # so that indexes over what a state holds are pages of their own, not the table's
        for number in range(40):
            index.put(SessionKey("journal", "", f"o{number}"), state(f"o{number}"))
        index.put(KEY, state("s", length=1))
        log = Path(f"{index.path}-wal")
        written = []
        for changed in (state("s", length=2), state("s", length=2, losses=1)):
            before = log.stat().st_size
            index.put(KEY, changed)
            written.append(log.stat().st_size - before)
            found = index.writer.find(KEY)
            assert found is not None
            assert found.state == changed
        assert written[0] < written[1]


@pytest.mark.parametrize("bulk", [True, False])
def test_after_a_large_transaction_the_engine_begins_anew_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bulk: bool
) -> None:
    monkeypatch.setattr(writer_module, "LARGE_FLUSH", 30)
    forgotten = []
    forget = writer_module.Writer._forget_words
    monkeypatch.setattr(
        writer_module.Writer, "_forget_words", lambda self: (forgotten.append(1), forget(self))
    )
    with open_index(tmp_path / "index.db") as index:
        if bulk:
            index.writer.bulk(True)
        index.put(KEY, state("s"), [document(seq, f"alpha w{seq}") for seq in range(31)])
        if bulk:
            index.writer.bulk(False)
            assert forgotten == [1]
        while index.writer.merge_step():
            pass
        assert forgotten == [1]
        sid = index.put(KEY, state("s", length=32), [document(31, "beta w5")])
        assert not index.writer.merge_step()
        assert forgotten == [1], "a small one costs nothing"
        index.writer.truncate(sid, 20)
        check_tables(index)
        spec = SearchSpec(query="beta", limit=5)
        with index.reader.snapshot():
            assert index.reader.search_sessions(spec, Reach()).hits == ()
            found = index.reader.search_sessions(SearchSpec(query="w5", limit=5), Reach()).hits
        assert [hit.best.seq for hit in found] == [5]
