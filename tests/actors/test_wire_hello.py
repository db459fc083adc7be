"""Getting in: versions, origins, tokens, roles; and what everybody else is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
import trio_websocket as ws

from session_query.protocol.wire import messages as m
from session_query.protocol.wire.codec import ENCODINGS, Encoding
from session_query.storage import tokens as t
from support.raw_websocket import RawPeer
from support.wire_edge import HELLO_BYTES_TOO_MANY, ME, Edge, header, open_edge
from support.wire_samples import CLIENT_SAMPLES

Clock = trio.testing.MockClock
REQUESTS = [kind for kind in m.CLIENT_MESSAGES if kind is not m.Hello]
everybody_else = pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: m.tag_of(kind))


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_welcome_announces_role_and_limits(encoding: Encoding) -> None:
    async with open_edge(in_flight=7, frame_bytes=5_000_000) as edge, edge.peer(encoding, hello=None) as peer:
        welcome = await peer.hello("read")
        assert isinstance(welcome, m.Welcome)
        assert (welcome.protocol, welcome.role) == (1, "reader")
        assert (welcome.limits.in_flight, welcome.limits.frame_bytes) == (7, 5_000_000)
        assert welcome.instance == edge.server.state.instance
        assert peer.socket.subprotocol == f"session-query.v1.{encoding}"


async def test_json_is_spoken_when_nothing_is_asked_for() -> None:
    async with open_edge() as edge, edge.peer(subprotocols=()) as peer:
        assert peer.socket.subprotocol is None
        assert (await peer.ask(m.ToolsRequest(id=1))).prompt == "Search earlier sessions first."


async def test_foreign_versions_are_told_what_we_speak() -> None:
    async with open_edge() as edge, edge.peer(subprotocols=("session-query.v9.json",), hello=None) as peer:
        error = await peer.receive()
        assert (error.code, error.id) == ("UNSUPPORTED_VERSION", None)
        assert "session-query.v1.json" in error.message
        assert await peer.closed() == (1002, "unsupported version")


@everybody_else
async def test_nothing_is_answered_before_hello(kind: type[m.Message]) -> None:
    async with open_edge() as edge, edge.peer(hello=None) as peer:
        await peer.send(CLIENT_SAMPLES[kind])
        error = await peer.receive()
        assert (error.code, error.id) == ("UNAUTHENTICATED", CLIENT_SAMPLES[kind].id)  # type: ignore[attr-defined]
        assert (await peer.closed())[0] == 1008
        assert edge.service.calls == []


@pytest.mark.parametrize("secret", [None, "", "wrong", "id-run", "RUN", "run ", "gone", "\x00", "é" * 100])
@everybody_else
async def test_a_bad_token_opens_nothing(kind: type[m.Message], secret: str | None) -> None:
    async with open_edge() as edge, edge.peer(hello=None) as peer:
        await peer.send(m.Hello(client=ME, token=secret))
        await peer.send(CLIENT_SAMPLES[kind])  # also what is sent on top of it
        error = await peer.receive()
        assert (error.code, error.id, error.message) == ("UNAUTHENTICATED", None, "a valid token is needed")
        assert (await peer.closed())[0] == 1008
        assert edge.service.calls == []
        assert edge.server.state.throttle.failures == 1


@everybody_else
async def test_a_revoked_token_loses_its_connections(kind: type[m.Message], tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    entry, secret = t.add_token(path, role="operator", workspaces="*")
    async with open_edge(token_file=path, watch_s=1000.0) as edge, edge.peer(hello=secret) as peer:
        t.revoke_token(path, entry.id)
        await edge.server.state.tokens.refresh()
        for connection in edge.server.connections.values():
            connection.watch(trio.current_time(), edge.nursery)
        await peer.send(CLIENT_SAMPLES[kind])
        error = await peer.receive()
        assert (error.code, error.message) == ("UNAUTHENTICATED", "the token was revoked")
        assert await peer.closed() == (1008, "token revoked")
        assert [name for name, _ in edge.service.calls if name != "detach"] == []


async def test_a_revoked_token_cannot_come_back(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    entry, secret = t.add_token(path, role="operator", workspaces="*")
    async with open_edge(token_file=path) as edge:
        async with edge.peer(hello=secret):
            pass
        t.revoke_token(path, entry.id)
        async with edge.peer(hello=None) as peer:
            assert (await peer.hello(secret)).code == "UNAUTHENTICATED"


async def test_a_broken_token_file_admits_nobody_and_disconnects_nobody(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    _, secret = t.add_token(path, role="reader", workspaces=["/w"])
    async with open_edge(token_file=path) as edge, edge.peer(hello=secret) as inside:
        path.write_bytes(b"{")
        async with edge.peer(hello=None) as peer:
            assert (await peer.hello(secret)).code == "UNAUTHENTICATED"
        async with edge.peer(hello="op"):  # a fixed token does not depend on the file
            pass
        for connection in edge.server.connections.values():
            connection.watch(trio.current_time(), edge.nursery)
        assert (await inside.ask(m.ToolsRequest(id=1))).id == 1


async def test_failures_wait_longer_and_longer_and_good_tokens_never(
    autojump_clock: Clock,
) -> None:
    async with open_edge(auth_delay_s=1.0, auth_delay_max_s=3.0) as edge:
        waited = []
        for secret in ("a", "b", "c", "d"):
            async with edge.peer(hello=None) as peer:
                before = trio.current_time()
                await peer.hello(secret)
                waited.append(trio.current_time() - before)
        assert waited == pytest.approx([1.0, 2.0, 3.0, 3.0])
        before = trio.current_time()
        async with edge.peer(hello="run"):
            assert trio.current_time() == before


async def test_silence_after_the_handshake_ends_it(autojump_clock: Clock) -> None:
    async with open_edge(hello_s=3.0) as edge, edge.peer(hello=None) as peer:
        before = trio.current_time()
        assert await peer.closed() == (1008, "no hello")
        assert trio.current_time() - before == pytest.approx(3.0)


async def test_silence_before_the_handshake_ends_it(autojump_clock: Clock) -> None:
    async with open_edge(hello_s=3.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        before = trio.current_time()
        await edge.server.serve_stream(theirs)
        assert trio.current_time() - before == pytest.approx(3.0)
        assert await ours.receive_some() == b""
        assert edge.server.state.refused == {"handshake": 1}


async def test_a_peer_that_goes_away_in_the_handshake_is_gone_at_once(autojump_clock: Clock) -> None:
    async with open_edge(hello_s=3.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        await ours.send_all(b"GET / HTTP/1.1\r\n")
        await ours.aclose()
        before = trio.current_time()
        await edge.server.serve_stream(theirs)
        assert trio.current_time() == before


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
        b"SSH-2.0-x\r\n",
    ],
)
async def test_other_protocols_are_refused(request_bytes: bytes, autojump_clock: Clock) -> None:
    async with open_edge(hello_s=1.0) as edge:
        ours, theirs = trio.testing.memory_stream_pair()
        await ours.send_all(request_bytes)
        await edge.server.serve_stream(theirs)
        assert edge.server.state.refused == {"handshake": 1}


async def test_an_unknown_peer_may_not_send_much() -> None:
    async with open_edge() as edge, edge.peer(hello=None) as peer:
        await peer.send_raw("x" * HELLO_BYTES_TOO_MANY)
        assert (await peer.closed())[0] == 1006
        assert edge.server.state.throttle.failures == 0


@pytest.mark.parametrize(
    ("first", "code", "error_id"),
    [
        ("{nonsense", "BAD_FRAME", None),
        ("[]", "BAD_FRAME", None),
        (b"\x80", "BAD_FRAME", None),
        ('{"type":"hello","token":"run"}', "BAD_FRAME", None),
        ('{"type":"hello","token":"run","client":{"name":"x","version":"1"},"more":1}', "BAD_FRAME", None),
        ('{"type":"greeting","id":4}', "UNKNOWN_MESSAGE", 4),
    ],
)
async def test_a_first_frame_that_is_no_message_is_told_so_and_says_nothing_about_us(
    first: str | bytes, code: str, error_id: int | None
) -> None:
    async with open_edge() as edge, edge.peer(hello=None) as peer:
        await peer.send_raw(first)
        error = await peer.receive()
        assert (error.code, error.id) == (code, error_id)
        assert error.message
        assert await peer.closed() == (1008, "no hello")
        assert edge.server.state.throttle.failures == 0, "nobody has guessed a token"
        assert edge.service.calls == []


async def test_hello_is_said_once() -> None:
    async with open_edge() as edge, edge.peer() as peer:
        error = await peer.hello("op")
        assert (error.code, error.id) == ("BAD_FRAME", None)
        assert (await peer.ask(m.ToolsRequest(id=1))).id == 1


@pytest.mark.parametrize(
    "origin", [b"https://evil.example", b"null", b"http://localhost", b"https://ok.example.evil", b""]
)
async def test_browser_origins_are_refused(origin: bytes) -> None:
    async with open_edge(allowed_origins=frozenset({"https://ok.example"})) as edge:
        with pytest.RaisesGroup(ws.ConnectionRejected, flatten_subgroups=True) as caught:
            async with edge.peer(headers=[(b"Origin", origin)]):
                pass
        rejected = caught.value.exceptions[0]
        while isinstance(rejected, BaseExceptionGroup):
            rejected = rejected.exceptions[0]
        assert isinstance(rejected, ws.ConnectionRejected)
        assert rejected.status_code == 403
        await trio.testing.wait_all_tasks_blocked()
        assert edge.server.state.refused == {"origin": 1}


async def test_a_listed_origin_may_come() -> None:
    good = [(b"Origin", b"https://ok.example")]
    async with (
        open_edge(allowed_origins=frozenset({"https://ok.example"})) as edge,
        edge.peer(headers=good) as peer,
    ):
        assert (await peer.ask(m.ToolsRequest(id=1))).id == 1


async def test_a_full_server_says_so(autojump_clock: Clock) -> None:
    async with open_edge(connections_max=1) as edge, edge.peer():
        with pytest.RaisesGroup(ws.ConnectionRejected, flatten_subgroups=True):
            async with edge.peer():
                pass
        await trio.testing.wait_all_tasks_blocked()
        assert edge.server.state.refused == {"full": 1}


async def _sits(edge: Edge, *, after_handshake: bool) -> trio.abc.Stream:
    """A peer that has come and says no hello; the line as it sees it."""
    ours, theirs = trio.testing.memory_stream_pair()
    edge.nursery.start_soon(edge.server.serve_stream, theirs)
    if after_handshake:
        await RawPeer(ours).handshake()
    await trio.testing.wait_all_tasks_blocked()
    return ours


async def _dropped(line: trio.abc.Stream) -> bool:
    """Whether the server has dropped a line without a word. Looks only at what has happened already."""
    with trio.move_on_after(0.001):
        return await line.receive_some() == b""
    return False


@pytest.mark.parametrize("after_handshake", [False, True])
async def test_peers_without_a_hello_keep_nobody_out(after_handshake: bool, autojump_clock: Clock) -> None:
    """The door is full of peers that only sit there; who has a token comes in at once, the oldest goes."""
    async with open_edge(unauthenticated_max=3, hello_s=1000.0, close_s=1000.0) as edge:
        before = trio.current_time()
        idle = [await _sits(edge, after_handshake=after_handshake) for _ in range(3)]
        async with edge.peer() as peer:
            assert isinstance(await peer.ask(m.ToolsRequest(id=1)), m.Tools)
            assert trio.current_time() == before, "it has waited for nobody"
            assert [await _dropped(line) for line in idle] == [True, False, False]
            late = [await _sits(edge, after_handshake=after_handshake) for _ in range(5)]
            assert len(edge.server.state.unauthenticated) == 3
            assert [await _dropped(line) for line in idle + late] == [True] * 5 + [False] * 3
            assert isinstance(await peer.ask(m.ToolsRequest(id=2)), m.Tools), "who is in stays in"
        snapshot = edge.server.statistics()
        assert (snapshot["unauthenticated_dropped"], snapshot["refused"]) == (5, {})
        for line in idle + late:
            await trio.aclose_forcefully(line)


async def test_peers_without_a_hello_do_not_fill_the_house(autojump_clock: Clock) -> None:
    async with open_edge(connections_max=2, hello_s=1000.0, close_s=1000.0) as edge:
        lines = [await _sits(edge, after_handshake=True) for _ in range(2)]
        async with edge.peer(), edge.peer():
            assert [await _dropped(line) for line in lines] == [True, True]
            assert len(edge.server.connections) == 2
            with pytest.RaisesGroup(ws.ConnectionRejected, flatten_subgroups=True):
                async with edge.peer():
                    pass
        for line in lines:
            await trio.aclose_forcefully(line)


async def test_a_peer_that_is_crowded_out_may_be_checking_its_token(autojump_clock: Clock) -> None:
    """A refused token waits longer and longer before it is told; that, too, keeps nobody out."""
    async with open_edge(unauthenticated_max=1, auth_delay_s=500.0, auth_delay_max_s=500.0) as edge:
        before = trio.current_time()
        async with edge.peer(hello=None) as guesser:
            await guesser.send(m.Hello(client=ME, token="guess"))
            await trio.testing.wait_all_tasks_blocked()
            async with edge.peer():
                assert trio.current_time() == before
            assert (await guesser.closed())[0] == 1006
        await edge.settled()
        assert edge.server.state.ends["crowded out"] == 1


MAY = {
    "runtime": {"attach", "append", "detach", "tools", "call", "fetch", "cancel"},
    "reader": {"tools", "call", "query", "fetch", "cancel"},
    "operator": {"attach", "append", "detach", "tools", "call", "query", "fetch", "cancel"},
}


@everybody_else
@pytest.mark.parametrize(("secret", "role"), [("run", "runtime"), ("read", "reader"), ("op", "operator")])
async def test_roles(kind: type[m.Message], secret: str, role: str) -> None:
    """Every message type against every role: FORBIDDEN before the service hears of it, or on to it."""
    async with open_edge() as edge, edge.peer(hello=secret) as peer:
        if kind is m.Cancel:
            await peer.send(CLIENT_SAMPLES[kind])
            assert (await peer.ask(m.ToolsRequest(id=1))).id == 1
            return
        answer = await peer.ask(CLIENT_SAMPLES[kind])
        allowed = m.tag_of(kind) in MAY[role]
        forbidden = isinstance(answer, m.Error) and answer.code == "FORBIDDEN"
        if not allowed:
            assert forbidden
            assert edge.service.calls == []
        elif kind not in (m.Call, m.Fetch):  # those name a session and a result that are not there
            assert not forbidden


async def test_only_the_operator_sees_statistics() -> None:
    async with open_edge() as edge, edge.peer(hello="read") as reader, edge.peer(hello="op") as operator:
        assert (await reader.ask(m.Query(id=1, method="statistics"))).code == "FORBIDDEN"
        assert (await reader.ask(m.Query(id=2, method="health"))).value == {"ready": True}
        value = (await operator.ask(m.Query(id=1, method="statistics"))).value
        assert value["service"] == {"sessions": 0}
        assert value["connections"]["opened"] == 2
        assert value["connections"]["errors"] == {"FORBIDDEN": 1}


async def test_attaching_outside_the_listed_workspaces_is_forbidden() -> None:
    async with open_edge() as edge, edge.peer() as runtime, edge.peer(hello="homeless") as homeless:
        for cwd in ("/W", "/w/", "/", "", None):
            answer = await runtime.ask(m.Attach(id=1, session=header(cwd=cwd)))
            assert answer.code == "FORBIDDEN", cwd
        assert (await runtime.ask(m.Attach(id=1, session=header(cwd="/v")))).next_seq == 0
        assert (await homeless.ask(m.Attach(id=1, session=header("s2", cwd="/v")))).code == "FORBIDDEN"
        assert (await homeless.ask(m.Attach(id=1, session=header("s2", cwd=None)))).next_seq == 0
        for broken in (None, [], "s", {**header(), "cwd": 5}, {**header(), "cwd": None}):
            answer = await runtime.ask(m.Attach(id=1, session=broken))
            assert answer.code == "INVALID_HEADER", broken
