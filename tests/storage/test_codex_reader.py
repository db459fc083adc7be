"""The Codex reader: its worked log, forks, twins, older forms, copies, titles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from msgspec import UNSET

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.storage.readers.codex import CodexReader
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.reader_conformance import check_reader, check_session, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = CodexReader()
ID = "019f0a11-2222-7333-8444-555566667777"


def row(second: float, kind: str, payload: dict[str, JSON]) -> dict[str, JSON]:
    millis = round(second * 1000)
    stamp = f"2026-05-04T08:{millis // 60000:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}Z"
    return {"timestamp": stamp, "type": kind, "payload": payload}


def meta(second: float, session_id: str, **more: JSON) -> dict[str, JSON]:
    return row(second, "session_meta", {"id": session_id, "cwd": "/home/mira/lantern", **more})


def said(second: float, role: str, text: str) -> dict[str, JSON]:
    kind = "output_text" if role == "assistant" else "input_text"
    content: list[JSON] = [{"type": kind, "text": text}]
    return row(second, "response_item", {"type": "message", "role": role, "content": content})


def screen(second: float, kind: str, **fields: JSON) -> dict[str, JSON]:
    return row(second, "event_msg", {"type": kind, **fields})


def write(path: Path, rows: list[dict[str, JSON]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in rows), encoding="utf-8")
    return path


def read(path: Path) -> Collected:
    return read_unit(READER, units_of(READER, path)[0])


def only(path: Path) -> CollectedSession:
    (session,) = read(path).sessions.values()
    check_session(session)
    return session


def texts(session: CollectedSession) -> list[str]:
    return [text for text in map(event_text, session.events) if text]


def test_worked_log_passes_every_check(tmp_path: Path) -> None:
    files = data_files("codex")
    check_reader(READER, files, worked_lists("codex"), tmp_path)


def test_worked_log_has_the_links_and_words_its_table_promises(tmp_path: Path) -> None:
    name, content = next(iter(data_files("codex").items()))
    path = tmp_path / Path(name).name
    path.write_bytes(content)
    session = only(path)
    events = session.events
    assert session.header.cwd == "/home/mira/lantern"
    assert session.title is None, "the log holds a title event"
    assert events[13].source_event_seqs == [12]
    assert events[21].surface_op == {"op": "replace", "start": 1, "end": 17}
    assert event_text(events[21]) == "Summary: the dimmer clamps its level since the patch."
    assert events[30].surface_op == {"op": "replace", "start": 24, "end": 27}
    assert events[37].source_event_seqs == [32]
    assert not any("Looking at the dimmer" in text for text in texts(session)), "reasoning is no text"
    kinds = [event.data["source"]["kind"] for event in events if event.type == "user/message"]  # type: ignore[index,call-overload]
    assert kinds == ["developer", "context", "user", "compact-checkpoint", "user", "context", "user"]


@pytest.mark.parametrize("response_first", [True, False])
def test_each_message_is_found_once_whichever_half_comes_first(tmp_path: Path, response_first: bool) -> None:
    pair = [said(3, "assistant", "the answer"), screen(3, "agent_message", message="the answer")]
    rows = [meta(0, ID), said(1, "user", "ask"), screen(1, "user_message", message="ask")]
    session = only(write(tmp_path / "a.jsonl", rows + (pair if response_first else pair[::-1])))
    assert texts(session) == ["ask", "the answer"]
    native = next(event.data for event in session.events if event.type == "assistant/message")
    assert isinstance(native, dict)
    assert native["native"] == json.loads(json.dumps(pair[0]))


def test_the_same_answer_twice_is_two_answers(tmp_path: Path) -> None:
    rows = [meta(0, ID), said(1, "user", "ask")]
    for second in (2, 3):
        rows += [said(second, "assistant", "done"), screen(second, "agent_message", message="done")]
    assert texts(only(write(tmp_path / "a.jsonl", rows))) == ["ask", "done", "done"]


def test_a_log_of_screen_messages_alone_is_read_from_them(tmp_path: Path) -> None:
    rows = [
        meta(0, ID),
        screen(1, "user_message", message="ask"),
        screen(2, "agent_message", message="answer"),
    ]
    session = only(write(tmp_path / "a.jsonl", rows))
    assert [event.type for event in session.events[1:]] == ["user/message", "assistant/message"]


def test_copies_with_old_times_are_inherited(tmp_path: Path) -> None:
    parent = [meta(1, "parent"), said(2, "user", "old prompt"), said(3, "assistant", "old answer")]
    rows = [meta(60, ID, forked_from_id="parent", timestamp="2026-05-04T08:01:00Z"), *parent]
    rows += [said(75, "user", "new prompt"), said(76, "assistant", "new answer")]
    session = only(write(tmp_path / "a.jsonl", rows))
    assert session.inherited == 4
    assert session.header.parent_session == "parent"
    assert session.title is not None
    assert session.title.title == "new prompt"


def test_copies_written_in_one_burst_are_inherited_but_not_the_turn_they_open(tmp_path: Path) -> None:
    source: JSON = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    rows = [meta(60, ID, source=source, timestamp="2026-05-04T08:00:59.200Z"), meta(60.01, "parent")]
    rows += [
        screen(60.02, "task_started"),
        said(60.02, "user", "old"),
        said(60.03, "assistant", "old answer"),
    ]
    rows += [
        screen(60.05, "task_started"),
        said(60.06, "user", "own task"),
        said(64, "assistant", "own answer"),
    ]
    session = only(write(tmp_path / "a.jsonl", rows))
    assert session.inherited == 5
    assert (session.header.origin, session.header.delegation_depth) == ("subagent", 1)


def test_a_sub_agent_without_copies_inherits_nothing(tmp_path: Path) -> None:
    rows = [meta(60, ID, parent_thread_id="parent"), said(60, "user", "own"), said(64, "assistant", "yes")]
    assert only(write(tmp_path / "a.jsonl", rows)).inherited == 0


def test_rolling_back_two_turns_abandons_both(tmp_path: Path) -> None:
    rows = [meta(0, ID)]
    for turn in range(3):
        rows += [said(turn, "user", f"prompt {turn}"), said(turn, "assistant", f"answer {turn}")]
    rows += [screen(9, "thread_rolled_back", num_turns=2), said(10, "user", "instead")]
    event = only(write(tmp_path / "a.jsonl", rows)).events[-1]
    assert event.surface_op == {"op": "replace", "start": 3, "end": 6}
    assert event.source_event_seqs == [3, 4, 5, 6]


def test_rolling_back_twice_abandons_one_run(tmp_path: Path) -> None:
    rows = [meta(0, ID)]
    for turn in range(3):
        rows += [said(turn, "user", f"prompt {turn}"), said(turn, "assistant", f"answer {turn}")]
    back = screen(9, "thread_rolled_back", num_turns=1)
    session = only(write(tmp_path / "a.jsonl", [*rows, back, back, said(10, "user", "instead")]))
    assert session.events[-1].surface_op == {"op": "replace", "start": 3, "end": 6}


def test_results_cite_their_calls_also_when_ids_repeat_or_are_missing(tmp_path: Path) -> None:
    call: dict[str, JSON] = {"type": "function_call", "name": "sh", "call_id": "c", "arguments": "{}"}
    output: dict[str, JSON] = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    nameless: list[dict[str, JSON]] = [
        {"type": "tool_call", "function": {"name": "probe"}, "arguments": {"a": 1}},
        {"type": "tool_result", "name": "probe", "result": {"stdout": "line", "exitCode": 2}},
    ]
    payloads = [call, call, output, output, output, {**output, "call_id": "gone"}, *nameless]
    rows = [meta(0, ID), *(row(1, "response_item", payload) for payload in payloads)]
    events = only(write(tmp_path / "a.jsonl", rows)).events
    cited = [event.source_event_seqs for event in events if event.type == "tool/result"]
    assert cited == [[1], [2], [2], UNSET, [7]]
    assert isinstance(events[-1].data, dict)
    assert events[-1].data["message"]["content"][0]["isError"] is True  # type: ignore[index,call-overload]


def test_bare_items_of_mid_2025_take_id_and_time_from_the_first_line(tmp_path: Path) -> None:
    rows: list[dict[str, JSON]] = [
        {"id": ID, "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello there"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "fine"},
        {"record_type": "state"},
    ]
    session = only(write(tmp_path / "rollout-2025-06-01T10-00-00-x.jsonl", rows))
    assert (session.header.id, session.header.created_at) == (ID, 1748772000000)
    assert [kind for _, kind in shape(session)] == [
        "codex/session_meta",
        "codex/state",
        "user/message",
        "tool/call",
        "tool/result",
        "codex/state",
    ]


def test_a_log_of_early_2025_is_one_document(tmp_path: Path) -> None:
    items: list[JSON] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    ]
    document = {"session": {"id": ID, "timestamp": "2025-04-20T10:00:00Z"}, "items": items}
    path = tmp_path / "rollout-2025-04-20-x.json"
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    session = only(path)
    assert session.header.id == ID
    assert [kind for _, kind in shape(session)] == ["codex/session", "user/message"]


def test_an_exec_capture_has_turns_calls_and_answers(tmp_path: Path) -> None:
    command: dict[str, JSON] = {"id": "i1", "type": "command_execution", "command": "cargo test"}
    done = {**command, "aggregated_output": "148 passed", "exit_code": 0, "status": "completed"}
    todo: JSON = {"id": "i3", "type": "todo_list", "items": [{"text": "write it", "completed": True}]}
    rows: list[dict[str, JSON]] = [
        {"type": "thread.started", "thread_id": ID},
        {"type": "turn.started"},
        {"type": "item.started", "item": command},
        {"type": "item.completed", "item": done},  # type: ignore[dict-item]
        {"type": "item.completed", "item": {"id": "i2", "type": "reasoning", "text": "hush"}},
        {"type": "item.updated", "item": todo},
        {"type": "item.completed", "item": {"id": "i4", "type": "agent_message", "text": "All green."}},
        {"type": "turn.failed", "error": {"message": "out of tokens"}},
    ]
    session = only(write(tmp_path / "capture.jsonl", rows))
    assert session.header.id == ID
    assert [kind for _, kind in shape(session)] == [
        "codex/thread.started",
        "turn/start",
        "tool/call",
        "tool/result",
        "codex/item.completed/reasoning",
        "todo/write",
        "assistant/message",
        "turn/end",
    ]
    assert "error\nout of tokens" in texts(session)


def test_archiving_and_compressing_leave_one_session_at_one_place(tmp_path: Path) -> None:
    rows = [meta(0, ID), said(1, "user", "ask")]
    name = f"rollout-2026-05-04T10-00-00-{ID}.jsonl"
    path = write(tmp_path / "sessions" / "2026" / "05" / "04" / name, rows)
    before = units_of(READER, tmp_path)
    events = only(path).events
    archived = tmp_path / "archived_sessions" / f"{name}.zst"
    archived.parent.mkdir()
    archived.write_bytes(zstandard.compress(path.read_bytes()))
    both = list(READER.units(tmp_path))
    assert [unit.path for unit in both if isinstance(unit, LogUnit)] == [path]
    assert [skipped.path for skipped in both if isinstance(skipped, SkippedPath)] == [archived]
    path.unlink()
    after = units_of(READER, tmp_path)
    assert [unit.place for unit in after] == [unit.place for unit in before] == [""]
    (session,) = read_unit(READER, after[0]).sessions.values()
    assert session.events == events


def test_titles_beside_the_log_win_by_their_last_line_and_follow_changes(tmp_path: Path) -> None:
    path = write(
        tmp_path / "sessions" / "2026" / "05" / "04" / "rollout-x.jsonl",
        [meta(0, ID), said(1, "user", "ask")],
    )
    index = tmp_path / "session_index.jsonl"
    entry = {"id": ID, "thread_name": "First name", "updated_at": "2026-05-04T09:00:00Z"}
    index.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    (unit,) = units_of(READER, tmp_path)
    assert unit.files == (path, index)
    known = read_unit(READER, unit)
    title = known.sessions[ID].title
    assert title is not None
    assert (title.title, title.time) == ("First name", 1777885200000)
    index.write_text(
        json.dumps(entry) + "\n" + json.dumps({**entry, "thread_name": "Second name"}), encoding="utf-8"
    )
    title = read_unit(READER, unit, known).sessions[ID].title
    assert title is not None
    assert title.title == "Second name"
    assert len(known.sessions[ID].events) == 2


def test_a_record_cut_and_written_again_costs_one_record(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", [meta(0, ID), said(1, "user", "ask"), said(2, "assistant", "whole answer")]
    )
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], lines[2][:60], *lines[2:]]))
    collected = read(path)
    assert (collected.held, [loss.records for loss in collected.losses]) == (3, [1])


def test_lists_beside_the_sessions_are_no_sessions(tmp_path: Path) -> None:
    write(tmp_path / "history.jsonl", [{"session_id": ID, "ts": 1, "text": "prompt"}])
    (found,) = READER.units(tmp_path)
    assert isinstance(found, SkippedPath)


def test_codex_home_names_another_place() -> None:
    assert READER.usual_places({"CODEX_HOME": "/srv/codex"}, Path("/home/m"), "linux") == [Path("/srv/codex")]
