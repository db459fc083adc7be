"""The qwen, droid and copilot readers: their worked logs, and what is special to each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.surface import fold
from session_query.protocol.text import event_text, member
from session_query.storage.readers.collect import CollectedSession
from session_query.storage.readers.copilot import CopilotReader
from session_query.storage.readers.copilot.mapper import AGENTS_MAX, NOTE_TRUNCATED
from session_query.storage.readers.copilot.mapper import NOTE_REWIND as COPILOT_NOTE_REWIND
from session_query.storage.readers.droid import DroidReader
from session_query.storage.readers.qwen import QwenReader
from session_query.storage.readers.qwen.mapper import NOTE_REWIND
from session_query.storage.readers.seam import Reader
from support.reader_conformance import check_reader, check_session, read_root, read_unit, units_of
from support.worked_readme import data_files, worked_lists

QWEN, DROID, COPILOT = QwenReader(), DroidReader(), CopilotReader()
Row = dict[str, JSON]


@pytest.mark.parametrize(
    ("package", "reader", "log"),
    [
        ("qwen", QWEN, "-home-mira-orchard/chats/6b1f7a90-3c2d-4e5f-8a9b-0c1d2e3f4a5b.jsonl"),
        ("droid", DROID, "-home-mira-ferry/d2a1c0de-5b6a-4f3e-9d8c-7b6a5f4e3d2c.jsonl"),
        ("droid", DROID, "captures/run.jsonl"),
        ("copilot", COPILOT, "0e1f2a3b-4c5d-4e6f-8a7b-9c8d7e6f5a4b/events.jsonl"),
    ],
)
def test_worked_logs_pass_every_check(package: str, reader: Reader, log: str, tmp_path: Path) -> None:
    check_reader(reader, data_files(package), worked_lists(package), tmp_path, log=log)


def worked(package: str, reader: Reader, root: Path) -> dict[str, CollectedSession]:
    for name, content in data_files(package).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return read_root(reader, root)


def read(reader: Reader, path: Path, rows: list[Row]) -> dict[str, CollectedSession]:
    path.write_text("".join(json.dumps(obj) + "\n" for obj in rows), encoding="utf-8")
    sessions = read_unit(reader, units_of(reader, path)[0]).sessions
    for session in sessions.values():
        check_session(session)
    return sessions


def visible(session: CollectedSession) -> list[str]:
    return [event_text(session.events[seq]) for seq in fold(session.events).nodes]


def kinds(session: CollectedSession) -> list[JSON]:
    return [
        member(member(event.data, "source"), "kind")
        for event in session.events
        if event.type == "user/message"
    ]


# -- qwen ------------------------------------------------------------------------------------------


def qwen(uuid: str, parent: str | None, text: str, kind: str = "user", **more: JSON) -> Row:
    role = "model" if kind == "assistant" else "user"
    message: JSON = {"role": role, "parts": [{"text": text}] if text else []}
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "message": message, **more}


def qwen_rewind(target: str, uuid: str = "w") -> Row:
    return qwen(uuid, None, "", "system", subtype="rewind", systemPayload={"targetUuid": target})


def test_qwen_worked_log_says_who_spoke_and_what_was_left(tmp_path: Path) -> None:
    (session,) = worked("qwen", QWEN, tmp_path).values()
    assert kinds(session) == ["user", "user", "user", "plugin", "compact-checkpoint", "user"]
    assert visible(session) == [
        "<state_snapshot>Apple trees need water; pump unknown.</state_snapshot>\nGot it.",
        "Which pumps are there?",
    ]
    titles = [member(event.data, "title") for event in session.events if event.type == "session/title"]
    assert titles == ["Watering", "Watering the orchard"]
    assert session.header.cwd == "/home/mira/orchard"
    assert not any("sensor log" in event_text(event) for event in session.events), "thinking is no text"


def test_qwen_rewinds_twice_and_to_the_start(tmp_path: Path) -> None:
    rows = [qwen("a", None, "a"), qwen("b", "a", "b", "assistant"), qwen("c", "b", "c")]
    twice = [*rows, qwen_rewind("b"), qwen("d", "w", "d"), qwen_rewind("b", "v"), qwen("e", "v", "e")]
    assert visible(read(QWEN, tmp_path / "s.jsonl", twice)["s"]) == ["a", "b", "e"]
    idle = [*rows, qwen_rewind("c"), qwen("d", "w", "d")]
    assert visible(read(QWEN, tmp_path / "s.jsonl", idle)["s"]) == ["a", "b", "c", "d"]
    first = qwen("h", None, "", "system", subtype="session_start")
    start = [first, *rows, qwen_rewind("h"), qwen("d", "w", "d")]
    assert visible(read(QWEN, tmp_path / "s.jsonl", start)["s"]) == ["d"]


def test_qwen_rewind_to_what_is_gone_is_noted(tmp_path: Path) -> None:
    squeezed: JSON = {"compressedHistory": [{"role": "user", "parts": [{"text": "short"}]}]}
    rows = [
        qwen("a", None, "a"),
        qwen("z", "a", "", "system", subtype="chat_compression", systemPayload=squeezed),
        qwen_rewind("a"),
        qwen("b", "w", "b"),
    ]
    session = read(QWEN, tmp_path / "s.jsonl", rows)["s"]
    assert visible(session) == ["short", "b"]
    assert session.notes == [NOTE_REWIND]


def test_qwen_titles_of_a_branch_that_was_left_do_not_outrank_later_ones(tmp_path: Path) -> None:
    def named(text: str, source: str) -> Row:
        payload: JSON = {"customTitle": text, "titleSource": source}
        return qwen(text, None, "", "system", subtype="custom_title", systemPayload=payload)

    rows = [qwen("a", None, "a"), named("mine", "manual"), named("made", "auto")]
    later = [*rows, qwen_rewind("a"), named("made later", "auto")]
    session = read(QWEN, tmp_path / "s.jsonl", later)["s"]
    titles = [member(event.data, "title") for event in session.events if event.type == "session/title"]
    assert titles == ["mine", "made later"]


@pytest.mark.parametrize(
    ("response", "outcome", "text"),
    [
        ({"output": "out"}, None, "out"),
        ({"error": "bad"}, {"status": "error", "resultDisplay": "shown"}, "bad"),
        ({"rows": [1, 2]}, None, '{"rows":[1,2]}'),
        ({}, {"resultDisplay": "shown"}, "shown"),
        ({}, {"resultDisplay": {"fileDiff": "x"}}, ""),
        (None, None, ""),
        ("plain", None, "plain"),
    ],
)
def test_qwen_result_text(response: JSON, outcome: JSON, text: str, tmp_path: Path) -> None:
    call: JSON = {"functionCall": {"id": "c", "name": "read", "args": {"a": 1}}}
    answer: JSON = {"functionResponse": {"id": "c", "response": response}}
    rows: list[Row] = [
        {**qwen("a", None, "", "assistant"), "message": {"parts": [call]}},
        {**qwen("b", "a", "", "tool_result"), "message": {"parts": [answer]}, "toolCallResult": outcome},
    ]
    session = read(QWEN, tmp_path / "s.jsonl", rows)["s"]
    assert [event.type for event in session.events] == ["tool/call", "tool/result"]
    assert session.events[1].source_event_seqs == [0]
    assert event_text(session.events[1]) == text


# -- droid -----------------------------------------------------------------------------------------


def test_droid_worked_logs_say_who_spoke(tmp_path: Path) -> None:
    found = worked("droid", DROID, tmp_path)
    stored = found["d2a1c0de-5b6a-4f3e-9d8c-7b6a5f4e3d2c"]
    assert kinds(stored) == ["user", "plugin"]
    assert member(stored.events[0].data, "title") == "Ferry timetable"
    capture = found["capture-7"]
    assert [event_text(event) for event in capture.events[4:]] == [
        "last ferry 21:10",
        "no such file",
        "On Sunday at 21:10.",
        "",
        "error\nConnection lost.",
    ]


def test_droid_session_without_a_title_is_called_by_its_first_prompt(tmp_path: Path) -> None:
    reminded = "<system-reminder>\nBe brief.\n</system-reminder>\n\nCount the boats"
    rows: list[Row] = [
        {"type": "session_start", "id": "s", "title": "New Session"},
        {"type": "message", "id": "m", "message": {"role": "user", "content": reminded}},
    ]
    session = read(DROID, tmp_path / "s.jsonl", rows)["s"]
    assert session.events[0].type == "droid/session_start"
    assert session.title is not None
    assert session.title.title == "Count the boats"


def test_droid_final_text_that_no_answer_said_is_one(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"type": "message", "session_id": "x", "role": "user", "text": "go"},
        {"type": "completion", "session_id": "x", "finalText": "done"},
    ]
    session = read(DROID, tmp_path / "c.jsonl", rows)["x"]
    assert [event.type for event in session.events] == ["user/message", "assistant/message", "turn/end"]


def test_droid_records_of_wrong_types_are_kept(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"type": "session_start", "id": "s", "title": ["no"]},
        {"type": "message", "id": "m", "message": {"role": "user", "content": None}},
        {"type": "message", "id": "n", "message": {"role": "judge", "content": "secret"}},
        {"type": "tool_call", "sessionId": "s", "parameters": "raw"},
    ]
    session = read(DROID, tmp_path / "c.jsonl", rows)["s"]
    assert [event.type for event in session.events] == [
        "droid/session_start",
        "droid/message",
        "droid/message",
        "tool/call",
    ]


# -- copilot ---------------------------------------------------------------------------------------


def copilot(number: int, kind: str, **data: JSON) -> Row:
    stamp = f"2026-04-05T18:30:{number % 60:02d}Z"
    return {"type": kind, "data": data, "id": f"e{number}", "timestamp": stamp, "parentId": None}


START = copilot(0, "session.start", sessionId="s", context={"cwd": "/w"})


def test_copilot_worked_log_has_a_sub_agent_and_is_rewound(tmp_path: Path) -> None:
    found = worked("copilot", COPILOT, tmp_path)
    main_id = "0e1f2a3b-4c5d-4e6f-8a7b-9c8d7e6f5a4b"
    main, child = found[main_id], found[f"{main_id}/w2"]
    assert (child.header.parent_session, child.header.origin) == (main_id, "subagent")
    assert child.header.cwd == main.header.cwd == "/home/mira/choir"
    assert child.title is not None
    assert child.title.title == "Explore Agent"
    assert visible(main) == ["Ada and Ben sing on Sunday.", "And on Tuesday?"]
    assert kinds(main) == ["user", "plugin", "compact-checkpoint", "user", "user"]
    assert main.notes == [NOTE_TRUNCATED]
    assert [event.source_event_seqs for event in main.events if event.type == "tool/result"] == [[6], [7]]


def test_copilot_call_is_found_once_whichever_record_comes_first(tmp_path: Path) -> None:
    asked = copilot(1, "assistant.message", toolRequests=[{"toolCallId": "c", "name": "ls", "arguments": {}}])
    begun = copilot(2, "tool.execution_start", toolCallId="c", toolName="ls", arguments={})
    for rows in ([START, asked, begun], [START, begun, asked]):
        session = read(COPILOT, tmp_path / "s.jsonl", rows)["s"]
        assert [event.type == "tool/call" for event in session.events] == [False, True, False]


def test_copilot_rewind_to_an_unknown_event_is_noted(tmp_path: Path) -> None:
    rows = [START, copilot(1, "user.message", content="a"), copilot(2, "session.snapshot_rewind")]
    session = read(COPILOT, tmp_path / "s.jsonl", [*rows, copilot(3, "user.message", content="b")])["s"]
    assert visible(session) == ["a", "b"]
    assert session.notes == [COPILOT_NOTE_REWIND]


def test_copilot_too_many_sub_agents_stay_in_the_main_session(tmp_path: Path) -> None:
    rows = [
        copilot(n, "assistant.message", content=f"t{n}", parentToolCallId=f"c{n}")
        for n in range(1, AGENTS_MAX + 3)
    ]
    found = read(COPILOT, tmp_path / "s.jsonl", [START, *rows])
    assert len(found) == AGENTS_MAX + 1
    assert len(found["s"].events) == 3


def test_copilot_folder_names_the_session_if_the_log_does_not(tmp_path: Path) -> None:
    folder = tmp_path / "from-the-folder"
    folder.mkdir()
    rows = [copilot(1, "user.message", content="a\u2028b")]
    session = read(COPILOT, folder / "events.jsonl", rows)["from-the-folder"]
    assert event_text(session.events[0]) == "a\u2028b"


def test_usual_places(tmp_path: Path) -> None:
    assert QWEN.usual_places({}, tmp_path, "linux") == [tmp_path / ".qwen" / "projects"]
    assert DROID.usual_places({}, tmp_path, "linux") == [tmp_path / ".factory" / "sessions"]
    named = {"COPILOT_HOME": str(tmp_path / "x")}
    assert COPILOT.usual_places(named, tmp_path, "linux")[0] == tmp_path / "x" / "session-state"
