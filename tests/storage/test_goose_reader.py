"""The Goose reader: lines of older builds, and the database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from session_query.protocol.text import event_text
from session_query.storage.readers.goose import GooseReader
from support.reader_conformance import check_reader, check_session, never, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = GooseReader()
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT, working_dir TEXT,
    created_at TIMESTAMP, updated_at TIMESTAMP);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT,
    content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
"""


def database(path: Path) -> None:
    """The worked log as rows."""
    (raw,) = data_files("goose").values()
    header, *messages = map(json.loads, raw.splitlines())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.execute(
            "INSERT INTO sessions VALUES (?, '', ?, 'user', ?, '2026-05-04 08:00:00', '2026-05-04 08:01:00')",
            (header["id"], header["description"], header["working_dir"]),
        )
        for message in messages:
            connection.execute(
                "INSERT INTO messages"
                " (message_id, session_id, role, content_json, created_timestamp, metadata_json)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    message["id"],
                    header["id"],
                    message["role"],
                    json.dumps(message["content"]),
                    message["created"],
                    json.dumps(message.get("metadata", {})),
                ),
            )


def test_worked_log_passes_every_check(tmp_path: Path) -> None:
    check_reader(READER, data_files("goose"), worked_lists("goose"), tmp_path)


def test_calls_and_results_are_linked_and_hidden_text_is_no_prompt(tmp_path: Path) -> None:
    ((name, raw),) = data_files("goose").items()
    (tmp_path / name).write_bytes(raw)
    (session,) = read_unit(READER, units_of(READER, tmp_path)[0]).sessions.values()
    assert session.title is not None
    assert session.title.title == "Harbour lamp"
    assert [session.events[at].source_event_seqs for at in (5, 6)] == [[3], [4]]
    assert isinstance(session.events[7].data, dict)
    assert session.events[7].data["source"] == {"kind": "context"}
    assert not any("surely" in event_text(event) for event in session.events), "thinking is no text"


def test_the_database_tells_the_same_session(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    database(path)
    (unit,) = units_of(READER, tmp_path)
    known = read_unit(READER, unit)
    (session,) = known.sessions.values()
    check_session(session)
    assert shape(session) == worked_lists("goose")["20260504_1"]
    assert (session.header.cwd, session.header.created_at) == ("/home/mira/lantern", 1777881600000)
    assert (known.records, known.held) == (7, 7)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE messages SET content_json = '{broken' WHERE message_id = 'm5'")
    known = read_unit(READER, unit, known)
    (session,) = known.sessions.values()
    assert len(session.events) == 9
    assert [loss.records for loss in known.losses] == [1]
    (quiet,) = READER.read(unit, known.checkpoint, never)
    assert quiet.sessions == ()


def test_a_database_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sessions (x)")
        connection.execute("CREATE TABLE messages (y)")
    refusal = read_unit(READER, units_of(READER, path)[0]).refusal
    assert refusal is not None
    assert refusal.kind == "not-a-session"
