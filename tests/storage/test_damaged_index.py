"""SPEC 6.12.7: an index of ours that is damaged is set aside and built anew; what is not ours is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from session_query.protocol.errors import Code, QueryError
from session_query.storage import sqlite
from session_query.storage.damage import is_damage, is_suspect, set_aside_files
from session_query.storage.doctor import examine
from session_query.storage.guard import Opening
from session_query.storage.store import INDEX_SCHEMA
from support.stores import open_toy_store
from support.toy_logs import line

PAGE = 4096


def built(directory: Path, sessions: int = 40) -> Path:
    """A store with so many sessions, closed; returns its index."""
    toys = open_toy_store(directory, retain=True)
    for number in range(sessions):
        name = f"s{number}"
        toys.write(
            f"{name}.toy", *(line(name, f"alpha word{number} {n} " + "x y z " * 40) for n in range(20))
        )
    toys.refresh()
    toys.close()
    return directory / "data" / "index.db"


def overwrite(path: Path, first: int, pages: int) -> None:
    with path.open("r+b") as file:
        file.seek(first * PAGE)
        file.write(b"\xff" * PAGE * pages)


def root_of(path: Path, table: str) -> int:
    """The number of a table's first page, from 1."""
    connection = sqlite.connect_reader(path)
    try:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        ).fetchall()
    finally:
        connection.close()
    return int(page)


def last_below(path: Path, table: str) -> int:
    """The number of the last page that the first page of a table points to."""
    root = root_of(path, table)
    page = path.read_bytes()[(root - 1) * PAGE : root * PAGE]
    assert page[0] == 5, "an inner page of a table"
    return int.from_bytes(page[8:12], "big")


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "its schema": lambda path: overwrite_behind_header(path),
    "its roots": lambda path: overwrite(path, 1, 30),
    "cut short": cut,
}


def overwrite_behind_header(path: Path) -> None:
    """All of the first page but the 100 bytes that say whose it is."""
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (PAGE - 100))


@pytest.mark.parametrize("name", DAMAGE)
def test_it_is_built_anew_at_the_next_start(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = built(tmp_path)
    (tmp_path / "logs" / "s3.toy").unlink()  # history that only the journal's copy holds by now
    DAMAGE[name](path)
    damaged = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        toys = open_toy_store(tmp_path, retain=True)
    aside = toys.store.set_aside
    assert aside is not None
    assert aside.read_bytes() == damaged
    assert "the index is damaged" in caplog.text
    assert toys.store.opening is Opening.CREATED
    toys.refresh()
    assert len(toys.sessions()) == 40
    assert toys.found("word7") == {"s7"}
    assert toys.found("word3") == {"s3"}
    told = {check.name: check for check in examine(toys.reader, toys.store.settings.readers, 3).checks}
    assert told["index file"].ok
    assert aside.name in told["index file"].detail
    toys.close()
    toys = open_toy_store(tmp_path, retain=True)
    assert toys.store.opening is Opening.USED
    assert toys.store.set_aside is None
    toys.close()


def test_only_the_last_one_is_kept_and_forget_takes_it(tmp_path: Path) -> None:
    path = built(tmp_path, sessions=3)
    path.with_name("index.db.damaged-20200101T000000Z").write_bytes(b"older")
    path.with_name("index.db.damaged-20200101T000000Z-wal").write_bytes(b"older")
    cut(path)
    toys = open_toy_store(tmp_path, retain=True)
    assert set_aside_files(path) == [toys.store.set_aside]
    toys.refresh()
    toys.store.forgetting.forget(toys.sessions()["s1"].key)
    assert set_aside_files(path) == []
    toys.close()


def test_damage_that_a_query_meets_is_mended_by_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = built(tmp_path)
    overwrite(path, last_below(path, "doc") - 1, 1)
    toys = open_toy_store(tmp_path, retain=True)
    assert toys.store.set_aside is None, "a look at the roots does not see it"
    toys.reader.suspect(sqlite.DatabaseError("database disk image is malformed"))
    assert is_suspect(path)
    toys.close()
    toys = open_toy_store(tmp_path, retain=True)
    assert toys.store.set_aside is not None
    assert not is_suspect(path)
    toys.refresh()
    assert toys.found("word9") == {"s9"}
    toys.close()
    assert "seems to be damaged" in caplog.text
    caplog.clear()


def test_what_doctor_finds_is_mended_by_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = built(tmp_path)
    pages = path.stat().st_size // PAGE
    overwrite(path, pages - pages // 3, pages // 3 - 1)
    toys = open_toy_store(tmp_path, retain=True)
    told = {check.name: check for check in examine(toys.reader, toys.store.settings.readers, 1).checks}
    assert not told["index file"].ok
    assert "the next start builds it anew" in told["index file"].detail
    toys.close()
    toys = open_toy_store(tmp_path, retain=True)
    assert toys.store.set_aside is not None
    toys.close()
    caplog.clear()


def test_a_suspicion_that_proves_wrong_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = built(tmp_path, sessions=3)
    toys = open_toy_store(tmp_path, retain=True)
    toys.reader.suspect(sqlite.DatabaseError("database disk image is malformed"))
    toys.close()
    assert is_suspect(path)
    toys = open_toy_store(tmp_path, retain=True)
    assert toys.store.opening is Opening.USED
    assert not is_suspect(path)
    toys.close()
    caplog.clear()


@pytest.mark.parametrize("error", [OSError("disk full"), sqlite.OperationalError("database is locked")])
def test_a_full_or_busy_file_is_not_damaged(tmp_path: Path, error: Exception) -> None:
    assert not is_damage(error)
    assert is_damage(QueryError(Code.INDEX_FAILED)) is False


def test_a_damaged_file_that_is_not_ours_is_refused_and_stays(tmp_path: Path) -> None:
    path = built(tmp_path, sessions=2)
    with path.open("r+b") as file:
        file.seek(68)
        file.write((INDEX_SCHEMA.application_id + 1).to_bytes(4, "big"))
    overwrite_behind_header(path)
    before = path.read_bytes()
    with pytest.raises(QueryError) as caught:
        open_toy_store(tmp_path, retain=True)
    assert caught.value.code is Code.INDEX_FAILED
    assert path.read_bytes() == before
    assert set_aside_files(path) == []


def test_a_file_with_an_unknown_table_is_refused_and_stays(tmp_path: Path) -> None:
    path = built(tmp_path, sessions=2)
    connection = sqlite.open_uri(sqlite.uri(path, "rw"))
    connection.execute("CREATE TABLE precious(a)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    overwrite(path, root_of(path, "doc") - 1, 1)
    before = path.read_bytes()
    with pytest.raises(QueryError):
        open_toy_store(tmp_path, retain=True)
    assert path.read_bytes() == before
    assert set_aside_files(path) == []
