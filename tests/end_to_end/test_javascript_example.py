"""The JavaScript example runs as it is printed, on Node's own WebSocket and on the one that comes with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_query.storage.tokens import TOKEN_FILE, add_token
from support.served import Served, served

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "javascript"
NODE = shutil.which("node")
BUILT_IN = "--experimental-websocket"
"""Gives Node 20 and 21 the WebSocket that later ones have; later ones know the flag still."""

LARGE = """
import { SessionQuery } from "./session_query.mjs";
const client = await SessionQuery.connect(process.argv[1], process.env.SESSION_QUERY_TOKEN);
const text = "é𝄞 checkout ".repeat(40_000);
const session = { version: 0, id: "large", createdAt: 1, cwd: "/w" };
const { next_seq } = await client.request("attach", { session });
const event = { type: "x/note", time: 1, data: { text } };
await client.request("append", { session_id: "large", from_seq: next_seq, events: [event] });
const params = { session_id: "large", seq: 0 };
const { value } = await client.request("query", { method: "read_event", params });
console.log(value.events[0].data.text === text);
client.close();
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if NODE is None:
        pytest.skip("Node is not installed; the JavaScript example was not run")
    with served(tmp_path_factory.mktemp("javascript") / "data") as running:
        yield running


def _node(*words: str, token: str) -> subprocess.CompletedProcess[str]:
    assert NODE is not None
    environ = os.environ | {"SESSION_QUERY_TOKEN": token}
    return subprocess.run(
        [NODE, *words], capture_output=True, text=True, timeout=60, check=False, env=environ, cwd=EXAMPLE
    )


def _has_built_in() -> bool:
    probe = "process.exit(typeof WebSocket === 'function' ? 0 : 1)"
    return _node(BUILT_IN, "-e", probe, token="").returncode == 0


@pytest.fixture(params=["minimal", "built in"])
def flags(request: pytest.FixtureRequest, service: Served) -> list[str]:
    if request.param == "minimal":
        return ["--no-experimental-websocket"] if _has_none_without() else []
    if not _has_built_in():
        pytest.skip("this Node has no WebSocket of its own")
    return [BUILT_IN]


def _has_none_without() -> bool:
    """Whether this Node's own WebSocket must be taken away to try the minimal one."""
    return _node("-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)", token="").returncode == 0


def test_the_example_publishes_and_calls(service: Served, flags: list[str]) -> None:
    _, token = add_token(
        service.token_file.parent / TOKEN_FILE, role="runtime", workspaces=["/home/ada/webshop"]
    )
    done = _node(*flags, "publish_and_call.mjs", service.url, token=token)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("connected to session-query, protocol 1\nstored through event 0\n")
    assert "javascript-" in done.stdout
    assert done.stdout.count("Why does the checkout of large carts time out?") >= 2, "found, and read"
    assert done.stdout.endswith("refused: SESSION_QUERY_TOOL_UNAUTHORIZED\n")


def test_answers_in_parts_and_long_frames(service: Served, flags: list[str]) -> None:
    done = _node(*flags, "--input-type=module", "-e", LARGE, service.url, token=service.token)
    assert (done.returncode, done.stdout) == (0, "true\n"), done.stderr


def test_a_refused_token_and_a_wrong_port_are_told(service: Served, flags: list[str]) -> None:
    refused = _node(*flags, "publish_and_call.mjs", service.url, token="sq_wrong")
    assert (refused.returncode, "UNAUTHENTICATED" in refused.stderr) == (1, True)
    nobody = _node(*flags, "publish_and_call.mjs", "ws://127.0.0.1:1/", token="sq_wrong")
    assert (nobody.returncode, "no connection to ws://127.0.0.1:1/" in nobody.stderr) == (1, True)
