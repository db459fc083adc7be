"""Ids, workspaces and words that try to be paths, statements, escapes or lines of ours (SPEC 18.4).

Each odd id is attached to a real service, spoken with, searched, traced and read by every tool and method.
None becomes a file, a statement, a second line or a terminal's command; each is a session like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session_query.storage.tokens import TOKEN_FILE, add_token
from support.attack import Attacker, Message, attacker
from support.served import Served, served
from support.sessions import prompt_record

pytestmark = pytest.mark.slow

OWN = "/open/desk"
IDS = {
    "parent folder": "../../../../outside-the-data-directory",
    "absolute path": "/tmp/outside-the-data-directory",
    "windows path": "..\\..\\C:\\outside-the-data-directory:stream",
    "device": "CON",
    "dot": ".",
    "url": "file:///etc/passwd?#",
    "nul": "a\x00b",
    "lines": "a\nsession forged: untitled\r\nb\u2028c\x85d",
    "escape": "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "direction": "\u202etxt.exe\u2066\u200f",
    "sql quote": "'; DROP TABLE session; --",
    "sql double": '" OR 1=1 --',
    "sql like": "%_%",
    "glob": "*?[a-z]",
    "full text": '"NEAR(a b)" AND col:^x*',
    "format": "%s%n{0.__class__}${HOME}$(id)`id`",
    "json": '{"id":"x"}\\u0000\\',
    "key": "__proto__",
    "markdown": "](x) <script>alert(1)</script> ```",
    "lone surrogate": "\ud800",
    "other surrogate": "\udfff\ud83d",
    "outward": "journal:parent",
    "outward place": "journal//open/desk:parent",
    "colons": ":" * 300,
    "spaces": " \t ",
    "long": "long" * 25_000,
    "combining": "a" + "\u0301" * 2000,
    "emoji": "👩\u200d👩\u200d👧𝄞",
}
LINE_BREAKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("injected") / "data") as running:
        yield running


def _event(text: str) -> Message:
    return prompt_record(f"needle {text}", id_=text)


def _call(tool: str, caller: Message, **arguments: Any) -> Message:
    return {"type": "call", "tool": tool, "arguments": arguments, **caller}


def _query(method: str, **params: Any) -> Message:
    return {"type": "query", "method": method, "params": params}


def _seen(text: str) -> str:
    """How an id comes back over the wire (SPEC 0)."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _session(peer: Attacker, session_id: str, workspace: str = OWN) -> None:
    header = {"version": 0, "id": session_id, "createdAt": 1, "cwd": workspace}
    attached = await peer.told({"type": "attach", "session": header})
    assert attached["next_seq"] == 0, attached
    append = {"type": "append", "session_id": session_id, "from_seq": 0, "events": [_event(session_id)]}
    assert (await peer.told(append))["through_seq"] == 0


@pytest.mark.parametrize("name", IDS)
async def test_an_odd_id_is_a_session_like_any_other(service: Served, name: str) -> None:
    session_id = IDS[name]
    async with attacker(service.url, service.token) as peer:
        await _session(peer, session_id)
        for tool, arguments in (
            ("session_trace", {}),
            ("session_event_trace", {"seq": 0}),
            ("session_event_read", {"seq": 0}),
            ("session_event_search", {"query": "needle"}),
        ):
            told = await peer.told(_call(tool, {"agent": session_id}, session_id=session_id, **arguments))
            if tool != "session_event_search":  # its own current step is left out of that
                assert told["type"] == "result", told
                shown = told["text"].split("```")[0] if tool == "session_event_read" else told["text"]
                assert not LINE_BREAKS.search(shown.replace("\n", "")), tool
                assert "session forged" not in told["text"].split("\n")
        for method, params in (
            ("read_event", {"seq": 0}),
            ("trace_event", {"seq": 0}),
            ("read_session", {}),
            ("read_title", {}),
            ("list_events", {}),
            ("trace_session", {}),
            ("search_events", {"query": "needle"}),
        ):
            told = await peer.told(_query(method, session_id=session_id, **params))
            assert told["type"] == "value", (method, told)
        named = await peer.told(_query("filter_sessions", filters=[{"kind": "id", "values": [session_id]}]))
        assert [row["header"]["id"] for row in named["value"]["sessions"]] == [_seen(session_id)]
        search = _call("session_search", {"reach": "all"}, query="needle", session_ids=[session_id])
        found = await peer.told(search)
        assert found["text"].startswith("1 session found"), found
        assert not LINE_BREAKS.search(found["text"].replace("\n", ""))
        assert (await peer.told({"type": "detach", "session_id": session_id}))["type"] == "detached"
        forgotten = await peer.told(_query("forget", session_id=session_id))
        assert forgotten["type"] == "value", forgotten


