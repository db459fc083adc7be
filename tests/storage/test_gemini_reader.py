"""The Gemini CLI reader: its worked chat, repeats, rewinds, checkpoints, documents, what the folders tell."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec import UNSET

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.gemini import GeminiReader
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.reader_conformance import check_reader, check_session, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = GeminiReader()
META: dict[str, JSON] = {"sessionId": "s", "startTime": "2026-05-04T08:00:00Z", "kind": "main"}


def said(message_id: str, kind: str, text: str, **more: JSON) -> dict[str, JSON]:
    return {"id": message_id, "timestamp": "2026-05-04T08:00:01Z", "type": kind, "content": text, **more}


def called(answered: bool) -> JSON:
    call: dict[str, JSON] = {"id": "c", "name": "ls", "args": {"path": "."}}
    if answered:
        call["result"] = [{"functionResponse": {"response": {"output": "a.txt"}}}]
    return [call]


def write(path: Path, *rows: dict[str, JSON]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path) -> Collected:
    return read_unit(READER, units_of(READER, path)[0])


def only(path: Path) -> CollectedSession:
    (session,) = read(path).sessions.values()
    check_session(session)
    return session


def kinds(session: CollectedSession) -> list[str]:
    return [kind for _, kind in shape(session)][1:]


def test_worked_chat_passes_every_check(tmp_path: Path) -> None:
    files = data_files("gemini")
    log = next(name for name in files if name.endswith(".jsonl"))
    check_reader(READER, files, worked_lists("gemini"), tmp_path, log=log)


def test_worked_chat_has_the_links_and_words_its_table_promises(tmp_path: Path) -> None:
    for name, raw in data_files("gemini").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    (session,) = read(tmp_path).sessions.values()
    assert session.header.cwd == "/home/mira/lantern"
    assert session.title is not None
    assert session.title.title == "Lamp flicker"
    assert session.events[5].surface_op == {"op": "replace", "start": 4, "end": 4}
    assert session.events[11].surface_op == {"op": "replace", "start": 8, "end": 9}
    assert session.events[14].surface_op == {"op": "replace", "start": 5, "end": 11}
    assert not any("surely" in event_text(event) for event in session.events), "thoughts are no text"


def test_a_repeat_that_brings_only_calls_and_results_repeats_no_text(tmp_path: Path) -> None:
    session = only(
        write(
            tmp_path / "a.jsonl",
            META,
            said("g", "gemini", "Looking."),
            said("g", "gemini", "Looking.", toolCalls=called(answered=False)),
            said("g", "gemini", "Looking.", toolCalls=called(answered=True)),
            said("g", "gemini", "Looking.", toolCalls=called(answered=True)),
        )
    )
    assert kinds(session) == ["assistant/message", "tool/call", "tool/result", "gemini/gemini"]
    assert session.events[3].source_event_seqs == [2]


def test_a_repeat_keeps_its_place_before_what_came_between(tmp_path: Path) -> None:
    rows = [said("u", "user", "one"), said("g", "gemini", "two"), said("u", "user", "one, corrected")]
    session = only(write(tmp_path / "a.jsonl", META, *rows))
    assert session.events[3].surface_op == {"op": "replace", "start": 1, "end": 1}


def test_rewinding_to_an_unknown_message_abandons_everything(tmp_path: Path) -> None:
    rows = [
        said("u", "user", "one"),
        said("g", "gemini", "two"),
        {"$rewindTo": "gone"},
        said("v", "user", "anew"),
    ]
    session = only(write(tmp_path / "a.jsonl", META, *rows))
    assert session.events[-1].surface_op == {"op": "replace", "start": 1, "end": 2}


def test_rewinding_without_a_later_message_changes_no_surface(tmp_path: Path) -> None:
    rows: list[dict[str, JSON]] = [said("u", "user", "one"), {"$rewindTo": "u"}]
    session = only(write(tmp_path / "a.jsonl", META, *rows))
    assert kinds(session) == ["user/message", "gemini/$rewindTo"]


def test_a_checkpoint_equal_to_the_log_adds_nothing(tmp_path: Path) -> None:
    rows = [said("u", "user", "one"), said("g", "gemini", "two")]
    session = only(write(tmp_path / "a.jsonl", META, *rows, {"$set": {"messages": [*rows]}}))
    assert kinds(session) == ["user/message", "assistant/message", "gemini/$set"]


def test_a_checkpoint_that_only_shortens_waits_for_the_next_message(tmp_path: Path) -> None:
    rows = [said("u", "user", "one"), said("g", "gemini", "two"), said("v", "user", "three")]
    later = said("w", "user", "four")
    session = only(write(tmp_path / "a.jsonl", META, *rows, {"$set": {"messages": [rows[0]]}}, later))
    assert session.events[-1].surface_op == {"op": "replace", "start": 2, "end": 3}
    assert session.events[-1].source_event_seqs == [2, 3]


@pytest.mark.parametrize("name", ["session-x.json", "one-line.jsonl"])
def test_a_document_of_older_builds_is_the_same_chat(tmp_path: Path, name: str) -> None:
    messages: list[JSON] = [
        said("u", "user", "one"),
        said("g", "gemini", "two", toolCalls=called(answered=True)),
    ]
    document = META | {"messages": messages, "summary": "Counting"}
    path = tmp_path / name
    indent = 2 if name.endswith(".json") else None
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    session = only(path)
    assert kinds(session) == ["user/message", "assistant/message", "tool/call", "tool/result"]
    assert session.title is not None
    assert session.title.title == "Counting"


def test_half_a_document_leaves_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "session-x.json"
    path.write_text(json.dumps(META | {"messages": [said("u", "user", "one")]}), encoding="utf-8")
    (unit,) = units_of(READER, path)
    known = read_unit(READER, unit)
    path.write_text('{"sessionId": "s", "mess', encoding="utf-8")
    known = read_unit(READER, unit, known)
    assert known.refusal is not None
    assert known.refusal.kind == "corrupt"
    assert len(known.sessions["s"].events) == 2


def test_a_document_continued_as_a_stream_is_read_from_the_stream(tmp_path: Path) -> None:
    write(tmp_path / "session-x.jsonl", META, said("u", "user", "one"))
    (tmp_path / "session-x.json").write_text("{}", encoding="utf-8")
    found = list(READER.units(tmp_path))
    assert [item.path.name for item in found if isinstance(item, LogUnit)] == ["session-x.jsonl"]
    assert [item.path.name for item in found if isinstance(item, SkippedPath)] == ["session-x.json"]


def test_folders_tell_the_project_and_the_parent(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    hashed = sha256(b"/home/mira/lantern").hexdigest()
    path = write(home / "tmp" / hashed / "chats" / "parent-id" / "child.jsonl", META, said("u", "user", "x"))
    marked = write(home / "tmp" / "other" / "chats" / "session-y.jsonl", META, said("u", "user", "y"))
    (home / "projects.json").write_text('{"projects": {"/home/mira/lantern": "lantern"}}', encoding="utf-8")
    (home / "tmp" / "other" / ".project_root").write_text("/home/mira/other\n", encoding="utf-8")
    (home / "oauth_creds.json").write_text("{}", encoding="utf-8")
    (home / "tmp" / hashed / "logs.json").write_text("[]", encoding="utf-8")
    units = units_of(READER, home)
    assert sorted(unit.path for unit in units) == sorted([path, marked])
    child = only(path).header
    assert (child.cwd, child.parent_session, child.origin) == ("/home/mira/lantern", "parent-id", "subagent")
    assert only(marked).header.cwd == "/home/mira/other"


def test_what_a_tool_answered_is_text_in_every_shape(tmp_path: Path) -> None:
    results: list[JSON] = [
        [{"functionResponse": {"response": {"error": "not there"}}}],
        [{"functionResponse": {"response": {"found": ["b.txt"]}}}],
        [{"text": "plain part"}],
        "plain text",
    ]
    calls: list[JSON] = [{"name": "t", "args": {}, "result": result} for result in results]
    session = only(write(tmp_path / "a.jsonl", META, said("g", "gemini", "", toolCalls=calls)))
    told = [event_text(event) for event in session.events if event.type == "tool/result"]
    assert told == ["not there", '{"found":["b.txt"]}', "plain part", "plain text"]
    assert all(
        event.source_event_seqs is not UNSET for event in session.events if event.type == "tool/result"
    )
