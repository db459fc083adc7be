"""A token of another workspace against every message and every method of a real service.

What is hidden and what does not exist must be told apart by nothing: the answers are compared byte by byte.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import msgspec
import pytest
import trio

from session_query import Client, open_client
from session_query.protocol.tools.schemas import SPECS
from session_query.protocol.wire import messages as m
from session_query.protocol.wire.methods import METHODS
from session_query.storage.tokens import TOKEN_FILE, add_token, revoke_token
from support.attack import Attacker, Names, attacker, covered, open_peer, requests_about
from support.raw_websocket import RawPeer
from support.served import Served, served
from support.wire_samples import CLIENT_SAMPLES

pytestmark = pytest.mark.slow

OWN = "/open/desk"
AGENT = "own-agent"
VAULT = "/secret/vault"
AT = 1_700_000_000_000
LARGE = "the large exhibit " * 4000


@attrs.frozen
class World:
    """A service that holds one workspace with secrets and one without."""

    service: Served
    hidden: Names
    absent: Names
    tokens: dict[str, str]


def _event(text: str, time: int) -> dict[str, Any]:
    return {
        "type": "user/message",
        "time": AT + time,
        "surfaceOp": "append",
        "data": {
            "id": f"m{time}",
            "role": "user",
            "source": {"kind": "user"},
            "content": [{"type": "text", "text": text}],
        },
    }


def _header(session_id: str, cwd: str | None, **more: Any) -> dict[str, Any]:
    header = {"version": 0, "id": session_id, "createdAt": AT, **more}
    return header if cwd is None else header | {"cwd": cwd}


async def _publish(client: Client, header: dict[str, Any], *texts: str) -> None:
    publication = await client.publish(header)
    await publication.append([_event(text, number) for number, text in enumerate(texts)])


async def _furnish(service: Served) -> str:
    """Put the secrets in place; returns the locator of a spilled result of the operator's."""
    async with open_client(service.url, service.token) as operator:
        await _publish(operator, _header("hidden-target-1", VAULT), "the zeppelin is ready", LARGE)
        await _publish(
            operator, _header("hidden-child-1", VAULT, parentSession="hidden-target-1"), "zeppelin"
        )
        await _publish(operator, _header("hidden-homeless", None), "the zeppelin has no home")
        await _publish(operator, _header(AGENT, OWN), "an ordinary question")
        await _publish(operator, _header("own-child-1", OWN, parentSession="hidden-target-1"), "a fork of it")
        await _publish(operator, _header("own-child-2", OWN, parentSession="absent-target-1"), "a fork of it")
        found = await operator.call(
            "session_event_read", {"session_id": "hidden-target-1", "seq": 1}, reach="all"
        )
        assert isinstance(found.spilled, dict)
        return str(found.spilled["locator"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served(tmp_path_factory.mktemp("attacked") / "data") as service:
        locator = trio.run(_furnish, service)
        tokens = {
            role: add_token(service.token_file.parent / TOKEN_FILE, role=role, workspaces=[OWN])[1]  # type: ignore[arg-type]
            for role in ("reader", "runtime")
        }
        absent = locator[:-32] + secrets.token_hex(16)
        yield World(
            service,
            Names("hidden-target-1", VAULT, "zeppelin", locator),
            Names("absent-target-1", "/absent/vault", "zabbelin", absent),
            tokens,
        )


@asynccontextmanager
async def _watched(world: World, role: str) -> AsyncIterator[Attacker]:
    """An attacker's connection, while the hidden session is live."""
    async with open_client(world.service.url, world.service.token) as operator:
        await operator.publish(_header("hidden-target-1", VAULT))
        async with attacker(world.service.url, world.tokens[role]) as connection:
            yield connection


@pytest.mark.parametrize("role", ["reader", "runtime"])
async def test_hidden_and_missing_are_the_same_bytes_everywhere(world: World, role: str) -> None:
    hidden = list(requests_about(world.hidden, AGENT, OWN))
    absent = list(requests_about(world.absent, AGENT, OWN))
    covered(hidden)
    told: set[str] = set()
    async with _watched(world, role) as connection:
        for (what, about_hidden), (_, about_absent) in zip(hidden, absent, strict=True):
            first = world.hidden.masked(await connection.ask(about_hidden))
            second = world.absent.masked(await connection.ask(about_absent))
            assert first == second, what
            told.add(msgspec.json.decode(first)["type"])
            for secret in (b"hidden-", b"zeppelin", b"vault", b"exhibit"):
                assert secret not in first, what
    assert {"error", "result", "tools"} <= told, "a comparison of refusals alone shows little"


async def test_the_comparison_tells_them_apart_where_they_may_be_told_apart(world: World) -> None:
    """The control: for the operator the same requests do differ, for every tool and method that names."""
    differing: set[str] = set()
    unnamed = {"list_sessions", "health", "statistics", "metrics", "workspaces", "sources", "doctor", "index"}
    unnamed |= {"forget", "add_source", "drop_source"}  # these would change something
    async with attacker(world.service.url, world.service.token) as operator:
        pairs = zip(
            requests_about(world.hidden, AGENT, OWN), requests_about(world.absent, AGENT, OWN), strict=True
        )
        for (_, about_hidden), (_, about_absent) in pairs:
            if (
                about_hidden["type"] not in ("call", "query", "fetch")
                or about_hidden.get("method") in unnamed
            ):
                continue
            first = world.hidden.masked(await operator.ask(about_hidden))
            if first != world.absent.masked(await operator.ask(about_absent)):
                differing.add(about_hidden.get("tool") or about_hidden.get("method") or "fetch")
    assert differing == (set(SPECS) | set(METHODS) | {"fetch"}) - unnamed


@pytest.mark.parametrize(
    "method", ["trace_session", "read_session", "read_event", "list_events", "read_surface"]
)
async def test_a_parent_that_is_hidden_looks_like_one_that_is_missing(world: World, method: str) -> None:
    params: dict[str, Any] = {"seq": 0} if method == "read_event" else {}
    async with attacker(world.service.url, world.tokens["reader"]) as reader:
        answers = [
            await reader.ask({"type": "query", "method": method, "params": {"session_id": name, **params}})
            for name in ("own-child-1", "own-child-2")
        ]
    assert answers[0].replace(b"own-child-1", b"X") == answers[1].replace(b"own-child-2", b"X")
    assert b'"value"' in answers[0]
    assert b"target-1" not in answers[0], "nor is either named"


async def test_lists_and_pages_of_the_own_workspace_name_nothing_else(world: World) -> None:
    async with attacker(world.service.url, world.tokens["reader"]) as reader:
        for method, params in (
            ("list_sessions", {}),
            ("search_sessions", {"query": "fork", "match": "some"}),
            ("search_sessions", {"query": "an ordinary question", "limit": 1}),
            ("search_events", {"session_id": "own-child-1", "query": "fork", "limit": 1}),
        ):
            answer = await reader.ask({"type": "query", "method": method, "params": params})
            assert b"own-" in answer, method
            for secret in (b"hidden-", b"absent-", b"vault", b"zeppelin"):
                assert secret not in answer, method


async def test_another_workspaces_id_can_be_used_and_means_ones_own(world: World) -> None:
    """Nobody can shadow, take or even notice a hidden session by attaching its id (SPEC 16.6, 18.4)."""
    log = {
        "type": "query",
        "method": "read_session",
        "reach": [VAULT],
        "params": {"session_id": "hidden-target-1"},
    }
    async with attacker(world.service.url, world.service.token) as operator:
        before = await operator.ask(log)
        answers: list[list[bytes]] = []
        async with _watched(world, "runtime") as runtime:
            for name in ("hidden-target-1", "absent-target-1"):
                header = _header(name, OWN)
                append = {"type": "append", "session_id": name, "from_seq": 0, "events": [_event("mine", 1)]}
                call = {
                    "type": "call",
                    "agent": name,
                    "tool": "session_event_search",
                    "arguments": {"query": "zeppelin"},
                }
                read = {"type": "call", "agent": name, "tool": "session_event_read", "arguments": {"seq": 0}}
                steps = [
                    {"type": "attach", "session": header},
                    append,
                    {"type": "attach", "session": header | {"createdAt": 5}},
                    call,
                    read,
                    {"type": "detach", "session_id": name},
                    {"type": "attach", "session": header, "events": []},
                    {"type": "detach", "session_id": name},
                ]
                answers.append([(await runtime.ask(step)).replace(name.encode(), b"X") for step in steps])
        assert answers[0] == answers[1]
        assert b'"next_seq":0' in answers[0][0]
        assert b"mine" in answers[0][4]
        assert await operator.ask(log) == before, "the hidden one is as it was"


async def test_own_sessions_of_another_token_cannot_be_taken_but_by_its_own(world: World) -> None:
    path = world.service.token_file.parent / TOKEN_FILE
    other = add_token(path, role="runtime", workspaces=[OWN])[1]
    header = _header("contested", OWN)
    url = world.service.url
    async with (
        attacker(url, world.tokens["runtime"]) as first,
        attacker(url, world.tokens["runtime"]) as again,
        attacker(url, other) as thief,
    ):
        assert (await first.told({"type": "attach", "session": header}))["next_seq"] == 0
        refused = await thief.told({"type": "attach", "session": header})
        assert (refused["code"], refused["retry_after_ms"] > 0) == ("BUSY", True)
        event = {"type": "append", "session_id": "contested", "from_seq": 0, "events": [_event("x", 1)]}
        assert (await thief.told(event))["code"] == "NOT_ATTACHED"
        assert (await thief.told({"type": "detach", "session_id": "contested"}))["code"] == "NOT_ATTACHED"
        speaking = {"type": "call", "agent": "contested", "tool": "session_trace", "arguments": {}}
        assert (await thief.told(speaking))["code"] == "FORBIDDEN", "it may not speak for another's agent"
        assert (await again.told({"type": "attach", "session": header}))["next_seq"] == 0
        assert (await again.told(event))["through_seq"] == 0
        assert (await first.told(event))["code"] == "NOT_ATTACHED", "it was taken over"
        assert (await again.told(speaking))["type"] == "result"


async def test_a_spilled_result_is_its_tokens_alone(world: World) -> None:
    url, path = world.service.url, world.service.token_file.parent / TOKEN_FILE
    other = add_token(path, role="runtime", workspaces=[OWN])[1]
    read = {"type": "call", "agent": "talker", "tool": "session_event_read", "arguments": {"seq": 0}}
    async with attacker(url, world.tokens["runtime"]) as owner:
        await owner.told({"type": "attach", "session": _header("talker", OWN)})
        await owner.told(
            {"type": "append", "session_id": "talker", "from_seq": 0, "events": [_event(LARGE, 1)]}
        )
        locator = (await owner.told(read))["spilled"]["locator"]
        fetch = {"type": "fetch", "locator": locator}
        async with attacker(url, world.tokens["runtime"]) as same, attacker(url, other) as thief:
            assert "large exhibit" in (await same.told(fetch))["data"], "the same token on another line"
            unknown = fetch | {"locator": locator[:-32] + "0" * 32}
            assert await thief.ask(fetch) == await thief.ask(unknown), "what is another's does not exist"
            assert await thief.ask(fetch) == await same.ask(unknown)
            for crooked in (locator + "/../x", "../" + locator, locator.upper(), "spill:", "", "/etc/passwd"):
                assert await same.ask(fetch | {"locator": crooked}) == await same.ask(unknown)


# ---------------------------------------------------------------- tokens


async def test_without_a_good_token_nothing_is_answered(world: World) -> None:
    """Every message type after each way of having no token, all at once: refusals are delayed on purpose."""
    path = world.service.token_file.parent / TOKEN_FILE
    entry, revoked = add_token(path, role="operator", workspaces="*")
    assert revoke_token(path, entry.id)
    hellos = ("none", None, "sq_" + "A" * 43, revoked, world.tokens["reader"][:-1], "")
    refusals: list[tuple[Any, tuple[int, str]]] = []

    async def knock(kind: type[m.Message], token: str | None) -> None:
        sample = msgspec.to_builtins(CLIENT_SAMPLES[kind])
        async with await open_peer(world.service.url) as stream:
            peer = RawPeer(stream)
            await peer.handshake()
            if token != "none":
                await peer.say({"type": "hello", "token": token, "client": {"name": "x", "version": "1"}})
            await peer.say(sample)
            refusal = await peer.hear()
            assert refusal.pop("id", None) in (None, sample.get("id"))
            refusals.append((refusal, await peer.end()))

    async with trio.open_nursery() as nursery:
        for kind in m.CLIENT_MESSAGES:
            for token in hellos:
                nursery.start_soon(knock, kind, token)
    expected = {"type": "error", "code": "UNAUTHENTICATED", "message": "a valid token is needed"}
    assert refusals == [(expected, (1008, "unauthenticated"))] * (len(m.CLIENT_MESSAGES) * len(hellos))
