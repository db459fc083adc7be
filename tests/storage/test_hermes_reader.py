"""The Hermes reader: documents, lines, and the database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from session_query.protocol.text import event_text
from session_query.storage.readers.hermes import HermesReader
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.reader_conformance import check_reader, check_session, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = HermesReader()
SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT,
    parent_session_id TEXT, started_at REAL, ended_at REAL, title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, finish_reason TEXT, reasoning TEXT);
"""


def document() -> dict[str, object]:
    (raw,) = data_files("hermes").values()
    found: dict[str, object] = json.loads(raw)
    return found


def database(path: Path) -> None:
    """The worked document as rows."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.execute(
            "INSERT INTO sessions VALUES"
            " ('20260504_lamp', 'cli', 'claude-test', ?, 'before', 1777881600.25, NULL, 'Lamp')",
            ('{"cwd": "/home/mira/lantern"}',),
        )
        for at, message in enumerate(document()["messages"]):  # type: ignore[arg-type,var-annotated]
            calls = json.dumps(message["tool_calls"]) if "tool_calls" in message else None
            connection.execute(
                "INSERT INTO messages"
                " (session_id, role, content, tool_call_id, tool_calls, timestamp, finish_reason)"
                " VALUES ('20260504_lamp', ?, ?, ?, ?, ?, ?)",
                (
                    message["role"],
                    message.get("content"),
                    message.get("tool_call_id"),
                    calls,
                    1777881601.0 + at,
                    message.get("finish_reason"),
                ),
            )


def test_worked_document_passes_every_check(tmp_path: Path) -> None:
    check_reader(READER, data_files("hermes"), worked_lists("hermes"), tmp_path, grows=False)


def test_calls_and_results_are_linked(tmp_path: Path) -> None:
    ((name, raw),) = data_files("hermes").items()
    (tmp_path / name).write_bytes(raw)
    (session,) = read_unit(READER, units_of(READER, tmp_path)[0]).sessions.values()
    assert [session.events[at].source_event_seqs for at in (4, 6)] == [[3], [5]]
    assert not any("surely" in event_text(event) for event in session.events), "reasoning is no text"
    assert {event.time for event in session.events} == {1777881600000}


def test_the_database_tells_the_same_session_and_hides_the_files_beside(tmp_path: Path) -> None:
    home = tmp_path / ".hermes"
    (home / "sessions").mkdir(parents=True)
    database(home / "state.db")
    (home / "sessions" / "session_lamp.json").write_text(json.dumps(document()), encoding="utf-8")
    (home / "auth.json").write_text("{}", encoding="utf-8")
    found = list(READER.units(home))
    assert [item.path.name for item in found if isinstance(item, LogUnit)] == ["state.db"]
    assert [item.path.name for item in found if isinstance(item, SkippedPath)] == ["session_lamp.json"]
    (session,) = read_unit(READER, units_of(READER, home)[0]).sessions.values()
    check_session(session)
    assert shape(session) == worked_lists("hermes")["20260504_lamp"]
    header = session.header
    assert (header.cwd, header.parent_session, header.created_at) == (
        "/home/mira/lantern",
        "before",
        1777881600250,
    )
    assert session.title is not None
    assert session.title.title == "Lamp"


def test_lines_of_messages_are_a_session_that_grows(tmp_path: Path) -> None:
    rows = [
        {"role": "session_meta", "model": "m"},
        {"role": "user", "content": [{"type": "text", "text": "ask"}], "timestamp": "2026-05-04T08:00:01"},
        {"role": "assistant", "content": "answer", "timestamp": "2026-05-04T08:00:02"},
    ]
    path = tmp_path / "lamp.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (session,) = read_unit(READER, units_of(READER, path)[0]).sessions.values()
    assert session.header.id == "lamp"
    assert [text for text in map(event_text, session.events) if text] == ["ask", "answer"]


def test_half_a_document_and_another_document_are_told_apart(tmp_path: Path) -> None:
    half, other = tmp_path / "half.json", tmp_path / "other.json"
    half.write_text('{"session_id": "x", "mess', encoding="utf-8")
    other.write_text('{"name": "package"}', encoding="utf-8")
    refusals = {unit.path.name: read_unit(READER, unit).refusal for unit in units_of(READER, tmp_path)}
    assert {name: refusal and refusal.kind for name, refusal in refusals.items()} == {
        "half.json": "corrupt",
        "other.json": "not-a-session",
    }
