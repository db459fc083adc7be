"""dsh logs: the worked file, every version's shapes, seqs, links, seeds (SPEC 1.8, 16.7.1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_query.protocol.json_value import JSON
from session_query.protocol.surface import fold
from session_query.storage.readers.dsh import READER
from support.dsh_logs import at, events, log, read, result, session_of, user
from support.reader_conformance import check_reader
from support.worked import worked_log

WORKED, EXPECTED = worked_log("dsh")


@pytest.mark.parametrize("name", ["--home-ida-harbour--/harbour-7/session.jsonl", "loose/any name.jsonl"])
def test_worked_log_conforms(tmp_path: Path, name: str) -> None:
    check_reader(READER, {name: WORKED}, {"harbour-7": EXPECTED}, tmp_path, native=False)


def test_worked_log_says_what_its_readme_says(tmp_path: Path) -> None:
    session = session_of(read(tmp_path, WORKED))
    header = session.header
    assert (header.id, header.cwd, header.created_at) == ("harbour-7", "/home/ida/harbour", 1790000000000)
    assert (header.parent_session, header.seed_length, session.inherited) == ("harbour-6", 2, 2)
    assert session.notes == []
    data = {event.seq: event.data for event in session.events}
    assert data[2] == {
        "content": [{"type": "text", "text": "When does the ferry leave?"}],
        "source": {"kind": "user"},
        "id": "legacy-message:harbour-7:2",
        "role": "user",
        "native": json.loads(WORKED.splitlines()[3]),
    }
    assert [event.time for event in session.events[4:7]] == [1790000000400, 1790000000405, 1790000000404]
    assert data[5] == {
        "turn": 1,
        "step": 1,
        "chunk": {"type": "reasoning-delta", "index": 0, "text": "time"},
    }
    assert session.events[7].source_event_seqs == [4, 5, 6]
    assert session.events[10].surface_op == {"op": "replace", "start": 9, "end": 9}
    assert fold(session.events).nodes == (2, 7, 10)
    assert isinstance(data[0], dict)
    assert isinstance(data[14], dict)
    assert "trigger" not in data[0]
    assert data[14]["reason"] == {"kind": "aborted", "reason": {"kind": "disposed"}}


def test_current_records_pass_through_unchanged(tmp_path: Path) -> None:
    records = [
        at(0, "turn/start", {"turn": 1}),
        user(1, "hello"),
        at(2, "tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "n", "arguments": "{"}),
        result(3, "x", sourceEventSeqs=[2]),
        at(4, "turn/end", {"turn": 1, "reason": {"kind": "aborted", "reason": {"kind": "user"}}}),
    ]
    for event, record in zip(events(tmp_path, *records), records, strict=True):
        assert (event.type, event.time, event.data) == (record["type"], record["time"], record["data"])


def test_tool_role_results_of_format_4_are_wrapped_and_can_be_pruned(tmp_path: Path) -> None:
    def tool(seq: int, text: str, op: JSON, sources: JSON) -> dict[str, JSON]:
        message: JSON = {
            "id": "m",
            "role": "tool",
            "toolCallId": "c",
            "content": [{"type": "text", "text": text}],
            "isError": True,
        }
        return at(
            seq,
            "tool/result",
            {"turn": 1, "step": 1, "message": message},
            surfaceOp=op,
            sourceEventSeqs=sources,
        )

    found = events(
        tmp_path,
        at(0, "tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "n", "arguments": ""}),
        tool(1, "long", "append", [0]),
        tool(2, "short", {"op": "replace", "startSeq": 1, "endSeq": 1}, [1]),
        version=4,
    )
    assert found[1].data == {
        "turn": 1,
        "step": 1,
        "message": {
            "id": "m",
            "role": "user",
            "source": {"kind": "tool", "callId": "c"},
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c",
                    "content": [{"type": "text", "text": "long"}],
                    "isError": True,
                }
            ],
        },
    }
    assert fold(found).nodes == (2,)


@pytest.mark.parametrize(
    ("kind", "source"), [("system/message", "system"), ("developer/message", "developer")]
)
def test_system_and_developer_messages_become_user_messages(tmp_path: Path, kind: str, source: str) -> None:
    record = at(
        0, kind, {"id": "m", "role": source, "content": [], "source": {"kind": "x"}}, surfaceOp="append"
    )
    (event,) = events(tmp_path, record, version=4)
    assert event.type == "user/message"
    assert event.data == {
        "id": "m",
        "role": "user",
        "content": [],
        "source": {"kind": source},
        "native": record,
    }


def test_streams_stay_in_their_message_and_shift_nothing(tmp_path: Path) -> None:
    stream: JSON = [{"type": "chunk", "time": 1, "chunk": {"type": "text-delta", "text": "x"}}]
    message: JSON = {"id": "a", "role": "assistant", "content": [], "source": {"kind": "model"}}
    found = events(
        tmp_path,
        at(0, "assistant/attempt", {"turn": 1, "step": 1, "stream": stream}),
        at(
            1,
            "assistant/message",
            {"turn": 1, "step": 1, "message": message, "stream": stream},
            surfaceOp="append",
        ),
        version=2,
    )
    assert [event.seq for event in found] == [0, 1]
    assert isinstance(found[1].data, dict)
    assert found[1].data["stream"] == stream


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ({"kind": "aborted"}, {"kind": "aborted", "reason": {"kind": "legacy"}}),
        ({"kind": "disposed"}, {"kind": "aborted", "reason": {"kind": "disposed"}}),
        ({"kind": "error", "message": "m"}, {"kind": "error", "error": {"message": "m", "code": "UNKNOWN"}}),
        (
            {"kind": "error", "message": "m", "code": "C"},
            {"kind": "error", "error": {"message": "m", "code": "C"}},
        ),
        ({"kind": "completed"}, {"kind": "completed"}),
        (
            {"kind": "error", "error": {"message": "m", "code": "C"}},
            {"kind": "error", "error": {"message": "m", "code": "C"}},
        ),
    ],
)
def test_older_turn_ends(tmp_path: Path, reason: JSON, expected: JSON) -> None:
    (event,) = events(tmp_path, at(0, "turn/end", {"turn": 1, "reason": reason}))
    assert isinstance(event.data, dict)
    assert event.data["reason"] == expected


def test_a_flat_result_replacing_another_inherits_its_identity(tmp_path: Path) -> None:
    def flat(seq: int, text: str, op: JSON, sources: JSON) -> dict[str, JSON]:
        data: JSON = {"turn": 1, "step": 1, "callId": "c", "content": [{"type": "text", "text": text}]}
        return at(seq, "tool/result", data, surfaceOp=op, sourceEventSeqs=sources)

    found = events(
        tmp_path,
        at(0, "tool/call", {"callId": "c", "name": "n", "arguments": ""}),
        flat(1, "long", "append", [0]),
        flat(2, "mid", {"op": "replace", "start": 1, "end": 1}, [1]),
        flat(3, "short", {"op": "replace", "start": 2, "end": 2}, [2]),
    )
    assert fold(found).nodes == (3,)


def test_a_result_that_names_no_call_gets_the_one_it_cites(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        at(0, "tool/call", {"callId": "c-9", "name": "n", "arguments": ""}),
        at(1, "tool/result", {"turn": 1, "step": 1, "message": {}}, surfaceOp="append", sourceEventSeqs=[0]),
    )
    assert isinstance(found[1].data, dict)
    message = found[1].data["message"]
    assert isinstance(message, dict)
    assert message["source"] == {"kind": "tool", "callId": "c-9"}
    assert message["content"] == [{"type": "tool-result", "content": [], "toolCallId": "c-9"}]


def test_missing_seqs_and_times_are_filled_in(tmp_path: Path) -> None:
    row: dict[str, JSON] = {
        "type": "tool-call-chunks",
        "data": {
            "turn": 1,
            "step": 1,
            "index": 0,
            "id": "c",
            "name": "n",
            "dt": [1, 2],
            "args": ["a", "b", "c"],
        },
    }
    tail = user(0, "x", sourceEventSeqs=[1, 3])
    del tail["seq"], tail["time"]
    found = events(tmp_path, {"type": "turn/start", "data": {"turn": 1}}, row, tail)
    assert [event.time for event in found] == [1000, 1000, 1001, 1003, 1003]
    assert found[4].source_event_seqs == [1, 3]
    assert found[1].data == {
        "turn": 1,
        "step": 1,
        "chunk": {"type": "tool-call-delta", "index": 0, "id": "c", "name": "n", "argumentsDelta": "a"},
    }


def test_written_seqs_with_gaps_are_resolved_to_places(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        user(10, "a"),
        user(12, "b"),
        user(20, "c", surfaceOp={"op": "replace", "start": 10, "end": 12}, sourceEventSeqs=[[10, 12]]),
        at(30, "session/title", {"title": "t", "messageSeqs": [10, 20], "source": {"kind": "user"}}),
    )
    assert found[2].source_event_seqs == [0, 1]
    assert fold(found).nodes == (2,)
    assert isinstance(found[3].data, dict)
    assert found[3].data["messageSeqs"] == [0, 2]
    assert isinstance(found[0].data, dict)
    assert isinstance(found[0].data["native"], dict)
    assert found[0].data["native"]["seq"] == 10


def test_a_seq_that_falls_back_means_the_later_event(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        user(0, "a"),
        user(1, "b"),
        at(2, "session/end-seed", {}),
        user(1, "c"),
        user(2, "d", sourceEventSeqs=[1]),
    )
    assert [event.seq for event in found] == [0, 1, 2, 3, 4]
    assert found[4].source_event_seqs == [3]


def test_links_that_cannot_be_valid_are_left_out_with_a_note(tmp_path: Path) -> None:
    session = session_of(
        read(
            tmp_path,
            log(
                user(0, "a"),
                user(1, "b", surfaceOp={"op": "replace", "start": 0, "end": 0}, sourceEventSeqs=[]),
                user(2, "c", surfaceOp={"op": "replace", "start": 7, "end": 9}, sourceEventSeqs=[7]),
                user(3, "d", sourceEventSeqs=[3, 99, "x", 0, 0]),
                at(4, "turn/start", {"turn": 1}, surfaceOp="append", sourceEventSeqs=[0]),
                user(5, "e", surfaceOp=7),
                user(6, "f", sourceEventSeqs="all"),
            ),
        )
    )
    assert len(session.notes) == 5
    assert fold(session.events).nodes == (0, 1, 2, 3, 5, 6)
    assert session.events[3].source_event_seqs == [0]


def test_a_replacement_whose_ends_are_lost_takes_what_its_sources_name(tmp_path: Path) -> None:
    parts = log(
        user(0, "a"),
        user(1, "b"),
        user(2, "c"),
        user(3, "s", surfaceOp={"op": "replace", "start": 0, "end": 2}, sourceEventSeqs=[0, 1, 2]),
    ).splitlines(keepends=True)
    parts[1] = b'{"type":"user/mess\n'
    collected = read(tmp_path, b"".join(parts))
    assert fold(session_of(collected).events).nodes == (2,)
    assert len(collected.losses) == 1


def test_links_behind_a_lost_record_of_a_log_without_seqs_are_left_out(tmp_path: Path) -> None:
    records = [user(0, "a"), user(1, "b"), user(2, "c", sourceEventSeqs=[1])]
    for record in records:
        del record["seq"]
    parts = log(*records).splitlines(keepends=True)
    whole = session_of(read(tmp_path, b"".join(parts)))
    assert whole.events[2].source_event_seqs == [1]
    parts[1] = b"lost\n"
    damaged = session_of(read(tmp_path, b"".join(parts)))
    assert not isinstance(damaged.events[1].source_event_seqs, list)
    assert len(damaged.notes) == 1


@pytest.mark.parametrize(
    ("version", "header", "marker"),
    [(1, {"seedLength": 2}, {}), (3, {"isSeeded": True}, {"inherited": True})],
)
def test_a_seed_is_inherited(tmp_path: Path, version: int, header: dict[str, JSON], marker: JSON) -> None:
    content = log(
        user(0, "a"),
        user(1, "b"),
        at(2, "session/end-seed", marker),
        user(3, "own"),
        at(4, "session/end-seed", {}),
        version=version,
        parentSession="p",
        **header,
    )
    session = session_of(read(tmp_path, content))
    assert session.inherited == 2
    assert session.header.seed_length == 2
    assert session.header.version == 0
