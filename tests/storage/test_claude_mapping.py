"""One claude-code record to its events: kinds, blocks, sources, text; which session it belongs to; titles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text, member
from session_query.storage.readers.claude_code import ClaudeCodeReader
from session_query.storage.readers.claude_code.drafts import Draft
from session_query.storage.readers.claude_code.mapping import map_record
from session_query.storage.readers.collect import CollectedSession
from support.reader_conformance import check_session, read_unit, units_of

READER = ClaudeCodeReader()
UUID = "0b0b0b0b-2222-4222-8222-333333333333"
OTHER = "1c1c1c1c-2222-4222-8222-333333333333"
Row = dict[str, JSON]


def drafts(obj: Row) -> list[Draft]:
    return map_record(obj, "id")


def user(content: JSON, **more: JSON) -> Row:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def assistant(*blocks: JSON, **more: JSON) -> Row:
    return {"type": "assistant", "message": {"role": "assistant", "content": [*blocks], "model": "m"}, **more}


TEXT: Row = {"type": "text", "text": "hello"}
CALL: Row = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "ls"}}
RESULT: Row = {"type": "tool_result", "tool_use_id": "c", "content": "out"}
IMAGE: Row = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PLAIN_DOCUMENT: Row = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "essay"},
}
DEEP: JSON = ""
for _ in range(3000):
    DEEP = {"type": "tool_result", "content": [DEEP]} if isinstance(DEEP, dict) else RESULT


@pytest.mark.parametrize(
    ("obj", "types", "text"),
    [
        (user("hello"), ["user/message"], "hello"),
        (user(["hello", TEXT]), ["user/message"], "hello\nhello"),
        (user([RESULT, TEXT]), ["tool/result", "user/message"], "out\nhello"),
        (user([TEXT, RESULT, RESULT]), ["user/message", "tool/result", "tool/result"], "hello\nout\nout"),
        (user([IMAGE]), ["user/message"], ""),
        (user([PLAIN_DOCUMENT]), ["user/message"], "essay"),
        (user([{"type": "tool_result", "content": [TEXT, IMAGE]}]), ["tool/result"], "hello"),
        (user([{"type": "tool_result", "content": None, "text": "only here"}]), ["tool/result"], "only here"),
        (assistant(TEXT, CALL), ["assistant/message", "tool/call"], 'hello\nBash\n{"command":"ls"}'),
        (assistant(CALL, CALL), ["tool/call", "tool/call"], 'Bash\n{"command":"ls"}\nBash\n{"command":"ls"}'),
        (assistant({"type": "thinking", "thinking": "secret"}), ["assistant/message"], ""),
        (assistant({"type": "redacted_thinking", "data": "secret"}), ["assistant/message"], ""),
        (assistant({"type": "fallback", "text": "secret"}), ["assistant/message"], ""),
        (assistant({"type": "tool-call", "name": "secret"}), ["assistant/message"], ""),
        (assistant({"type": "server_tool_use", "id": "w", "name": "web"}), ["tool/call"], "web\n{}"),
        ({"type": "assistant", "message": {"content": "bare"}}, ["assistant/message"], "bare"),
        ({"type": "user", "message": "bare"}, ["user/message"], "bare"),
        (assistant(TEXT, isApiErrorMessage=True), ["claude-code/assistant"], "hello"),
        (user("hello", isVisibleInTranscriptOnly=True), ["claude-code/user"], "hello"),
        (user(None), ["claude-code/user"], ""),
        (user([]), ["claude-code/user"], ""),
        ({"type": "user"}, ["claude-code/user"], ""),
        ({"type": "tool_use", "name": "cat", "input": {"f": 1}}, ["tool/call"], 'cat\n{"f":1}'),
        ({"type": "tool_result", "name": "cat", "output": "meow"}, ["tool/result"], "meow"),
        ({"type": "system", "content": "switched"}, ["claude-code/system"], "switched"),
        (
            {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"},
            ["claude-code/system/compact_boundary"],
            "",
        ),
        (
            {"type": "system", "subtype": "api_error", "error": {"error": {"error": {"message": "busy"}}}},
            ["claude-code/system/api_error"],
            "busy",
        ),
        (
            {
                "type": "attachment",
                "attachment": {"type": "edited_text_file", "filename": "a.py", "snippet": "x"},
            },
            ["claude-code/attachment/edited_text_file"],
            "a.py\nx",
        ),
        (
            {"type": "attachment", "attachment": {"type": "skill_listing", "content": "secret"}},
            ["claude-code/attachment/skill_listing"],
            "",
        ),
        (
            {"type": "progress", "data": {"type": "bash_progress", "output": "secret"}},
            ["claude-code/progress/bash_progress"],
            "",
        ),
        ({"type": "queue-operation", "content": "secret"}, ["claude-code/queue-operation"], ""),
        (
            {"type": "pr-link", "prUrl": "https://example.com/pull/7"},
            ["claude-code/pr-link"],
            "https://example.com/pull/7",
        ),
        ({"type": "x\ny" * 100, "text": "secret"}, ["claude-code/record"], ""),
        ({"silly": "secret"}, ["claude-code/record"], ""),
        ({}, ["claude-code/record"], ""),
    ],
)
def test_one_record(obj: Row, types: list[str], text: str) -> None:
    found = drafts(obj)
    assert [draft.type for draft in found] == types
    assert "\n".join(part for draft in found if (part := draft.text())) == text
    assert found[0].data["native"] is obj
    assert not any("native" in draft.data for draft in found[1:])


def test_blocks_of_any_depth_and_wrong_types_are_no_error() -> None:
    for content in (DEEP, [DEEP], [[["x"]]], [1, None, {"type": 7}], {"type": "text", "text": 3}, True):
        for obj in (user(content), assistant(content), {"type": "attachment", "attachment": content}):
            assert drafts(obj)


@pytest.mark.parametrize(
    ("obj", "kind"),
    [
        (user("hello"), "user"),
        (user("<command-name>/review</command-name>"), "user"),
        (user("<bash-input>ls</bash-input>"), "user"),
        (user("hello", origin={"kind": "human"}), "user"),
        (user("hello", isMeta=True), "plugin"),
        (user("hello", origin={"kind": "task-notification"}), "plugin"),
        (user("<local-command-stdout>a</local-command-stdout>"), "plugin"),
        (user("<bash-stdout>a</bash-stdout>"), "plugin"),
        (user("\ufeff <task-notification>done"), "plugin"),
        (user("[Request interrupted by user for tool use]"), "plugin"),
        (user("hello", isCompactSummary=True), "compact-checkpoint"),
        (user("This session is being continued from a previous conversation that"), "compact-checkpoint"),
        ({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "go"}}, "user"),
        (
            {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "go", "isMeta": True}},
            "plugin",
        ),
        (
            {
                "type": "attachment",
                "attachment": {"type": "queued_command", "prompt": "go", "commandMode": "task-notification"},
            },
            "plugin",
        ),
    ],
)
def test_who_wrote_a_message(obj: Row, kind: str) -> None:
    (draft,) = drafts(obj)
    assert draft.type == "user/message"
    assert member(member(draft.data, "source"), "kind") == kind


def test_an_answer_cut_off_says_so() -> None:
    assert drafts(assistant(TEXT, isAbortedMidStream=True))[0].data["interrupted"] is True


def test_several_messages_of_one_record_have_ids_of_their_own() -> None:
    ids = [member(draft.data, "id") for draft in drafts(user([TEXT, RESULT, TEXT])) if draft.answers is None]
    assert ids == ["id", "id:2"]


def read(path: Path, rows: list[Row]) -> dict[str, CollectedSession]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(obj) + "\n" for obj in rows), encoding="utf-8")
    sessions = read_unit(READER, units_of(READER, path)[0]).sessions
    for session in sessions.values():
        check_session(session)
    return sessions


def talk(uuid: str, parent: str | None, writer: str = UUID, **more: JSON) -> Row:
    head: Row = {"uuid": uuid, "parentUuid": parent, "sessionId": writer, "isSidechain": False}
    return {**user(uuid), **head, "timestamp": "2026-01-02T03:04:05Z", **more}


def test_lines_copied_by_a_resume_are_inherited(tmp_path: Path) -> None:
    rows = [talk("a", None, OTHER), talk("b", "a", OTHER), talk("c", "b"), talk("d", "c", OTHER)]
    session = read(tmp_path / f"{UUID}.jsonl", rows)[UUID]
    assert (session.header.parent_session, session.inherited) == (OTHER, 2)
    assert [event.type for event in session.events] == ["user/message"] * 4, (
        "a line of this chain stays in it"
    )


def test_a_log_not_named_by_a_uuid_belongs_to_its_first_writer(tmp_path: Path) -> None:
    session = read(tmp_path / "notes.jsonl", [talk("a", None, OTHER), talk("b", "a", OTHER)])["notes"]
    assert (session.header.parent_session, session.inherited) == (None, 0)


def test_lines_of_another_format_are_no_session(tmp_path: Path) -> None:
    path = tmp_path / "qwen.jsonl"
    lines: list[Row] = [
        {"type": "user", "message": {"parts": [{"text": "a"}]}},
        {"a": 1},
        {"type": "session_start"},
    ]
    path.write_text("".join(json.dumps(obj) + "\n" for obj in lines), encoding="utf-8")
    found = read_unit(READER, units_of(READER, path)[0])
    assert found.sessions == {}
    assert found.refusal is not None
    assert found.refusal.kind == "not-a-session"


def test_stray_lines_and_their_replies_are_kept_with_text(tmp_path: Path) -> None:
    rows = [talk("a", None), talk("x", None, OTHER), talk("b", "a"), talk("y", "x", OTHER)]
    session = read(tmp_path / f"{UUID}.jsonl", rows)[UUID]
    assert [(event.type, event_text(event)) for event in session.events] == [
        ("user/message", "a"),
        ("claude-code/user", "x"),
        ("user/message", "b"),
        ("claude-code/user", "y"),
    ]


def test_a_fork_names_its_origin(tmp_path: Path) -> None:
    fork: JSON = {"sessionId": OTHER, "messageUuid": "a"}
    rows = [talk("a", None, forkedFrom=fork), talk("b", "a")]
    session = read(tmp_path / f"{UUID}.jsonl", rows)[UUID]
    assert (session.header.parent_session, session.inherited) == (OTHER, 1)


def test_a_log_of_side_records_is_a_sub_agents_whatever_its_name(tmp_path: Path) -> None:
    rows = [talk("a", None, OTHER, isSidechain=True, agentId="7"), talk("b", "a", OTHER, isSidechain=True)]
    session = read(tmp_path / "copy.jsonl", rows)["copy"]
    assert (session.header.parent_session, session.header.origin) == (OTHER, "subagent")
    assert len(session.events) == 2


def test_an_agent_file_takes_its_id_from_its_first_record_or_folder(tmp_path: Path) -> None:
    side = talk("a", None, OTHER, isSidechain=True, agentId="7")
    assert set(read(tmp_path / "agent-7.jsonl", [side])) == {f"{OTHER}/agent-7"}
    nested = tmp_path / UUID / "subagents" / "workflows" / "wf" / "agent-7.jsonl"
    assert set(read(nested, [side])) == {f"{UUID}/agent-7"}
    assert set(read(tmp_path / "agent-notes.jsonl", [talk("a", None, OTHER)])) == {"agent-notes"}
    assert set(read(tmp_path / "agent-8.jsonl", [{"type": "mode"}, side])) == {"agent-8"}, (
        "the first settles it"
    )


def titles(rows: list[Row], tmp_path: Path) -> list[JSON]:
    session = read(tmp_path / f"{UUID}.jsonl", rows)[UUID]
    return [member(event.data, "title") for event in session.events if event.type == "session/title"]


def test_titles_rank_and_repeat_once(tmp_path: Path) -> None:
    custom: Row = {"type": "custom-title", "customTitle": "mine", "sessionId": UUID}
    made: Row = {"type": "ai-title", "aiTitle": "made"}
    assert titles([talk("a", None), made, made, custom, made, custom], tmp_path) == ["made", "mine"]
    assert titles([talk("a", None), {**custom, "sessionId": OTHER}], tmp_path) == []
    assert titles([talk("a", None), {**custom, "customTitle": ""}], tmp_path) == []


def test_a_summary_titles_the_session_that_holds_its_last_message(tmp_path: Path) -> None:
    def summing(leaf: str) -> Row:
        return {"type": "summary", "summary": f"about {leaf}", "leafUuid": leaf}

    assert titles([summing("gone"), summing("b"), talk("a", None), talk("b", "a")], tmp_path) == ["about b"]
    assert titles([talk("a", None), summing("a"), summing("gone")], tmp_path) == ["about a"]


def test_without_a_title_the_first_prompt_is_reported(tmp_path: Path) -> None:
    rows = [talk("<command-name>/init</command-name>", None), talk("Why  is\nit dark?", "x")]
    session = read(tmp_path / f"{UUID}.jsonl", rows)[UUID]
    assert session.title is not None
    assert (session.title.title, session.title.message_seqs) == ("Why is it dark?", (1,))


def test_a_log_without_any_time_is_read_all_the_same(tmp_path: Path) -> None:
    rows: list[Row] = [{"type": "mode", "mode": "plan", "sessionId": UUID}, {**user("hi"), "uuid": "a"}]
    session = read(tmp_path / f"{UUID}.jsonl", rows)[UUID]
    assert [event.time for event in session.events] == [0, 0]


def test_a_long_beginning_without_a_time_keeps_time_zero(tmp_path: Path) -> None:
    head: list[Row] = [{"type": "mode", "mode": "x" * 3000, "sessionId": UUID} for _ in range(3)]
    session = read(tmp_path / f"{UUID}.jsonl", [*head, talk("a", None)])[UUID]
    assert [event.time == 0 for event in session.events] == [True, True, True, False]
