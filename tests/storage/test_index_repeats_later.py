"""Repeats of a first build's documents are made in idle time and come out as if made at once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from session_query.protocol.tokens import prepare
from session_query.storage.index import SessionKey, repeats_later, spans
from session_query.storage.index.bodies import Bodies
from session_query.storage.index.repeats import HASHES_MAX, repeated
from session_query.storage.text_codec import TextCodec
from support.index_files import IndexFile, document, open_index, state

MANY = " ".join(f"t{n} t{n}" for n in range(HASHES_MAX + 40))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "SPANS_FROM_DOCUMENTS", 20)
    monkeypatch.setattr(spans, "FREQUENT_BLOCKS_MIN", 2)
    monkeypatch.setattr(spans, "FREQUENT_SHARE", 0.05)
    monkeypatch.setattr(repeats_later, "STEP_DOCUMENTS", 7)
    monkeypatch.setattr(repeats_later, "STEP_BLOCKS", 3)


def fill(index: IndexFile, numbers: range, rng: random.Random) -> None:
    for number in numbers:
        name = f"s{number}"
        size = rng.randrange(1, 20)
        texts = [" ".join(rng.choices([f"w{n}" for n in range(30)], k=12)) for _ in range(size)]
        if number % 3 == 0:
            texts[0] = MANY
        index.put(SessionKey("journal", "", name), state(name), [document(*one) for one in enumerate(texts)])


def merge(index: IndexFile) -> int:
    steps = 1
    while index.writer.merge_step():
        steps += 1
    return steps


def check(index: IndexFile) -> None:
    """Every document has what its text says, except those that have too many for it."""
    texts = Bodies(index.connection, TextCodec()).between(0, 1 << 60)
    expected = {row: found for row, text in texts if (found := repeated(prepare(text))) is not None}
    assert dict(index.connection.execute("SELECT doc, tokens FROM repeats").fetchall()) == expected
    assert index.connection.execute("SELECT * FROM repeats_todo").fetchall() == []


def test_they_come_out_as_if_made_at_once_in_bounded_steps(tmp_path: Path) -> None:
    rng = random.Random(3)
    with open_index(tmp_path / "index.db") as index:
        index.writer.bulk(True)
        fill(index, range(20), rng)
        fill(index, range(20, 60), rng)  # spans were chosen by now
        index.writer.bulk(False)
        ((waiting,),) = index.connection.execute("SELECT count(*) FROM repeats_todo").fetchall()
        assert 40 <= waiting < 60
        later = repeats_later.RepeatsLater(index.connection, Bodies(index.connection, TextCodec()))
        made = []
        more = True
        while more:
            before = index.connection.total_changes
            with index.writer.transaction():
                more = later.step()
            made.append(index.connection.total_changes - before)
        assert len(made) > waiting // 3
        assert max(made) <= 7 + 3  # rows, and how far each block is
        merge(index)
        check(index)
        fill(index, range(60, 63), rng)
        check(index)  # from now on at once


def test_what_is_cut_while_it_waits_and_written_again_is_not_passed_over(tmp_path: Path) -> None:
    rng = random.Random(4)
    with open_index(tmp_path / "index.db") as index:
        fill(index, range(30), rng)
        merge(index)
        key = SessionKey("journal", "", "long")
        index.writer.bulk(True)
        sid = index.put(key, state("long"), [document(n, f"w{n} w{n} w1") for n in range(30)])
        gone = index.put(SessionKey("journal", "", "gone"), state("gone"), [document(0, "w1 w1")])
        index.writer.merge_step()
        index.writer.merge_step()
        ((block, reached),) = index.connection.execute(
            "SELECT t.block, t.next & 4095 FROM repeats_todo AS t JOIN block USING (block) WHERE sid = ?",
            (sid,),
        ).fetchall()
        assert reached > 2
        with index.writer.transaction():
            index.writer.truncate(sid, 2)
            index.writer.append(sid, [document(n, f"w{n} again again") for n in range(2, 30)])
            index.writer.delete(gone)
        assert index.connection.execute(
            "SELECT next FROM repeats_todo WHERE block = ?", (block,)
        ).fetchall() == [(block << 12 | 2,)]
        index.writer.bulk(False)
        merge(index)
        check(index)
