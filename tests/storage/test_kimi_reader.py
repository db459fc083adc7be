"""The Kimi reader: Kimi Code's agents, Kimi CLI's wire and context, what lies beside."""

from __future__ import annotations

import json
from hashlib import md5
from pathlib import Path

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.kimi import KimiReader
from session_query.storage.readers.seam import SkippedPath
from support.reader_conformance import check_reader, check_session, read_root, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = KimiReader()
MAIN = "wd_lantern_0123456789ab/session_lamp01/agents/main/wire.jsonl"


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


def old(kind: str, **payload: JSON) -> dict[str, JSON]:
    return {"timestamp": 1777881601.5, "message": {"type": kind, "payload": payload}}


def test_worked_session_passes_every_check(tmp_path: Path) -> None:
    check_reader(READER, data_files("kimi"), worked_lists("kimi"), tmp_path, log=MAIN)


def test_agents_of_a_session_are_its_sub_agents(tmp_path: Path) -> None:
    for name, raw in data_files("kimi").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(raw)
    sessions = read_root(READER, tmp_path)
    main, agent = sessions["session_lamp01"], sessions["session_lamp01/agent-0"]
    assert main.title is not None
    assert (main.title.title, main.header.cwd) == ("Harbour lamp", "/home/mira/lantern")
    assert (agent.header.parent_session, agent.header.origin) == ("session_lamp01", "subagent")
    assert main.events[17].surface_op == {"op": "replace", "start": 3, "end": 12}
    kinds = [event.data["source"]["kind"] for event in main.events if event.type == "user/message"]  # type: ignore[index,call-overload]
    assert kinds == ["user", "injection", "compact-checkpoint", "user"]
    assert not any("surely" in event_text(event) for event in main.events), "thinking is no text"


def test_the_wire_of_kimi_cli_has_turns_calls_and_answers(tmp_path: Path) -> None:
    digest = md5(b"/home/mira/lantern", usedforsecurity=False).hexdigest()
    folder = tmp_path / ".kimi" / "sessions" / digest / "lamp-2"
    function: JSON = {"name": "Shell", "arguments": '{"command":"ls"}'}
    write(
        folder / "wire.jsonl",
        {"type": "metadata", "protocol_version": "1.1"},
        old("TurnBegin", user_input="ask"),
        old("StepBegin", n=1),
        old("ContentPart", type="think", think="hush"),
        old("ContentPart", type="text", text="answer"),
        old("ToolCall", type="function", id="c", function=function),
        old(
            "ToolResult",
            tool_call_id="c",
            return_value={"is_error": True, "output": "nothing", "message": "exit 1"},
        ),
        old("StatusUpdate", context_usage=0.1),
        old("TurnEnd"),
    )
    write(folder / "context.jsonl", {"role": "user", "content": "ask"})
    registry = {"work_dirs": [{"path": "/home/mira/lantern"}]}
    (tmp_path / ".kimi" / "kimi.json").write_text(json.dumps(registry), encoding="utf-8")
    assert [isinstance(unit, SkippedPath) for unit in READER.units(tmp_path)] == [True, False]
    session = only(tmp_path)
    assert (session.header.id, session.header.cwd) == ("lamp-2", "/home/mira/lantern")
    assert [kind for _, kind in shape(session)] == [
        "kimi/metadata",
        "turn/start",
        "user/message",
        "step/start",
        "kimi/ContentPart",
        "assistant/message",
        "tool/call",
        "tool/result",
        "kimi/StatusUpdate",
        "turn/end",
    ]
    assert event_text(session.events[7]) == "nothing\nexit 1"
    assert session.events[7].source_event_seqs == [6]


def test_a_context_alone_is_read_as_messages(tmp_path: Path) -> None:
    call: JSON = {"id": "c", "type": "function", "function": {"name": "Shell", "arguments": "{}"}}
    path = write(
        tmp_path / "hash" / "lamp-3" / "context.jsonl",
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": "ask"},
        {
            "role": "assistant",
            "content": [{"type": "think", "think": "hush"}, {"type": "text", "text": "yes"}],
            "tool_calls": [call],
        },
        {"role": "tool", "content": "done", "tool_call_id": "c"},
        {"role": "_usage", "token_count": 3},
    )
    session = only(path)
    assert session.header.id == "lamp-3"
    assert [text for text in map(event_text, session.events) if text] == ["ask", "yes", "Shell\n{}", "done"]


def test_a_summary_that_is_not_told_to_the_model_is_kept_beside_it(tmp_path: Path) -> None:
    rows: list[dict[str, JSON]] = [
        {
            "type": "context.append_message",
            "message": {"role": "user", "content": "ask"},
            "time": 1777881601000,
        },
        {
            "type": "context.apply_compaction",
            "summary": "written",
            "contextSummary": "told",
            "time": 1777881602000,
        },
    ]
    assert event_text(only(write(tmp_path / "a.jsonl", *rows)).events[-1]) == "told\nwritten"
