"""SPEC 6.12: the decision table, traceless refusal, modes, and files after a crash."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from session_query.protocol.errors import Code, QueryError
from session_query.storage import sqlite
from session_query.storage.guard import Opening, Schema, discard, open_guarded

OURS = 0x53517879


def create(connection: sqlite.Connection) -> None:
    connection.execute("CREATE TABLE session(a)")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='')")


TABLES = frozenset(
    ["session", "words", *(f"words_{part}" for part in ("data", "idx", "content", "docsize", "config"))]
)
SCHEMA = Schema(name="index", application_id=OURS, version=3, tables=TABLES, create=create)


def make(path: Path, application_id: int, version: int, *statements: str, mode: str = "delete") -> None:
    path.touch()
    connection = sqlite.open_uri(sqlite.uri(path, "rw"))
    connection.execute(f"PRAGMA journal_mode={mode}").fetchall()
    for statement in (
        f"PRAGMA application_id={application_id}",
        f"PRAGMA user_version={version}",
        *statements,
    ):
        connection.execute(statement)
    connection.close()


def state(directory: Path) -> dict[str, str]:
    return {
        entry.name: hashlib.sha256(entry.read_bytes()).hexdigest() + oct(entry.stat().st_mode)
        for entry in directory.iterdir()
    }


def tables(path: Path) -> set[str]:
    connection = sqlite.connect_reader(path)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}
    finally:
        connection.close()


REFUSED = {
    "foreign id, no table": (OURS + 1, 3, ()),
    "foreign id, negative": (-5, 3, ()),
    "foreign id, our tables": (OURS + 1, 3, ("CREATE TABLE session(a)",)),
    "no id, one table": (0, 0, ("CREATE TABLE session(a)",)),
    "no id, a table that only looks like SQLite's own": (0, 0, ("CREATE TABLE sqliteX(a)",)),
    "ours, an unknown table": (OURS, 3, ("CREATE TABLE session(a)", "CREATE TABLE precious(a)")),
    "ours, an unknown table, other version": (OURS, 2, ("CREATE TABLE precious(a)",)),
}


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_unchanged(tmp_path: Path, name: str, mode: str) -> None:
    application_id, version, statements = REFUSED[name]
    path = tmp_path / "x.db"
    make(path, application_id, version, *statements, mode=mode)
    before = state(tmp_path)
    with pytest.raises(QueryError) as caught:
        open_guarded(path, SCHEMA, journal_mode="persist")
    assert caught.value.code is Code.INDEX_FAILED
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    "content", [b"hello", b"SQLite format 3\x00", b"\x00" * 5000, b"SQLite format 3\x00" * 400]
)
def test_no_database_is_refused_and_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    before = state(tmp_path)
    with pytest.raises(QueryError) as caught:
        open_guarded(path, SCHEMA)
    assert caught.value.code is Code.INDEX_FAILED
    assert state(tmp_path) == before


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="not a file"):
        open_guarded(tmp_path, SCHEMA)


ACCEPTED = {
    "no id, no table": (0, 0, (), Opening.CREATED),
    "no id, only SQLite's own table": (
        0,
        7,
        ("CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT)", "DROP TABLE t"),
        Opening.CREATED,
    ),
    "ours, current": (OURS, 3, ("CREATE TABLE session(a)",), Opening.USED),
    "ours, older": (OURS, 2, ("CREATE TABLE session(a, old)",), Opening.REBUILT),
    "ours, newer": (OURS, 9, ("CREATE VIRTUAL TABLE words USING fts5(other)",), Opening.REBUILT),
}


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(tmp_path: Path, name: str, mode: str) -> None:
    application_id, version, statements, expected = ACCEPTED[name]
    path = tmp_path / "x.db"
    make(path, application_id, version, *statements, mode=mode)
    path.chmod(0o640)
    connection, opening = open_guarded(path, SCHEMA)
    assert opening is expected
    assert connection.execute("PRAGMA application_id").fetchall() == [(OURS,)]
    assert connection.execute("PRAGMA user_version").fetchall() == [(3,)]
    connection.close()
    assert tables(path) - {"sqlite_sequence"} == (
        {"session"} if expected is Opening.USED else TABLES - {"words_content"}
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "existing modes are preserved"


@pytest.mark.parametrize("mode", sqlite.JOURNAL_MODES)
def test_a_missing_file_is_made_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: sqlite.JournalMode
) -> None:
    monkeypatch.chdir(tmp_path)
    old = os.umask(0)
    try:
        connection, opening = open_guarded("a/b/x.db", SCHEMA, journal_mode=mode)
        assert opening is Opening.CREATED
        assert connection.execute("PRAGMA journal_mode").fetchall() == [(mode,)]
        connection.execute("INSERT INTO session VALUES (1)")
        modes = {
            str(entry.relative_to(tmp_path)): stat.S_IMODE(entry.stat().st_mode)
            for entry in tmp_path.rglob("*")
        }
        connection.close()
    finally:
        os.umask(old)
    assert modes.pop("a") == modes.pop("a/b") == 0o700
    assert set(modes.values()) == {0o600}, modes
    assert len(modes) == (3 if mode == "wal" else 2 if mode in {"persist", "truncate"} else 1)
    again, opening = open_guarded("a/b/x.db", SCHEMA, journal_mode=mode)
    assert opening is Opening.USED
    again.close()


def test_in_memory() -> None:
    connection, opening = open_guarded(sqlite.memory_path(), SCHEMA)
    assert opening is Opening.CREATED
    connection.execute("INSERT INTO session VALUES (1)")
    connection.close()


def test_a_file_that_is_not_derived_is_migrated_or_refused_never_dropped(tmp_path: Path) -> None:
    def migrate(connection: sqlite.Connection, found: int) -> None:
        assert found == 2
        connection.execute("ALTER TABLE session ADD COLUMN b")

    schema = Schema(
        name="journal",
        application_id=OURS,
        version=3,
        tables=TABLES,
        create=create,
        derived=False,
        migrate=migrate,
        failure=Code.PERSISTENCE_FAILED,
    )
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make(old, OURS, 2, "CREATE TABLE session(a)", "INSERT INTO session VALUES ('kept')")
    make(new, OURS, 4, "CREATE TABLE session(a)", "INSERT INTO session VALUES ('kept')")
    connection, opening = open_guarded(old, schema)
    assert opening is Opening.MIGRATED
    assert connection.execute("SELECT a, b FROM session").fetchall() == [("kept", None)]
    connection.close()
    with pytest.raises(QueryError, match="newer version") as caught:
        open_guarded(new, schema)
    assert caught.value.code is Code.PERSISTENCE_FAILED
    reader = sqlite.connect_reader(new)
    assert reader.execute("SELECT a FROM session").fetchall() == [("kept",)]
    reader.close()
    with pytest.raises(QueryError):
        discard(new, schema)


CRASHING = """
import os, sys
sys.path[:0] = {path!r}
from session_query.storage import sqlite
connection = sqlite.open_uri(sqlite.uri({file!r}, "rwc"))
connection.execute("PRAGMA journal_mode={mode}").fetchall()
connection.execute("PRAGMA cache_size=1")
for statement in {statements!r}:
    connection.execute(statement)
