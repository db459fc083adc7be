"""The ACP reader: a capture of two sessions, growing runs of chunks, calls, replays, what lies beside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.text import event_text
from session_query.storage.readers.acp import AcpReader
from session_query.storage.readers.collect import Collected, CollectedSession
from session_query.storage.readers.seam import SkippedPath
from support.reader_conformance import check_reader, check_session, read_unit, shape, units_of
from support.worked_readme import data_files, worked_lists

READER = AcpReader()


def update(kind: str, second: int = 1, **fields: JSON) -> dict[str, JSON]:
    told: JSON = {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}
    return {"timestamp": 1777881600 + second, "method": "session/update", "params": told}


def chunk(who: str, text: str, second: int = 1) -> dict[str, JSON]:
    return update(f"{who}_message_chunk", second, content={"type": "text", "text": text})


def request(key: int, method: str, **params: JSON) -> dict[str, JSON]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def answer(key: int, **result: JSON) -> dict[str, JSON]:
    return {"jsonrpc": "2.0", "id": key, "result": result}


def write(path: Path, *rows: dict[str, JSON]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path, into: Collected | None = None) -> Collected:
    return read_unit(READER, units_of(READER, path)[0], into)


def only(path: Path) -> CollectedSession:
    (session,) = read(path).sessions.values()
    check_session(session)
    return session


def texts(session: CollectedSession) -> list[str]:
    return [text for text in map(event_text, session.events) if text]


def test_worked_capture_passes_every_check(tmp_path: Path) -> None:
    check_reader(READER, data_files("acp"), worked_lists("acp"), tmp_path)


def test_worked_capture_has_the_words_its_table_promises(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(data_files("acp")["capture.jsonl"])
    sessions = read(path).sessions
    assert texts(sessions["other"]) == [
        "Name the tides.",
        "Ebb and flow.",
        "error\nthe lighthouse is overloaded",
    ]
    assert sessions["other"].header.cwd == "/home/mira/other"
    lamp = sessions["lamp"]
    assert [text for text in texts(lamp) if "dimmer" in text][1:3] == [
        "I will look at the dimmer.",
        "Read dimmer.py",
    ]
    assert lamp.title is None, "the log holds a title event"
    assert sessions["other"].title is not None
    assert sessions["other"].title.title == "Name the tides."
    assert sum("harbour" in text for text in texts(lamp)) == 1, "a replay is not counted twice"
    assert not any("surely" in text for text in texts(lamp)), "thoughts are no text"


def test_an_open_answer_is_found_and_grows_with_its_seq(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", chunk("user", "ask"), chunk("agent", "the light"))
    known = read(path)
    assert texts(known.sessions["s"]) == ["ask", "the light"]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(chunk("agent", "house", 2)) + "\n" + json.dumps(chunk("agent", "!", 3)) + "\n")
    known = read(path, known)
    session = known.sessions["s"]
    check_session(session)
    assert texts(session) == ["ask", "the lighthouse!"]
    assert shape(session)[1:] == [
        (1, "assistant/message"),
        (2, "acp/agent_message_chunk"),
        (3, "acp/agent_message_chunk"),
    ]


def test_a_run_goes_on_over_what_is_no_speech_and_ends_at_a_call(tmp_path: Path) -> None:
    rows = [
        chunk("agent", "one "),
        update("usage_update", used=1),
        chunk("agent", "two"),
        update("tool_call", toolCallId="c", title="ls"),
        chunk("agent", "three"),
    ]
    assert texts(only(write(tmp_path / "a.jsonl", *rows))) == ["one two", "ls", "three"]


def test_a_run_above_its_bound_goes_on_as_another_message(tmp_path: Path) -> None:
    rows = [chunk("agent", "x" * 40_000), chunk("agent", "y" * 40_000), chunk("agent", "z")]
    session = only(write(tmp_path / "a.jsonl", *rows))
    assert [len(text) for text in texts(session)] == [80_000, 1]


def test_a_record_nested_deeply_survives_inside_an_open_run(tmp_path: Path) -> None:
    deep = '{"timestamp":1,"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    deep += (
        '"agent_message_chunk","content":{"type":"text","text":"deep"},"_meta":'
        + "[" * 3000
        + "]" * 3000
        + "}}}"
    )
    path = tmp_path / "a.jsonl"
    path.write_text(deep + "\n", encoding="utf-8")
    known = read(path)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(chunk("agent", " sea", 2)) + "\n")
    assert texts(read(path, known).sessions["s"]) == ["deep sea"]


def test_an_echoed_prompt_is_told_once(tmp_path: Path) -> None:
    prompt: JSON = [{"type": "text", "text": "ask this"}]
    rows = [
        request(1, "session/prompt", sessionId="s", prompt=prompt),
        chunk("user", "ask "),
        chunk("user", "this"),
    ]
    assert texts(only(write(tmp_path / "a.jsonl", *rows, chunk("agent", "yes")))) == ["ask this", "yes"]


def test_a_call_told_by_updates_alone_has_a_call_and_a_result(tmp_path: Path) -> None:
    diff: JSON = [{"type": "diff", "path": "/a.py", "oldText": "old", "newText": "new line"}]
    rows = [
        update(
            "tool_call_update", toolCallId="c", title="Edit", rawInput={"p": 1}, status="failed", content=diff
        )
    ]
    session = only(write(tmp_path / "a.jsonl", *rows))
    assert texts(session) == ['Edit\n{"p":1}', "/a.py\nnew line"]
    assert session.events[1].source_event_seqs == [0]


@pytest.mark.parametrize(
    ("stop", "kind"),
    [
        ("end_turn", "completed"),
        ("cancelled", "aborted"),
        ("max_tokens", "max-tokens"),
        ("refusal", "blocked"),
    ],
)
def test_a_turn_ends_by_its_reason(tmp_path: Path, stop: str, kind: str) -> None:
    rows = [request(1, "session/prompt", sessionId="s", prompt=[]), answer(1, stopReason=stop)]
    data = only(write(tmp_path / "a.jsonl", *rows)).events[-1].data
    assert isinstance(data, dict)
    assert data["reason"]["kind"] == kind  # type: ignore[index,call-overload]


def test_wrapped_frames_and_vendor_updates_are_understood(tmp_path: Path) -> None:
    inner = chunk("agent", "wrapped")
    outer: dict[str, JSON] = {"direction": "in", "time": "2026-05-04T08:00:00Z", "message": inner}
    vendor = chunk("agent", " vendor") | {"method": "_x.ai/session/update"}
    session = only(write(tmp_path / "a.jsonl", outer, vendor))
    assert texts(session) == ["wrapped vendor"]
    assert session.header.created_at == 1777881600000


def test_grok_keeps_its_facts_beside_the_updates(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "home%2Fmira" / "lamp-1"
    row = chunk("user", "ask")
    row["params"] = {"update": row["params"]["update"]}  # type: ignore[index,call-overload]
    path = write(folder / "updates.jsonl", row)
    facts = {
        "info": {"id": "lamp-1", "cwd": "/home/mira"},
        "generated_title": "Lamp",
        "created_at": "2026-05-04T07:00:00Z",
    }
    (folder / "summary.json").write_text(json.dumps(facts), encoding="utf-8")
    write(folder / "chat_history.jsonl", {"role": "user"})
    units = list(READER.units(tmp_path))
    assert [isinstance(unit, SkippedPath) for unit in units] == [True, False]
    (session,) = read_unit(READER, units[1]).sessions.values()  # type: ignore[arg-type]
    assert (session.header.id, session.header.cwd, session.header.created_at) == (
        "lamp-1",
        "/home/mira",
        1777878000000,
    )
    assert session.title is not None
    assert session.title.title == "Lamp"
    (folder / "summary.json").write_text("{half", encoding="utf-8")
    assert only(path).header.id == "lamp-1"


def test_a_capture_without_any_time_takes_that_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", answer(1, sessionId="s"), answer(2, stopReason="end_turn"))
    stamp = path.stat().st_mtime_ns // 1_000_000
    session = only(path)
    assert session.header.created_at == stamp
    assert {event.time for event in session.events} == {stamp}


def test_frames_before_any_session_are_kept_by_the_first(tmp_path: Path) -> None:
    rows = [
        request(0, "initialize"),
        answer(0, protocolVersion=1),
        request(1, "session/new", cwd="/home/mira"),
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    known = read(path)
    assert known.sessions == {}
    assert (known.records, known.held) == (3, 3)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(answer(1, sessionId="s")) + "\n")
    session = read(path, known).sessions["s"]
    assert session.header.cwd == "/home/mira"
    assert [kind for _, kind in shape(session)] == [
        "acp/initialize",
        "acp/response",
        "acp/session/new",
        "acp/session/new/response",
    ]
