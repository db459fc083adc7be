"""The command line over the sample sessions: what each command prints, and how each mistake ends."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
from pathlib import Path
from typing import cast

import pytest

from support.command_line import SAMPLE_SOURCES, SAMPLES, CommandLine

Row = dict[str, object]
CHECKOUT = "5b6c1f0e-3a52-4c0a-9d53-0c9a4e1f7a01"
FORK = "0199a1d8-02aa-7e41-9b55-c0ffee5e5504"
ORIGIN = "0199a1c2-7b1d-7c30-8a11-5d2f9e3b4c03"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def cli(indexed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    line = CommandLine(indexed, capsys, monkeypatch)
    if not (indexed / "index.db").exists():
        assert line("index", *SAMPLE_SOURCES).status == 0
    return line


def _rows(value: object, key: str) -> list[Row]:
    return cast("list[Row]", cast(Row, value)[key])


def test_index_counts_per_source_and_reads_nothing_twice(cli: CommandLine) -> None:
    again = _rows(cli("index", "--json").json, "sources")
    assert [(row["format"], row["sessions"], row["lost_records"]) for row in again] == [
        ("claude-code", 3, 0),
        ("codex", 2, 0),
        ("dsh", 2, 0),
    ]
    assert all(row["events"] and row["bytes"] for row in again)
    assert [row["logs_read"] for row in again] == [0, 0, 0]


def test_search_prints_hits_with_every_promised_key(cli: CommandLine) -> None:
    answer = cli("search", "--all", "--json", "why", "does", "checkout", "time", "out").json
    (first, *_) = _rows(answer, "hits")
    assert first["session_id"] == CHECKOUT
    assert {
        "session_id",
        "source",
        "path",
        "title",
        "workspace",
        "created_at",
        "parent_session",
        "live",
        "persisted",
        "tier",
        "best_match",
    } <= first.keys()
    assert cast(Row, first["best_match"]).keys() == {"seq", "type", "surface", "time", "snippet"}
    assert cast(Row, answer)["capped"] is False
    assert cast(Row, cast(Row, answer)["receipt"])["sessions_in_reach"] == 7


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("时区", "session-tianqi-0001"),
        ("臺北", "session-tianqi-0002"),
        ("ERR_POOL_EXHAUSTED", CHECKOUT),
        ("compute_total", CHECKOUT),
        ("LexError::UnterminatedString", ORIGIN),
        ("byte index 9 is out of bounds", ORIGIN),
        ("three diagnostics instead of one", FORK),
        ("OVERLOADED", "session-tianqi-0002"),
        ("provider returned HTTP 529", "session-tianqi-0002"),
    ],
)
def test_the_right_session_comes_first(cli: CommandLine, query: str, expected: str) -> None:
    hits = _rows(cli("search", "--all", "--json", "--match", "exact", query).json, "hits")
    assert hits[0]["session_id"] == expected


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        (["--since", "2026-09-28T00:00Z"], True),
        (["--since", "2026-09-29T00:00Z"], False),
        (["--until", "2026-09-29T00:00Z"], True),
        (["--until", "2026-09-28T00:00Z"], False),
        (["--since", "2026-09-28T00:00Z", "--until", "2026-09-29T00:00Z"], True),
    ],
)
def test_one_bound_of_the_creation_time_is_enough(cli: CommandLine, bounds: list[str], found: bool) -> None:
    done = cli("search", "--all", "--json", *bounds, "时区")
    assert done.status == 0, done.err
    assert [hit["session_id"] == "session-tianqi-0001" for hit in _rows(done.json, "hits")] == [True] * found


def test_a_fork_shows_what_it_inherited_at_its_origin_only(cli: CommandLine) -> None:
    hits = _rows(cli("search", "--all", "--json", "unterminated string literal").json, "hits")
    assert [hit["session_id"] for hit in hits if hit["tier"] == "exact"] == [ORIGIN]


def test_a_sub_agent_stands_under_its_session(cli: CommandLine) -> None:
    hits = _rows(cli("search", "--all", "--json", "mock.patch").json, "hits")
    assert hits[0]["session_id"] == CHECKOUT
    assert len(_rows(hits[0], "sub_agents")) == 1


def test_search_looks_in_the_nearest_workspace_above(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/lin/tianqi/src/deep"))
    done = cli("search", "时区")
    assert done.status == 0
    assert "workspace: /home/lin/tianqi" in done.err
    assert "session-tianqi-0001" in done.out
    assert "No match." in cli("search", "compute_total").out


def test_no_workspace_above_says_what_to_do(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/nowhere/at/all"))
    done = cli("search", "x")
    assert done.status == 3
    assert "--all" in done.err


def test_an_empty_answer_says_where_it_looked(cli: CommandLine) -> None:
    done = cli("search", "--all", "--match", "exact", "no such words anywhere")
    assert done.status == 0
    assert "No match." in done.out
    assert "Looked in 7 sessions" in done.out


def test_sessions_are_listed_newest_first(cli: CommandLine) -> None:
    sessions = _rows(cli("sessions", "--all", "--json").json, "sessions")
    times = [cast(int, row["created_at"]) for row in sessions]
    assert times == sorted(times, reverse=True)
    assert {row["title"] for row in sessions} >= {"Checkout timeout on large carts", "天气预报缓存的时区错误"}


def test_trace_shows_origin_and_sub_agents(cli: CommandLine) -> None:
    fork = cast(Row, cli("trace", "--json", FORK).json)
    assert [row["session_id"] for row in _rows(fork, "ancestors")] == [ORIGIN]
    assert fork["complete"] is True
    checkout = cast(Row, cli("trace", "--json", CHECKOUT).json)
    assert [row["origin"] for row in _rows(checkout, "descendants")] == ["subagent"]
    assert "Lexer error recovery" in cli("trace", FORK).out


def test_events_read_and_event_trace_agree(cli: CommandLine) -> None:
    events = cast("list[Row]", cli("events", "--json", "session-tianqi-0001").json)
    assert [row["seq"] for row in events] == list(range(len(events)))
    hits = _rows(cli("events", "--json", "session-tianqi-0001", "UTC").json, "hits")
    seq = str(hits[0]["seq"])
    window = cast(Row, cli("read", "--json", "session-tianqi-0001", seq, "--before", "1").json)
    assert cast(Row, window["target"])["seq"] == int(seq)
    assert len(_rows(window, "events")) == 2
    result = next(row for row in events if row["type"] == "tool/result")
    trace = cast(Row, cli("event-trace", "--json", "session-tianqi-0001", str(result["seq"])).json)
    assert trace["source_event_seqs"] == [cast(int, result["seq"]) - 1]


def test_a_compaction_shadows_what_it_replaced(cli: CommandLine) -> None:
    events = cast("list[Row]", cli("events", "--json", CHECKOUT).json)
    assert "shadowed" in {row["surface"] for row in events}


def test_tools_and_schema_describe_the_product(cli: CommandLine) -> None:
    tools = _rows(cli("tools", "--json").json, "tools")
    assert [tool["name"] for tool in tools] == [
        "session_search",
        "session_event_search",
        "session_trace",
        "session_event_trace",
        "session_event_read",
    ]
    assert "session_search" in cli("tools").out
    assert json.loads(cli("schema").out)


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["index", "--source", "nonsense=/tmp"], 2, "unknown format 'nonsense'"),
        (["index", "--source", "claude-code"], 2, "FORMAT=PATH"),
        (["index", "--source", "claude-code=/no/such/folder"], 2, "no such file or folder"),
        (["search", "--all", " "], 3, "SESSION_QUERY_INVALID_QUERY"),
        (["search", "--all", "--match", "fuzzy", "x"], 2, "fuzzy"),
        (["search"], 2, "Missing argument"),
        (["trace", "nobody"], 3, "SESSION_QUERY_SESSION_NOT_FOUND"),
        (["read", CHECKOUT, "9999"], 3, "SESSION_QUERY_EVENT_NOT_FOUND"),
        (["read", CHECKOUT, "--", "-1"], 3, "SESSION_QUERY_EVENT_NOT_FOUND"),
        (["read", CHECKOUT, "0", "--before", "51"], 3, "SESSION_QUERY_INVALID_WINDOW"),
        (["read", CHECKOUT, "zero"], 2, "not a valid integer"),
        (["search", "--all", "--since", "yesterday", "x"], 2, "looks like 2031"),
        (["fly"], 2, "No such command"),
        (["token", "create", "x", "--role", "reader"], 2, "--workspace"),
        (["token", "revoke", "nobody"], 3, "no such token"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_each_mistake_is_told_with_its_code_and_status(
    cli: CommandLine, arguments: list[str], status: int, says: str
) -> None:
    done = cli(*arguments)
    assert (done.status, says in done.err) == (status, True), done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_sources_tells_of_a_folder_that_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES / "dsh", logs)
    line = CommandLine(tmp_path / "data", capsys, monkeypatch)
    assert line("index", "--source", f"dsh={logs}").status == 0
    assert "missing" not in line("sources").out
    logs.rename(tmp_path / "elsewhere")
    assert f"missing {logs}: is not there now" in line("sources").out.replace("\n", " ")
    assert "session-tianqi-0001" in line("search", "--all", "时区").out


def test_a_port_that_is_taken_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CommandLine(tmp_path, capsys, monkeypatch)("serve", "--port", str(port))
    assert (done.status, done.out) == (4, "")
    assert f"cannot listen on 127.0.0.1 port {port}: it is in use" in done.err
    assert "Traceback" not in done.err


def test_a_mistake_is_json_when_json_is_asked_for(cli: CommandLine) -> None:
    done = cli("trace", "--json", "nobody")
    assert json.loads(done.err)["error"]["code"] == "SESSION_QUERY_SESSION_NOT_FOUND"


def test_a_foreign_database_as_index_is_refused_and_untouched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "index.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE precious(x)")
    connection.close()
    before = foreign.read_bytes()
    done = CommandLine(tmp_path, capsys, monkeypatch)("index", *SAMPLE_SOURCES)
    assert (done.status, "SESSION_QUERY_INDEX_FAILED" in done.err) == (4, True)
    assert foreign.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_source_is_told(cli: CommandLine, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o000)
    done = cli("index", "--source", f"claude-code={secret}")
    assert (done.status, "permission denied" in done.err) == (2, True)


def test_terminal_escapes_in_logs_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs" / "-x"
    folder.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "u",
        "parentUuid": None,
        "sessionId": "e1",
        "timestamp": "2026-01-01T00:00:00Z",
        "cwd": "/x",
        "message": {"role": "user", "content": "danger \x1b[2J\x1b]0;owned\x07 zone \u202egnp.exe"},
    }
    (folder / "e1.jsonl").write_text(json.dumps(record) + "\n")
    cli = CommandLine(tmp_path / "data", capsys, monkeypatch)
    done = cli("search", "--all", "danger", "--source", f"claude-code={tmp_path / 'logs'}")
    assert "danger" in done.out
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out)


def test_samples_hold_what_they_promise() -> None:
    assert sorted(path.name for path in SAMPLES.iterdir()) == ["claude-code", "codex", "dsh"]