@pytest.mark.parametrize("name", IDS)
async def test_an_odd_text_anywhere_else_finds_nothing_and_breaks_nothing(service: Served, name: str) -> None:
    text = IDS[name]
    async with attacker(service.url, service.token) as peer:
        for message in _messages_with(text):
            told = await peer.told(message)
            assert told.get("code") != "INTERNAL", message
            assert told["type"] in ("value", "error", "result", "attached"), message
            if told["type"] == "attached":
                await peer.told({"type": "detach", "session_id": told["session_id"]})


def _messages_with(text: str) -> Iterator[Message]:
    """The text in every place that is no id of an existing session."""
    everywhere: Message = {"reach": "all"}
    yield _query("read_title", session_id=text)
    yield _query("search_sessions", query="x", cursor=text)
    yield _query("search_sessions", query=text, match="some")
    for kind, values in (("cwd", [text]), (text, []), ("parent", [text, None])):
        yield _query("filter_sessions", filters=[{"kind": kind, "values": values}])
    yield _query(text)
    yield _query("list_sessions", **{text: 1})
    yield _query("list_sessions") | {"reach": [text]}
    yield _call("session_trace", {"workspace": text})
    yield _call("session_trace", {"agent": text})
    yield _call(text, everywhere)
    yield _call("session_search", everywhere, query=text)
    yield _call("session_search", everywhere, query="x", event_types=[text])
    yield _call("session_search", everywhere, query="x", created_at_from=text)
    yield {"type": "fetch", "locator": text}
    yield {"type": "append", "session_id": text, "from_seq": 0, "events": []}
    yield {"type": "detach", "session_id": text}
    header: Message = {"version": 0, "id": "x", "createdAt": 1}
    yield {"type": "attach", "session": header | {"cwd": text, "parentSession": text}}
    yield {"type": "attach", "session": header | {text: 1}, "events": [{"type": text}]}


@pytest.mark.parametrize("name", [name for name, text in IDS.items() if "\x00" not in text])
async def test_an_odd_workspace_confines_like_any_other(service: Served, name: str) -> None:
    """A workspace is compared letter by letter: neither its parts nor its look-alikes are inside."""
    workspace = "/w/" + IDS[name]
    path = service.token_file.parent / TOKEN_FILE
    if "\ud800" <= IDS[name][-1] <= "\udfff":
        return  # a token file is UTF-8: such a workspace cannot be listed
    token = add_token(path, role="runtime", workspaces=[workspace])[1]
    async with attacker(service.url, token) as inside:
        await _session(inside, "resident", workspace)
        search = {"type": "call", "tool": "session_search", "arguments": {"query": "needle"}}
        assert "1 session found" in (await inside.told(search | {"workspace": workspace}))["text"]
        for other in ("/w", "/w/", workspace + "/", workspace + "x", workspace.upper() + "X", "/w/.."):
            assert (await inside.told(search | {"workspace": other}))["code"] == "FORBIDDEN", other
            header = {"version": 0, "id": "intruder", "createdAt": 1, "cwd": other}
            assert (await inside.told({"type": "attach", "session": header}))["code"] == "FORBIDDEN"


def test_nothing_was_written_but_our_own_files(service: Served) -> None:
    data_dir = service.token_file.parent
    outside = [path.name for path in data_dir.parent.iterdir() if path != data_dir]
    assert outside == [service.log.name]
    assert not Path("/tmp/outside-the-data-directory").exists()
    names = {re.sub("[0-9a-f]{32}.*", "", path.name) for path in data_dir.rglob("*")}
    ours = {"lock", "tokens.json", "operator-token", "journal.db", "index.db", "spill", "", "sources.json"}
    ours |= {f"{name}-{suffix}" for name in ("journal.db", "index.db") for suffix in ("wal", "shm")}
    assert names <= ours | {f"{name}.lock" for name in ("tokens.json", "operator-token")}, names - ours
    text = service.log.read_text(errors="surrogateescape")
    assert not LINE_BREAKS.search(text.replace("\n", ""))
    assert " ERROR " not in text
    assert "Traceback" not in text
