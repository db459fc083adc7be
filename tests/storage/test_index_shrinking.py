"""Free space goes back to the file system, in steps, and nothing that is found changes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from session_query.protocol.documents import Document
from session_query.storage import sqlite
from session_query.storage.guard import Opening, open_guarded
from session_query.storage.index import SessionKey, open_writer, shrinking
from session_query.storage.index.bodies import Bodies
from session_query.storage.index.writer import Writer
from session_query.storage.sqlite import Connection
from session_query.storage.store import INDEX_SCHEMA
from session_query.storage.text_codec import TextCodec
from support.index_files import document, state


def open_file(path: Path) -> tuple[Connection, Writer]:
    connection, _ = open_guarded(path, INDEX_SCHEMA)
    return connection, open_writer(connection)


def fill(writer: Writer, sessions: int) -> dict[str, list[Document]]:
    rng = random.Random(5)
    made = {}
    for number in range(sessions):
        name = f"s{number}"
        made[name] = [
            document(seq, " ".join(f"{rng.getrandbits(40):x}" for _ in range(100))) for seq in range(20)
        ]
        with writer.transaction():
            writer.append(writer.put_session(SessionKey("journal", "", name), state(name)), made[name])
    return made


def check(connection: Connection, made: dict[str, list[Document]]) -> None:
    connection.execute("INSERT INTO fts(fts, rank) VALUES('integrity-check', 0)")
    kept = sorted(text for _, text in Bodies(connection, TextCodec()).between(0, 1 << 60))
    assert kept == sorted(one.text for found in made.values() for one in found)
    for found in made.values():
        word = found[3].text.split()[7]
        assert (
            len(connection.execute("SELECT rowid FROM fts WHERE fts MATCH ?", (f'"{word}"',)).fetchall()) == 1
        )
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def numbers(connection: Connection) -> tuple[int, int]:
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    ((free,),) = connection.execute("PRAGMA freelist_count").fetchall()
    return pages, free


@pytest.mark.parametrize("repack", [True, False])
def test_after_a_first_build_nothing_to_speak_of_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repack: bool
) -> None:
    if not repack:
        monkeypatch.setattr(shrinking, "REPACK_PAGES_MAX", 0)
    connection, writer = open_file(tmp_path / "index.db")
    writer.bulk(True)
    made = fill(writer, 40)
    writer.bulk(False)
    before, _ = numbers(connection)
    while writer.merge_step(10_000):
        pass
    pages, free = numbers(connection)
    assert free == 0 if repack else free <= shrinking.FREE_PAGES_MIN
    assert pages < before
    check(connection, made)
    sqlite.empty_log(connection)
    assert (tmp_path / "index.db").stat().st_size == pages * 4096
    connection.close()


def test_what_deletion_frees_goes_back_in_bounded_steps_while_a_reader_looks_on(tmp_path: Path) -> None:
    connection, writer = open_file(tmp_path / "index.db")
    made = fill(writer, 60)
    while writer.merge_step():
        pass
    reader = sqlite.connect_reader(tmp_path / "index.db")
    with sqlite.snapshot(reader):
        reader.execute("SELECT count(*) FROM doc").fetchall()
        for name in list(made)[10:]:
            stored = writer.find(SessionKey("journal", "", name))
            assert stored is not None
            with writer.transaction():
                writer.delete(stored.sid)
            del made[name]
        shrunk = []
        more = True
        while more:
            before, _ = numbers(connection)
            more = writer.merge_step(16)
            after, _ = numbers(connection)
            shrunk.append(before - after)
        assert max(shrunk) > 0
        assert max(shrunk) <= 16 + 2  # and bookkeeping pages between them
        assert reader.execute("SELECT count(*) FROM doc").fetchall() == [(1200,)]
    reader.close()
    assert numbers(connection)[1] <= max(shrinking.FREE_PAGES_MIN, numbers(connection)[0] // 16)
    check(connection, made)
    connection.close()


def test_a_file_of_another_version_learns_to_give_back(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    old = sqlite.open_uri(sqlite.uri(path, "rwc"))
    old.execute("PRAGMA journal_mode=wal").fetchall()
    old.execute(f"PRAGMA application_id={INDEX_SCHEMA.application_id}")
    old.execute("PRAGMA user_version=1")
    old.execute("CREATE TABLE session(a)")
    old.execute("INSERT INTO session VALUES(randomblob(4000000))")
    old.close()
    connection, opening = open_guarded(path, INDEX_SCHEMA)
    assert opening is Opening.REBUILT
    assert connection.execute("PRAGMA auto_vacuum").fetchall() == [(2,)]
    assert numbers(connection)[1] == 0
    sqlite.empty_log(connection)
    assert path.stat().st_size < 400_000
    connection.close()


def test_a_file_that_cannot_be_written_anew_stays_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection, writer = open_file(tmp_path / "index.db")
    made = fill(writer, 3)
    writer.bulk(True)
    writer.bulk(False)
    connection.execute("BEGIN")  # VACUUM refuses to run inside a transaction
    assert not shrinking.Shrinker(connection).step(64)
    shrinker = shrinking.Shrinker(connection)
    shrinker.built()
    assert not shrinker.step(64)
    connection.execute("COMMIT")
    assert "could not be written anew" in caplog.text
    check(connection, made)
    connection.close()
