"""`session-query token`: made, listed, rotated and revoked, while a service runs on the same data."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from session_query import open_client
from session_query.actors.clients import NO_RECONNECT, Client, ServerError, Unauthenticated
from session_query.storage.tokens import OPERATOR_FILE, TOKEN_FILE, read_tokens
from support.command_line import CommandLine
from support.served import Served, served

WAIT_S = 10.0


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(tmp_path / "data", capsys, monkeypatch)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tokens") / "data") as running:
        yield running


@pytest.fixture
def live_cli(
    service: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    return CommandLine(service.token_file.parent, capsys, monkeypatch)


def made(cli: CommandLine, name: str, *more: str) -> tuple[str, str]:
    """(id, token)"""
    answer: Any = cli("token", "create", name, "--json", *more).json
    return answer["id"], answer["token"]


async def is_admitted(service: Served, token: str) -> bool:
    try:
        async with open_client(service.url, token, backoff=NO_RECONNECT) as client:
            return (await client.query("health") or {}) != {}
    except Unauthenticated:
        return False


async def ended(client: Client) -> str:
    """Wait until the server has put the client out; says with which code."""
    with trio.fail_after(WAIT_S):
        while True:
            try:
                await client.tools()
            except ServerError as error:
                return error.code
            await trio.sleep(0.05)


def test_a_token_is_shown_once_and_kept_as_a_hash(cli: CommandLine) -> None:
    done = cli("token", "create", "ci", "--role", "reader", "--workspace", "/w", "--no-workspace")
    secret = done.out.strip()
    assert done.status == 0
    assert secret.startswith("sq_")
    assert "shown only now" in done.err
    files = [path for path in cli.data_dir.iterdir() if path.is_file()]
    assert all(secret.encode() not in path.read_bytes() for path in files)
    if os.name == "posix":
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    listed: Any = cli("token", "list", "--json").json
    assert [(row["name"], row["role"], row["workspaces"], row["no_workspace"]) for row in listed] == [
        ("ci", "reader", ["/w"], True)
    ]
    assert "hash" not in listed[0]
    assert secret not in cli("token", "list").out


def test_workspaces_are_kept_letter_by_letter(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.data_dir.parent)
    made(cli, "x", "--role", "runtime", "--workspace", "/w/", "--workspace", "C:\\src", "--workspace", "sub")
    (entry,) = read_tokens(cli.data_dir / TOKEN_FILE)
    assert set(entry.workspaces) == {"/w/", "C:\\src", str(cli.data_dir.parent / "sub")}


def test_a_name_cannot_move_the_cursor(cli: CommandLine) -> None:
    made(cli, "a\x1b[2Jb", "--role", "operator")
    assert "\x1b" not in cli("token", "list").out


@pytest.mark.slow
async def test_what_a_running_service_admits_follows_the_file(service: Served, live_cli: CommandLine) -> None:
    token_id, secret = made(live_cli, "agent", "--role", "reader", "--workspace", "/w")
    assert await is_admitted(service, secret)
    async with open_client(service.url, secret, backoff=NO_RECONNECT) as client:
        await client.query("health")
        assert live_cli("token", "revoke", token_id).status == 0
        assert not await is_admitted(service, secret)
        assert await ended(client) == "UNAUTHENTICATED"
    assert live_cli("token", "revoke", token_id).status == 3
    assert "revoked" in live_cli("token", "list").out


@pytest.mark.slow
async def test_a_rotated_token_keeps_its_place_and_loses_its_secret(
    service: Served, live_cli: CommandLine
) -> None:
    token_id, old = made(live_cli, "runtime", "--role", "runtime", "--no-workspace")
    header = {"version": 0, "id": "homeless", "createdAt": 1}
    async with open_client(service.url, old, backoff=NO_RECONNECT) as client:
        publication = await client.publish(header)
        await publication.append([{"type": "turn/start", "time": 1, "data": {"turn": 1}}])
        answer: Any = live_cli("token", "rotate", token_id, "--json").json
        assert not await is_admitted(service, old)
        assert await ended(client) == "UNAUTHENTICATED"
    async with open_client(service.url, answer["token"], backoff=NO_RECONNECT) as client:
        again = await client.publish(header)
        assert again.next_seq >= 1, "the same session: its place is the token's id, not its secret"


@pytest.mark.slow
async def test_the_local_operator_can_be_rotated(service: Served, live_cli: CommandLine) -> None:
    listed: Any = live_cli("token", "list", "--json").json
    (local,) = [row for row in listed if row["name"] == "local operator"]
    old = service.token
    answer: Any = live_cli("token", "rotate", local["id"], "--json").json
    assert "token" not in answer, "it goes into the private file, not to a terminal"
    assert Path(answer["file"]) == service.token_file
    assert service.token != old
    assert await is_admitted(service, service.token)
    assert not await is_admitted(service, old)
    if os.name == "posix":
        assert stat.S_IMODE(service.token_file.stat().st_mode) == 0o600


def test_only_good_tokens_can_be_rotated(cli: CommandLine) -> None:
    token_id, _ = made(cli, "x", "--role", "operator")
    cli("token", "revoke", token_id)
    for wrong in (token_id, "nobody"):
        done = cli("token", "rotate", wrong)
        assert (done.status, "no such token" in done.err) == (3, True)
    assert not (cli.data_dir / OPERATOR_FILE).exists()


def test_rotating_needs_no_service(cli: CommandLine) -> None:
    token_id, old = made(cli, "x", "--role", "operator")
    new = cli("token", "rotate", token_id).out.strip()
    assert new.startswith("sq_")
    assert new != old
    assert json.loads(cli("token", "list", "--json").out)[0]["id"] == token_id
