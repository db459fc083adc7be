"""The OpenCode reader: a tree, a database (also a live, locked or damaged one), an export."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.opencode import OpenCodeReader
from support.reader_conformance import check_reader, check_session, never, read_unit, shape, units_of
from support.worked_readme import DATA, data_files, worked_lists

READER = OpenCodeReader()
LOG = "storage/session/global/ses_harbour1.json"
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, revert TEXT,
    time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER,
    data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
    time_updated INTEGER, data TEXT);
"""


def tree() -> dict[str, dict[str, JSON]]:
    return {name: json.loads(raw) for name, raw in data_files("opencode").items()}


@contextmanager
def database(path: Path, journal: str = "wal") -> Iterator[sqlite3.Connection]:
    """The worked tree as a database, ids left to the columns as OpenCode does."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.executescript(SCHEMA)
        for name, data in tree().items():
            put(connection, name.split("/")[1], data)
        yield connection


def put(connection: sqlite3.Connection, kind: str, record: dict[str, JSON]) -> None:
    time = record.get("time") or {}
    created = time.get("created") if isinstance(time, dict) else None
    key = record["id"]
    rest = json.dumps({k: v for k, v in record.items() if k not in ("id", "sessionID", "messageID")})
    if kind == "session":
        values = (key, record.get("parentID"), record["directory"], record["title"], None, created, created)
        connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", values)  # type: ignore[arg-type]
    elif kind == "message":
        session = record["sessionID"]
        connection.execute(
            "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", (key, session, created, 1, rest)
        )
    elif kind == "part":
        ids = (key, record["messageID"], record["sessionID"])
        connection.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", (*ids, 0, 1, rest))


def read(path: Path, into: Collected | None = None) -> Collected:
    return read_unit(READER, units_of(READER, path)[0], into)


def only(collected: Collected) -> CollectedSession:
    (session,) = collected.sessions.values()
    check_session(session)
    return session


def worked(tmp_path: Path) -> Path:
    for name, raw in data_files("opencode").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    return tmp_path / LOG


def test_worked_tree_passes_every_check(tmp_path: Path) -> None:
    files = data_files("opencode")
    check_reader(READER, files, worked_lists("opencode"), tmp_path, log=LOG, grows=False)


def test_worked_tree_has_the_links_and_words_its_table_promises(tmp_path: Path) -> None:
    session = only(read(worked(tmp_path)))
    assert session.title is not None
    assert session.title.title == "Lamp at dusk"
    assert session.events[21].surface_op == {"op": "replace", "start": 2, "end": 12}
    assert [session.events[at].source_event_seqs for at in (10, 12)] == [[9], [11]]
    assert event_text(session.events[17]) == "error\nThe lighthouse is overloaded"
    assert not any("division" in event_text(event) for event in session.events), "reasoning is no text"


def test_a_part_written_in_place_moves_the_revision_and_shows_the_result(tmp_path: Path) -> None:
    log = worked(tmp_path)
    part = tmp_path / "storage/part/msg_002/prt_0026.json"
    (unit,) = units_of(READER, tmp_path)
    assert part in unit.files
    assert unit.files[0] == log
    record = json.loads(part.read_bytes())
    record["state"] |= {"status": "completed", "output": "woke up"}
    part.write_text(json.dumps(record), encoding="utf-8")
    texts = [event_text(event) for event in only(read(log)).events]
    assert "woke up" in texts


@pytest.mark.parametrize("content", [b"", b'{"id": "prt_0023", "type": "te'])
def test_a_half_written_part_costs_that_part(tmp_path: Path, content: bytes) -> None:
    log = worked(tmp_path)
    (tmp_path / "storage/part/msg_002/prt_0023.json").write_bytes(content)
    collected = read(log)
    assert (collected.records, collected.held, len(collected.losses)) == (21, 20, 1)
    only(collected)


def test_a_half_written_session_file_leaves_what_was_known(tmp_path: Path) -> None:
    log = worked(tmp_path)
    known = read(log)
    log.write_bytes(b'{"id": "ses_har')
    (batch,) = READER.read(units_of(READER, log)[0], None, never)
    assert batch.refusal is not None
    assert batch.refusal.kind == "corrupt"
    assert not batch.restart
    known.add(batch)
    assert len(only(known).events) == 24


def test_flat_parts_and_the_oldest_layout_are_found(tmp_path: Path) -> None:
    files = tree()
    for name, record in files.items():
        kind, *rest = name.removeprefix("storage/").split("/")
        oldest = {
            "session": "session/info",
            "message": "session/message",
            "part": "session/part/ses_harbour1",
        }
        flat = f"flat/storage/{kind}/{rest[-1] if kind == 'part' else '/'.join(rest)}"
        old = f"oldest/storage/{oldest.get(kind, kind)}/{'/'.join(rest[-1:] if kind == 'session' else rest)}"
        for target in (tmp_path / flat, tmp_path / old):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(record), encoding="utf-8")
    expected = worked_lists("opencode")["ses_harbour1"]
    for folder in ("flat", "oldest"):
        (unit,) = units_of(READER, tmp_path / folder)
        assert shape(only(read_unit(READER, unit))) == expected, folder


def test_an_id_in_a_file_cannot_lead_out_of_the_tree(tmp_path: Path) -> None:
    log = worked(tmp_path)
    secret = tmp_path / "elsewhere" / "msg.json"
    secret.parent.mkdir()
    secret.write_text('{"id": "m", "role": "user", "time": {"created": 1}}', encoding="utf-8")
    record = json.loads(log.read_bytes())
    log.write_text(json.dumps(record | {"id": "../../elsewhere"}), encoding="utf-8")
    assert not any("elsewhere" in loss.path for loss in read(log).losses)
    assert len(only(read(log)).events) == 24, "the folder named like the file is used"


def test_an_export_is_one_session_unless_it_lies_in_a_store(tmp_path: Path) -> None:
    files = tree()
    messages: list[JSON] = [
        {"info": info, "parts": [p for n, p in files.items() if n.startswith(f"storage/part/{info['id']}/")]}
        for name, info in files.items()
        if name.startswith("storage/message/")
    ]
    document = {"info": files[LOG], "messages": messages}
    path = tmp_path / "export" / "harbour.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document), encoding="utf-8")
    assert shape(only(read(path))) == worked_lists("opencode")["ses_harbour1"]
    worked(tmp_path / "data")
    (tmp_path / "data" / "package.json").write_text("{}", encoding="utf-8")
    (tmp_path / "data" / "auth.json").write_text("{}", encoding="utf-8")
    assert [unit.path.name for unit in units_of(READER, tmp_path / "data")] == ["ses_harbour1.json"]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_database_at_rest_yields_the_same_session_and_stays_as_it_is(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "opencode.db"
    with database(path, journal):
        pass
    before = (path.read_bytes(), sorted(tmp_path.iterdir()))
    collected = read(path)
    assert shape(only(collected)) == worked_lists("opencode")["ses_harbour1"]
    assert (collected.records, collected.held) == (21 - 1 + 1, 21)
    assert (path.read_bytes(), sorted(tmp_path.iterdir())) == before


def test_a_live_database_shows_what_is_only_in_its_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as connection:
        known = read(path)
        extra = {
            "id": "prt_0062",
            "messageID": "msg_006",
            "sessionID": "ses_harbour1",
            "type": "text",
            "text": "And test it.",
        }
        put(connection, "part", extra)  # type: ignore[arg-type]
        texts = [event_text(event) for event in only(read(path, known)).events]
        assert texts[-1] == "And test it."
        connection.execute("UPDATE session SET title = 'Renamed'")


def test_only_changed_sessions_are_read_again_and_a_deleted_one_goes(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as connection:
        connection.execute("INSERT INTO session VALUES ('other', NULL, '/x', 'Other', NULL, 5, 5)")
        (unit,) = units_of(READER, path)
        known = read_unit(READER, unit)
        (quiet,) = READER.read(unit, known.checkpoint, never)
        assert quiet.sessions == ()
        assert not quiet.restart
        connection.execute("UPDATE session SET title = 'Renamed', time_updated = 9 WHERE id = 'other'")
        (batch,) = READER.read(unit, known.checkpoint, never)
        assert [delta.header.id for delta in batch.sessions] == ["other"]
        connection.execute("DELETE FROM session WHERE id = 'other'")
        known = read_unit(READER, unit, known)
        assert list(known.sessions) == ["ses_harbour1"]


def test_a_row_without_json_and_a_part_without_message_are_lost_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as connection:
        connection.execute("UPDATE part SET data = '{broken' WHERE id = 'prt_0023'")
        connection.execute("UPDATE part SET data = CAST(x'ff00' AS TEXT) WHERE id = 'prt_0021'")
        connection.execute("DELETE FROM message WHERE id = 'msg_006'")
        collected = read(path)
    assert (collected.records, collected.held) == (20, 17)
    assert [loss.records for loss in collected.losses] == [3]


OWNER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
connection.execute("UPDATE session SET title = 'x'")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


def test_a_database_its_owner_locks_is_read_another_time(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path, "delete"):
        pass
    # Another process: within one, the locks of one SQLite library do not bind another.
    command = [sys.executable, "-c", OWNER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"locked\n"
        with pytest.raises(OSError, match="cannot be read now"):
            read(path)
        owner.communicate(b"")
    assert len(only(read(path)).events) == 24


def test_other_databases_are_refused_and_damaged_ones_called_so(tmp_path: Path) -> None:
    other, text, torn = (tmp_path / name for name in ("other.db", "text.db", "torn.db"))
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    text.write_bytes(b"no database")
    with database(torn, "delete"):
        pass
    raw = bytearray(torn.read_bytes())
    raw[4096:] = b"\xaa" * (len(raw) - 4096)
    torn.write_bytes(raw)
    kinds = {unit.path.name: read_unit(READER, unit).refusal for unit in units_of(READER, tmp_path)}
    assert {name: refusal and refusal.kind for name, refusal in kinds.items()} == {
        "other.db": "not-a-session",
        "text.db": "not-a-session",
        "torn.db": "corrupt",
    }


def test_the_worked_files_are_there() -> None:
    assert (DATA / "opencode" / "worked" / LOG).is_file()


def test_a_revert_names_the_first_event_that_the_model_no_longer_sees(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as connection:
        before = only(read(path))
        prompts = [event.seq for event in before.events if event.type == "user/message"]
        ((message, part),) = connection.execute(
            "SELECT message_id, id FROM part WHERE json_extract(data, '$.type') = 'text'"
            " ORDER BY message_id DESC, id DESC LIMIT 1"
        ).fetchall()
        for point, seq in (
            ({"messageID": message}, prompts[-1] - 1),
            ({"messageID": message, "partID": part}, prompts[-1]),
        ):
            connection.execute(
                "UPDATE session SET revert = ?, time_updated = time_updated + 1", (json.dumps(point),)
            )
            session = only(read(path))
            assert session.notes == [f"reverted: events from {seq} on are no longer seen by the model"]
            assert shape(session) == shape(before), "they are still in the store"
        connection.execute("UPDATE session SET revert = 'broken', time_updated = time_updated + 1")
        assert only(read(path)).notes == [
            "reverted: what follows the revert point is no longer seen by the model"
        ]


def test_a_session_told_only_in_the_newer_table_says_so(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as connection:
        connection.execute("CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, data TEXT)")
        connection.execute("INSERT INTO session VALUES ('newer', NULL, '/x', 'Newer', NULL, 5, 5)")
        connection.execute("INSERT INTO session VALUES ('empty', NULL, '/x', 'Empty', NULL, 5, 5)")
        connection.execute("INSERT INTO session_message VALUES ('m', 'newer', 'user', '{}')")
        connection.execute("INSERT INTO session_message VALUES ('n', 'ses_harbour1', 'user', '{}')")
        notes = {name: session.notes for name, session in read(path).sessions.items()}
    assert notes == {
        "newer": ["its messages stand in the table session_message, which this reader cannot read"],
        "empty": [],
        "ses_harbour1": [],
    }