os._exit(9)
"""


def crash(path: Path, mode: str, *statements: str) -> None:
    code = CRASHING.format(path=sys.path, file=str(path), mode=mode, statements=statements)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9


FILL = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) "
    "INSERT INTO session SELECT zeroblob(900) FROM n"
)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_our_own_file_opens_after_a_crash(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "x.db"
    make(path, OURS, 3, "CREATE TABLE session(a)", "INSERT INTO session VALUES (1)")
    crash(path, mode, "BEGIN", FILL)
    assert len(list(tmp_path.iterdir())) > 1, "a side file is left"
    connection, opening = open_guarded(path, SCHEMA)
    assert opening is Opening.USED
    assert connection.execute("SELECT count(*) FROM session").fetchall() == [(1,)]
    connection.close()


def test_a_foreign_file_with_all_of_its_content_in_the_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    crash(path, "wal", "CREATE TABLE precious(a)")
    before = state(tmp_path)
    with pytest.raises(QueryError):
        open_guarded(path, SCHEMA)
    assert state(tmp_path) == before


def test_ours_is_used_though_all_of_it_is_still_in_the_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    crash(path, "wal", f"PRAGMA application_id={OURS}", "PRAGMA user_version=3", "CREATE TABLE session(a)")
    connection, opening = open_guarded(path, SCHEMA)
    assert opening is Opening.USED
    connection.close()


def test_discard_takes_only_what_is_ours(tmp_path: Path) -> None:
    ours, foreign = tmp_path / "ours.db", tmp_path / "foreign.db"
    make(ours, OURS, 3)
    ours.write_bytes(ours.read_bytes()[:100] + b"damaged" * 50)
    make(foreign, OURS + 1, 3)
    with pytest.raises(QueryError):
        open_guarded(ours, SCHEMA)
    discard(ours, SCHEMA)
    with pytest.raises(QueryError):
        discard(foreign, SCHEMA)
    assert [entry.name for entry in tmp_path.iterdir()] == ["foreign.db"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
@pytest.mark.parametrize("what", ["directory", "file"])
def test_write_protected(tmp_path: Path, what: str) -> None:
    path = tmp_path / "d" / "x.db"
    path.parent.mkdir()
    if what == "file":
        make(path, OURS, 3, "CREATE TABLE session(a)")
        path.chmod(0o444)
    path.parent.chmod(0o555)
    for parent in path.parents:
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    code = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from session_query.protocol.errors import QueryError
from session_query.storage import guard, sqlite
if os.geteuid() == 0:
    os.setuid(65534)
schema = guard.Schema(name="index", application_id={OURS}, version=3, tables=frozenset(["session"]),
                      create=lambda c: c.execute("CREATE TABLE session(a)"))
try:
    guard.open_guarded({str(path)!r}, schema)
except QueryError as error:
    print(error.code)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "SESSION_QUERY_INDEX_FAILED", done.stderr
