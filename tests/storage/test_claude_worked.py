"""The claude-code reader: its worked logs, and what their headers, titles and links say."""

from __future__ import annotations

from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text, member
from session_query.storage.readers.claude_code import ClaudeCodeReader
from session_query.storage.readers.collect import CollectedSession
from session_query.storage.readers.seam import LogUnit, SkippedPath
from support.reader_conformance import check_reader, read_root
from support.worked_readme import data_files, worked_lists

READER = ClaudeCodeReader()
MAIN = "3f0c1a52-7d7e-4b1e-9a40-0d5c6b7e8f90"
FORK = "5a5a5a5a-1111-4111-8111-222222222222"
LOG = f"-home-mira-tide-table/{MAIN}.jsonl"


def sessions(root: Path) -> dict[str, CollectedSession]:
    for name, content in data_files("claude_code").items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return read_root(READER, root)


def source_kind(data: JSON) -> JSON:
    return member(member(data, "source"), "kind")


def test_worked_logs_pass_every_check(tmp_path: Path) -> None:
    check_reader(READER, data_files("claude_code"), worked_lists("claude_code"), tmp_path, log=LOG)


def test_children_name_their_parent_and_forks_their_copies(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    children = {name for name, session in found.items() if session.header.parent_session == MAIN}
    assert children == {
        f"{MAIN}/side-x1",
        f"{MAIN}/agent-a77b01",
        f"{MAIN}/agent-5d2e9c",
        FORK,
    }
    assert found[f"{MAIN}/side-x1"].header.origin == "subagent"
    assert found[f"{MAIN}/side-x1"].header.delegation_depth == 1
    assert found[FORK].header.origin is None
    assert [session.inherited for session in (found[FORK], found[MAIN])] == [2, 0]
    assert all(session.header.cwd == "/home/mira/tide-table" for session in found.values())


def test_titles_come_from_the_log_else_from_beside_it(tmp_path: Path) -> None:
    found = sessions(tmp_path)
    titles = [member(event.data, "title") for event in found[MAIN].events if event.type == "session/title"]
    assert titles == ["High water in March", "Tides, March"]
    beside = {name: session.title.title for name, session in found.items() if session.title is not None}
    assert beside[f"{MAIN}/agent-a77b01"] == "Check the datum"
    assert beside[f"{MAIN}/agent-5d2e9c"] == "List ports without a table"
    assert beside[FORK] == "And low water?"


def test_links_of_the_worked_log(tmp_path: Path) -> None:
    events = sessions(tmp_path)[MAIN].events
    assert [events[at].source_event_seqs for at in (8, 9)] == [[6], [7]], "parallel results find their calls"
    assert events[15].surface_op == {"op": "replace", "start": 13, "end": 13}, "a rewind"
    assert events[28].surface_op == {"op": "replace", "start": 3, "end": 19}, "a compaction that keeps two"
    assert events[28].source_event_seqs == [3, 5, 8, 9, 11, 15, 17, 19, 27]
    assert events[29].surface_op == "append", "the prompt behind a compaction is no rewind"
    assert [source_kind(events[at].data) for at in (3, 17, 21, 28, 33)] == [
        "user",
        "plugin",
        "user",
        "compact-checkpoint",
        "plugin",
    ]


def test_text_of_the_worked_log(tmp_path: Path) -> None:
    events = sessions(tmp_path)[MAIN].events
    texts = {event.seq: event_text(event) for event in events}
    assert texts[2] == "Harbour datum is chart zero."
    assert texts[5] == "I will look in the tables.", "thinking is no text"
    assert texts[14] == "API Error: 529 overloaded"
    assert texts[26] == "Written into the wrong file"
    assert not texts[16], "a repeated line is found once"
    assert not texts[20], "a queued prompt is found where it reached the model"
    first = member(member(events[5].data, "message"), "content")
    assert first == [
        {"type": "reasoning", "text": "Two ports could be meant."},
        {"type": "text", "text": "I will look in the tables."},
    ]


def test_records_before_the_first_time_take_it(tmp_path: Path) -> None:
    events = sessions(tmp_path)[MAIN].events
    assert {event.time for event in events[:3]} == {events[2].time}


def test_what_is_no_transcript_is_skipped_with_a_reason(tmp_path: Path) -> None:
    for name in (
        "s/subagents/workflows/w/journal.jsonl",
        "history.jsonl",
        "s/tool-results/big.jsonl",
        "a.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    found = list(READER.units(tmp_path))
    assert sorted(item.path.name for item in found if isinstance(item, SkippedPath)) == [
        "history.jsonl",
        "journal.jsonl",
    ]
    assert not [item for item in found if isinstance(item, LogUnit)]
    assert len([item for item in READER.units(tmp_path / "a.json") if isinstance(item, LogUnit)]) == 1


def test_usual_places_follow_the_environment(tmp_path: Path) -> None:
    assert READER.usual_places({}, tmp_path, "linux")[0] == tmp_path / ".claude" / "projects"
    named = {"CLAUDE_CONFIG_DIR": str(tmp_path / "x")}
    assert READER.usual_places(named, tmp_path, "darwin") == [tmp_path / "x" / "projects"]
