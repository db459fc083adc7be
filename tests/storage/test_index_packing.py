"""Text copies move onto shelves in idle time; what is read, cut and forgotten is as it was before."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.storage import sqlite
from session_query.storage.guard import open_guarded
from session_query.storage.index import SessionKey, Skeleton, bodies, open_writer, packing, shelves, tagging
from session_query.storage.index.bodies import Bodies, BodyRun
from session_query.storage.index.packing import Packing
from session_query.storage.index.shelves import (
    Run,
    chars_of,
    cut_into_runs,
    open_run,
    pack_run,
    run_with,
    runs_of,
    unpack_run,
)
from session_query.storage.index.spans import Spans
from session_query.storage.index.tagging import Tagging
from session_query.storage.sqlite import Connection
from session_query.storage.store import INDEX_SCHEMA
from session_query.storage.text_codec import TextCodec
from support.index_files import IndexFile, document, open_index, state

RUN_CHARS = 400


@pytest.fixture
def index() -> Iterator[IndexFile]:
    with open_index() as opened:
        yield opened


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (shelves, packing, bodies):
        monkeypatch.setattr(module, "RUN_CHARS_MAX", RUN_CHARS)
    monkeypatch.setattr(shelves, "SHELF_BYTES_MAX", 600)
    monkeypatch.setattr(packing, "SHELF_BYTES_MAX", 600)
    monkeypatch.setattr(packing, "STEP_CHARS", 1_500)


def check(connection: Connection, model: dict[int, str], rng: random.Random) -> None:
    """Every way to read tells what the model holds, and the tables are as they are described."""
    texts = Bodies(connection, TextCodec())
    assert dict(texts.between(0, 1 << 60)) == model
    rows = sorted(model)
    for _ in range(6):
        block = rng.choice(rows or [0]) >> 12
        low, high = sorted((block << 12 | rng.randrange(60), block << 12 | rng.randrange(60)))
        assert list(texts.between(low, high)) == [(row, model[row]) for row in rows if low <= row <= high]
    texts.load([*rng.sample(rows, min(len(rows), 25)), 5])
    for row in rng.sample(rows, min(len(rows), 40)):
        assert texts.text(row) == model[row]
    for row in (0, 7 << 12 | 4_000, 1 << 50):
        with pytest.raises(KeyError):
            texts.text(row)
    check_shelves(connection)


def check_shelves(connection: Connection) -> None:
    codec = TextCodec()
    last = -1
    for key, shelf in connection.execute("SELECT doc, texts FROM body ORDER BY doc").fetchall():
        runs = runs_of(shelf)
        assert runs[0].first == key
        assert len(shelf) <= shelves.SHELF_BYTES_MAX + 200 or len(runs) == 1
        for run in runs:
            held = unpack_run(codec, run)
            assert held[0][0] == run.first > last
            assert chars_of(held) <= shelves.RUN_CHARS_MAX or len(held) == 1
            assert [run_with(shelf, row) for row, _ in held] == [run] * len(held)
            last = held[-1][0]


def count(connection: Connection, table: str) -> int:
    ((number,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(number)


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("seed", range(5))
def test_texts_are_those_of_a_plain_dictionary(index: IndexFile, seed: int) -> None:
    rng = random.Random(seed)
    connection, codec = index.connection, TextCodec()
    texts, idle = Bodies(connection, codec), Packing(connection, codec)
    model: dict[int, str] = {}
    ends: dict[int, int] = {}
    for turn in range(250):
        block = rng.randrange(1, 12)
        number = ends.get(block, 0)
        choice = rng.random()
        if choice < 0.6:
            runs: list[BodyRun] = []
            for _ in range(rng.randrange(1, 7)):
                row = block << 12 | number
                model[row] = "".join(rng.choices("abc dé\n", k=rng.choice([0, 3, 40, 90, 900])))
                BodyRun.extend(runs, row, model[row])
                number += 1
            texts.insert(runs)
            ends[block] = number
        elif choice < 0.75:
            first = block << 12 | rng.randrange(number + 1)
            texts.cut(first, block << 12 | 4095)
            model = {row: text for row, text in model.items() if not first <= row <= block << 12 | 4095}
            ends[block] = min(number, first & 4095)
        else:
            idle.step()
        if turn % 20 == 0:
            check(connection, model, rng)
    while idle.step():
        pass
    assert count(connection, "body_new") <= packing.NEW_ROWS_MAX
    check(connection, model, rng)


@pytest.mark.usefixtures("small_runs")
def test_packing_ends_and_is_not_done_again(index: IndexFile) -> None:
    connection, codec = index.connection, TextCodec()
    texts, idle = Bodies(connection, codec), Packing(connection, codec)
    rng = random.Random(3)
    for block in rng.sample(range(1, 200), 120):
        texts.insert([BodyRun(block << 12, 0, [f"{block} {n} " * 3 for n in range(4)])])
    steps = 1
    waiting = count(connection, "body_new")
    while idle.step():
        steps += 1
        assert count(connection, "body_new") < waiting  # each step comes nearer
        waiting = count(connection, "body_new")
    assert waiting == 0
    assert 2 < steps <= 121
    rows = connection.execute("SELECT doc, texts FROM body").fetchall()
    assert len(rows) < 40
    changes = connection.total_changes
    assert not idle.step()
    assert connection.total_changes == changes
    for block in range(300, 300 + packing.NEW_ROWS_MAX):
        texts.insert([BodyRun(block << 12, 0, ["few"])])
    assert not idle.step()  # too few to be worth packing the last run anew
    assert connection.execute("SELECT doc, texts FROM body").fetchall() == rows
    texts.insert([BodyRun(400 << 12, 0, ["one more"])])
    while idle.step():
        pass
    assert count(connection, "body_new") == 0


def test_small_sessions_share_a_run_and_a_shelf(index: IndexFile) -> None:
    connection, codec = index.connection, TextCodec()
    texts, idle = Bodies(connection, codec), Packing(connection, codec)
    for block in range(1, 101):
        texts.insert(
            [BodyRun(block << 12, 0, [f"session {block} says {n} " + "word " * 150 for n in range(4)])]
        )
    while idle.step():
        pass
    found = connection.execute("SELECT texts FROM body").fetchall()
    runs = [run for (shelf,) in found for run in runs_of(shelf)]
    assert len(found) == 1
    assert 13 <= len(runs) <= 16
    check_shelves(connection)


@pytest.mark.usefixtures("small_runs")
def test_what_lies_between_two_runs_does_not_part_them_for_ever(index: IndexFile) -> None:
    """Sessions in the middle grow a little, again and again: runs stay well filled."""
    connection, codec = index.connection, TextCodec()
    texts, idle = Bodies(connection, codec), Packing(connection, codec)
    rng = random.Random(9)
    ends = dict.fromkeys(range(1, 40), 0)
    total = 0
    for _ in range(900):
        block = rng.randrange(1, 40)
        texts.insert([BodyRun(block << 12 | ends[block], 0, ["x" * 30])])
        ends[block] += 1
        total += 30
        idle.step()
    while idle.step():
        pass
    found = connection.execute("SELECT texts FROM body").fetchall()
    assert sum(len(runs_of(shelf)) for (shelf,) in found) <= 1.8 * total / RUN_CHARS


def test_a_run_tells_its_documents() -> None:
    codec = TextCodec()
    documents = [(7, "a"), (8, "b" * 70_000), (1 << 40, ""), ((1 << 40) + 1, "é" * 300)]
    run = pack_run(codec, documents)
    assert unpack_run(codec, run) == documents
    opened = open_run(codec, run)
    assert list(opened.rows) == [row for row, _ in documents]
    assert [row for row in range(6, 12) if opened.holds(row)] == [7, 8]
    assert opened.some(codec, [7, 1 << 40]) == ["a", ""]
    assert opened.some(codec, []) == []
    assert opened.texts(codec) == [text for _, text in documents]
    apart = [(7, "a"), (9, "b"), (11, "c")]
    assert unpack_run(codec, pack_run(codec, apart)) == apart
    following = [(7 + n, "x" * n) for n in range(20)]
    run = pack_run(codec, following)
    assert unpack_run(codec, run) == following
    assert open_run(codec, run).rows == range(7, 27)
    assert not open_run(codec, run).holds(27)
    assert [len(one) for one in cut_into_runs(documents)] == [1, 1, 2]
    rows = [*shelves.shelves([Run(n, b"x" * 900) for n in range(70)])]
    assert [run.first for _, shelf in rows for run in runs_of(shelf)] == list(range(70))
    assert max(len(shelf) for _, shelf in rows) <= shelves.SHELF_BYTES_MAX + 400


WORD = "unforgettablecucumber"


@pytest.mark.parametrize("packed", [True, False])
def test_forgetting_a_session_leaves_none_of_its_bytes_where_others_shared_its_run(
    tmp_path: Path, packed: bool
) -> None:
    path = tmp_path / "index.db"
    connection, _ = open_guarded(path, INDEX_SCHEMA)
    writer = open_writer(connection)
    noise = random.Random(4)
    kept = {}
    for number in range(30):
        name = f"s{number}"
        said = [f"{noise.getrandbits(200):x} {WORD if number == 17 else name}" for _ in range(5)]
        with writer.transaction():
            sid = writer.put_session(SessionKey("journal", "", name), state(name))
            made = [Skeleton(seq=0, type=f"x/{said[0][40:52]}", time=1), Skeleton(seq=1, type="y", time=2)]
            writer.append(sid, [document(seq, text) for seq, text in enumerate(said)], made)
        kept[sid] = said
    while packed and writer.merge_step():
        pass
    assert (count(connection, "body_new") == 0) == packed
    found = writer.find(SessionKey("journal", "", "s17"))
    assert found is not None
    with writer.transaction():
        writer.delete(found.sid)
    gone = kept.pop(found.sid)
    writer.scrub()
    assert sqlite.empty_log(connection)
    assert holds(path, gone) == []
    while writer.merge_step():
        pass
    sqlite.empty_log(connection)
    assert holds(path, gone) == []
    texts = sorted(text for _, text in Bodies(connection, TextCodec()).between(0, 1 << 60))
    assert texts == sorted(text for said in kept.values() for text in said)
    connection.close()


def holds(path: Path, texts: list[str]) -> list[str]:
    """Pieces of the texts that stand in the files. Noise is packed as it is: nothing else hides it."""
    data = b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))
    pieces = [text[at : at + 12] for text in texts for at in range(0, 48, 12)]
    return [piece for piece in (*pieces, WORD) if piece.encode() in data]


def test_skeletons_are_packed_together_and_cut_anywhere(index: IndexFile) -> None:
    rng = random.Random(8)
    kept: dict[int, list[Skeleton]] = {}
    for turn in range(300):
        key = SessionKey("codex", "", f"s{rng.randrange(12)}")
        with index.writer.transaction():
            sid = index.writer.put_session(key, state(key.id))
            own = kept.setdefault(sid, [])
            if rng.random() < 0.7:
                made = [event(rng, len(own) + n) for n in range(rng.randrange(1, 40))]
                index.writer.append(sid, [], made)
                own += made
            elif rng.random() < 0.8:
                cut = rng.randrange(len(own) + 3)
                index.writer.truncate(sid, cut)
                del own[cut:]
            else:
                index.writer.delete(sid)
                del kept[sid]
        if rng.random() < 0.2:
            index.writer.merge_step()
        if turn % 30 == 0:
            check_skeletons(index, kept)
    while index.writer.merge_step():
        pass
    check_skeletons(index, kept)
    assert count(index.connection, "body") < len(kept) / 2
    assert index.connection.execute("SELECT count(*) FROM body WHERE doc >= 0").fetchall() == [(0,)]


def event(rng: random.Random, seq: int) -> Skeleton:
    ops: list[JSON] = ["append", "append", None, {"op": "replace", "start": 0, "end": 1}, [seq], 7]
    sources: list[JSON] = [[seq - 1], [seq - 3], [], [0, 1], None, "x", [True], [1.5], [[1]]]
    given: dict[str, JSON] = {}
    if rng.random() < 0.7:
        given["surface_op"] = rng.choice(ops)
    if rng.random() < 0.6:
        given["source_event_seqs"] = rng.choice(sources)
    kind = rng.choice(["user/message", "assistant/chunk", "tool/call", "odd \ud800"])
    return Skeleton(seq=seq, type=kind, time=rng.choice([0, -5, 1_700_000_000_000 + seq]), **given)


def check_skeletons(index: IndexFile, kept: dict[int, list[Skeleton]]) -> None:
    with index.reader.snapshot():
        for sid, events in kept.items():
            found = index.reader.skeleton(sid)
            assert found == events
            assert [type(one.source_event_seqs) for one in found] == [
                type(one.source_event_seqs) for one in events
            ]
        assert index.reader.skeleton(10**6) == []


def test_the_pieces_looked_for_would_be_found(tmp_path: Path) -> None:
    """The check above can fail: random digits do stand as they are in what is packed."""
    connection, _ = open_guarded(tmp_path / "index.db", INDEX_SCHEMA)
    writer = open_writer(connection)
    with writer.transaction():
        sid = writer.put_session(SessionKey("journal", "", "s"), state("s"))
        writer.append(sid, [document(0, f"word {WORD}")])
    sqlite.empty_log(connection)
    assert WORD in holds(tmp_path / "index.db", [])
    connection.close()


def first_bytes(index: IndexFile, table: str) -> set[bytes]:
    return {
        head for (head,) in index.connection.execute(f"SELECT substr(texts, 1, 1) FROM {table}").fetchall()
    }


def test_what_an_append_leaves_lies_as_it_is_until_it_is_packed(index: IndexFile) -> None:
    sid = index.put(SessionKey("journal", "", "s"), state("s"))
    texts = [
        f"some words again and again, number {n}: " + "again " * 20 for n in range(2 * packing.NEW_ROWS_MAX)
    ]
    for seq, text in enumerate(texts):
        with index.writer.transaction():
            index.writer.append(sid, [document(seq, text)])
    assert first_bytes(index, "body_new") == {b"\x00"}
    assert [one.text for one in index.reader.documents(sid)] == texts
    while index.writer.merge_step():
        pass
    assert first_bytes(index, "body_new") == set()
    assert [one.text for one in index.reader.documents(sid)] == texts
    ((size,),) = index.connection.execute("SELECT sum(length(texts)) FROM body").fetchall()
    assert size < sum(map(len, texts)) / 4


@pytest.mark.parametrize(("count", "bulk"), [(1_000, False), (10, True)])
def test_much_at_once_is_compressed_at_once(index: IndexFile, count: int, bulk: bool) -> None:
    index.writer.bulk(bulk)
    documents = [document(seq, "again and again " * 20) for seq in range(count)]
    index.put(SessionKey("journal", "", "s"), state("s"), documents)
    assert first_bytes(index, "body_new") == {b"\x01"}


def test_without_silence_tags_are_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagging, "TAGS_FROM_DOCUMENTS", 600)
    with open_index(tagged=False) as index:
        index.writer.merge_step(pressed=True)
        assert not tagging.all_tagged(index.connection)
        sid = index.put(SessionKey("journal", "", "s"), state("s"))
        with index.writer.transaction():
            index.writer.append(sid, [document(seq, f"words, number {seq}") for seq in range(1_500)])
        index.writer.merge_step(pressed=True)
        assert tagging.all_tagged(index.connection)


def test_without_silence_every_kind_of_idle_work_has_its_turn(
    index: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    sid = index.put(SessionKey("journal", "", "s"), state("s"))
    for seq in range(2 * packing.NEW_ROWS_MAX):
        with index.writer.transaction():
            index.writer.append(sid, [document(seq, f"words, number {seq}")])
    done: list[str] = []
    for kind in (Packing, Tagging, Spans):

        def step(
            self: object,
            *limit: int,
            name: str = kind.__name__,
            usual: Callable[..., bool] = kind.step,
            **how: bool,
        ) -> bool:
            done.append(name)
            return usual(self, *limit, **how)

        monkeypatch.setattr(kind, "step", step)
    for _ in range(2):
        index.writer.merge_step(pressed=True)
    assert sorted(done) == ["Packing", "Spans", "Tagging", "Tagging"]
    done.clear()
    index.writer.merge_step()
    assert sorted(done) == ["Packing", "Spans", "Tagging"]
    assert count(index.connection, "body_new") == 0


def test_without_silence_packing_waits_until_very_much_waits_for_it(
    index: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PRESSED_ROWS_MAX", 40)
    sid = index.put(SessionKey("journal", "", "s"), state("s"))

    def append(first: int, last: int) -> None:
        for seq in range(first, last):
            with index.writer.transaction():
                index.writer.append(sid, [document(seq, f"words, number {seq}")])

    append(0, 40)
    assert [index.writer.merge_step(pressed=True) for _ in range(2)] == [True, True]
    assert count(index.connection, "body_new") == 40
    append(40, 41)
    for _ in range(2):
        index.writer.merge_step(pressed=True)
    assert count(index.connection, "body_new") == 0
    append(41, 41 + packing.NEW_ROWS_MAX + 1)
    while index.writer.merge_step():
        pass
    assert count(index.connection, "body_new") == 0
