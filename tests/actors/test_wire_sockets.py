"""The edge on real ports: a foreign client in its own process, TLS, and where it will not listen."""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from session_query.actors.edge import listeners
from session_query.actors.edge.server import WebSocketServer, serve_websocket
from session_query.actors.edge.server_config import ServerConfig
from session_query.protocol.errors import Code, QueryError
from support.raw_websocket import RawPeer
from support.wire_edge import TOKENS
from support.wire_fake import FakeService

FOREIGN = Path(__file__).parents[1] / "support" / "foreign_client.py"


@pytest.fixture
async def service() -> FakeService:
    return FakeService()


async def start(nursery: trio.Nursery, service: FakeService, **settings: Any) -> WebSocketServer:
    config = ServerConfig(**{"tokens": TOKENS, "settle_s": 1.0, "close_s": 0.5, **settings})
    server: WebSocketServer = await nursery.start(serve_websocket, service, config)
    return server


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_a_foreign_client_in_its_own_process(
    encoding: str, service: FakeService, nursery: trio.Nursery
) -> None:
    server = await start(nursery, service)
    command = [sys.executable, str(FOREIGN), server.url, "run", encoding]
    with trio.fail_after(60):
        done = await trio.run_process(command, capture_stdout=True)
    seen = json.loads(done.stdout)
    assert seen == {
        "subprotocol": f"session-query.v1.{encoding}",
        "welcome": ["welcome", 1, "runtime"],
        "attached": {"type": "attached", "id": 1, "session_id": "foreign", "next_seq": 0},
        "appended": {"type": "appended", "id": 2, "through_seq": 0},
        "again": {"type": "appended", "id": 3, "through_seq": 0},
        "tools": ["find", "read"],
        "big": [300_000, True],
        "cancelled": {
            "type": "error",
            "id": 6,
            "code": "SESSION_QUERY_ABORTED",
            "message": "the request was cancelled",
            "abort": {"kind": "cancelled", "reason": {"by": "foreign"}},
        },
        "unknown": "UNKNOWN_MESSAGE",
        "detached": {"type": "detached", "id": 8},
        "closed": 1000,
    }
    assert service.sessions["foreign"].events[0]["data"] == {"text": "grüße 你好 𝄞"}
    server.stop(grace_s=0)


async def test_tls(service: FakeService, nursery: trio.Nursery, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.private_key_pem.write_to_path(key)
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(cert, append=True)
    server = await start(nursery, service, tls_cert=cert, tls_key=key)
    assert server.url.startswith("wss://127.0.0.1:")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    stream = await trio.open_ssl_over_tcp_stream(
        "127.0.0.1", server.port, ssl_context=context, https_compatible=True
    )
    async with stream:
        peer = RawPeer(stream)
        assert (await peer.handshake()).startswith(b"HTTP/1.1 101")
        assert (await peer.hello())["type"] == "welcome"
        big = {
            "type": "call",
            "id": 1,
            "tool": "read",
            "arguments": {"do": "big", "n": 100_000},
            "workspace": "/w",
        }
        await peer.say(big)
        assert (await peer.hear())["type"] == "part"
    async with await trio.open_tcp_stream("127.0.0.1", server.port) as plain:
        with pytest.raises(EOFError):
            await RawPeer(plain).handshake()
    server.stop(grace_s=0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
async def test_other_machines_are_refused_without_tls(
    host: str, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_binding(*args: Any, **kwargs: Any) -> list[trio.SocketListener]:
        raise AssertionError("nothing may be bound")

    monkeypatch.setattr(listeners.trio, "open_tcp_listeners", no_binding)
    with pytest.raises(QueryError, match="use TLS"):
        await serve_websocket(service, ServerConfig(tokens=TOKENS, host=host))


async def test_an_explicit_word_or_tls_opens_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []

    async def pretend(port: int, *, host: str) -> list[trio.SocketListener]:
        bound.append(host)
        return []

    monkeypatch.setattr(listeners.trio, "open_tcp_listeners", pretend)
    await listeners.open_listeners(ServerConfig(tokens=TOKENS, host="192.0.2.7", allow_plain_remote=True))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    await listeners.open_listeners(ServerConfig(tokens=TOKENS, host="192.0.2.8", ssl_context=context))
    assert bound == ["192.0.2.7", "192.0.2.8"]


async def test_loopback_by_any_name(service: FakeService, nursery: trio.Nursery) -> None:
    server = await start(nursery, service, host="localhost")
    async with await trio.open_tcp_stream("localhost", server.port) as stream:
        assert (await RawPeer(stream).handshake()).startswith(b"HTTP/1.1 101")
    server.stop(grace_s=0)


@pytest.mark.parametrize("host", ["", "no.such.host.invalid", "127.0.0.1.", "1.2.3.4.5"])
async def test_no_address_is_a_config_error(host: str, service: FakeService) -> None:
    with pytest.raises(QueryError) as caught:
        await serve_websocket(service, ServerConfig(tokens=TOKENS, host=host, port=0))
    assert caught.value.code is Code.INVALID_CONFIG


async def test_a_port_in_use_is_an_os_error(service: FakeService, nursery: trio.Nursery) -> None:
    server = await start(nursery, service)
    with pytest.raises(OSError, match="in use"):
        await serve_websocket(service, ServerConfig(tokens=TOKENS, port=server.port))
    server.stop(grace_s=0)


async def test_useless_tls_files_are_a_config_error(service: FakeService, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nonsense")
    for cert in ("cert.pem", "missing.pem"):
        config = ServerConfig(tokens=TOKENS, tls_cert=tmp_path / cert, tls_key=tmp_path / cert)
        with pytest.raises(QueryError, match="TLS files"):
            await serve_websocket(service, config)


async def test_an_unsafe_token_file_stops_the_start(service: FakeService, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text('{"tokens":[]}')
    path.chmod(0o644)
    with pytest.raises(QueryError, match="0600"):
        await serve_websocket(service, ServerConfig(token_file=path))


@pytest.mark.parametrize(
    "settings",
    [
        {"port": -1},
        {"port": 65_536},
        {"in_flight": 0},
        {"hello_s": 0},
        {"tls_cert": Path("x")},
        {"tls_cert": Path("x"), "tls_key": Path("y"), "ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)},
        {"tokens": ()},
    ],
)
def test_settings_are_checked_before_anything_opens(settings: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as caught:
        ServerConfig(**{"tokens": TOKENS, **settings})
    assert caught.value.code is Code.INVALID_CONFIG
