"""The SQLite door: library check, connections, transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_query.storage import sqlite


def make_file(path: Path) -> Path:
    path.touch()
    with_writer = sqlite.connect_writer(path)
    with_writer.execute("CREATE TABLE t(a)")
    with_writer.close()
    return path


def test_the_loaded_library_serves() -> None:
    sqlite.check_library()
    assert sqlite.LIBRARY in {"pysqlite3", "sqlite3"}
    assert sqlite.VERSION >= sqlite.MINIMUM_VERSION


@pytest.mark.parametrize(
    ("version", "options", "part"),
    [((3, 39, 9), frozenset({"ENABLE_FTS5"}), "too old"), ((3, 50, 0), frozenset(), "without FTS5")],
)
def test_an_unfit_library_is_named(version: tuple[int, ...], options: frozenset[str], part: str) -> None:
    with pytest.raises(sqlite.SQLiteTooOld, match=part):
        sqlite.check_library(version, options)


def test_a_missing_file_is_not_created_by_connecting(tmp_path: Path) -> None:
    for connect in (sqlite.connect_writer, sqlite.connect_reader):
        with pytest.raises(sqlite.OperationalError):
            connect(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_cannot_write_and_sees_commits(tmp_path: Path) -> None:
    path = make_file(tmp_path / "odd %name?#.db")
    writer, reader = sqlite.connect_writer(path), sqlite.connect_reader(path)
    writer.execute("INSERT INTO t VALUES (1)")
    assert reader.execute("SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(sqlite.OperationalError, match="readonly"):
        reader.execute("INSERT INTO t VALUES (2)")
    reader.close()
    writer.close()


@pytest.mark.parametrize("mode", sqlite.JOURNAL_MODES)
def test_journal_modes(tmp_path: Path, mode: sqlite.JournalMode) -> None:
    path = make_file(tmp_path / "a.db")
    writer = sqlite.connect_writer(path, journal_mode=mode, synchronous="FULL")
    assert writer.execute("PRAGMA journal_mode").fetchall() == [(mode,)]
    assert writer.execute("PRAGMA synchronous").fetchall() == [(2,)]
    assert writer.execute("PRAGMA secure_delete").fetchall() == [(1,)]
    writer.close()


def test_a_database_in_memory_is_shared_by_name_only() -> None:
    one, other = sqlite.memory_path(), sqlite.memory_path()
    assert sqlite.is_memory(one)
    assert sqlite.is_memory(":memory:")
    writer = sqlite.connect_writer(one)
    writer.execute("CREATE TABLE t(a)")
    reader = sqlite.connect_reader(one)
    assert reader.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    stranger = sqlite.connect_writer(other)
    assert stranger.execute("SELECT name FROM sqlite_master").fetchall() == []
    for connection in (reader, writer, stranger):
        connection.close()


def test_transaction_rolls_back_whole(tmp_path: Path) -> None:
    writer = sqlite.connect_writer(make_file(tmp_path / "a.db"))

    def fail_inside() -> None:
        with sqlite.transaction(writer):
            writer.execute("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert writer.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    with sqlite.transaction(writer):
        writer.execute("INSERT INTO t VALUES (1)")
    assert not writer.in_transaction
    assert writer.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
    writer.close()


def test_a_transaction_inside_another_is_a_part_of_it(tmp_path: Path) -> None:
    writer = sqlite.connect_writer(make_file(tmp_path / "a.db"))

    def fail_inside() -> None:
        with sqlite.transaction(writer):
            writer.execute("INSERT INTO t VALUES (2)")
            raise ZeroDivisionError

    with sqlite.transaction(writer):
        writer.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(ZeroDivisionError):
            fail_inside()
        with sqlite.transaction(writer):
            writer.execute("INSERT INTO t VALUES (3)")
        assert writer.in_transaction
    assert writer.execute("SELECT a FROM t").fetchall() == [(1,), (3,)]
    writer.close()


def test_snapshot_sees_one_state(tmp_path: Path) -> None:
    path = make_file(tmp_path / "a.db")
    writer, reader = sqlite.connect_writer(path), sqlite.connect_reader(path)
    with sqlite.snapshot(reader):
        before = reader.execute("SELECT count(*) FROM t").fetchall()
        writer.execute("INSERT INTO t VALUES (1)")
        assert reader.execute("SELECT count(*) FROM t").fetchall() == before
    assert reader.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
    reader.close()
    writer.close()
