"""Where the edge listens: loopback only unless there is TLS or an explicit word; one port for all."""

from __future__ import annotations

import ipaddress
import logging
import socket
import ssl
from typing import TypeAlias

import trio

from ...protocol.errors import Code, QueryError
from .server_config import ServerConfig

logger = logging.getLogger(__name__)

Listener: TypeAlias = trio.SocketListener | trio.SSLListener[trio.SocketStream]


async def open_listeners(config: ServerConfig) -> list[Listener]:
    """Bind the configured address, behind TLS if there is any.

    Raises: QueryError INVALID_CONFIG TLS files that cannot be used, then an address that is not allowed;
        OSError: the port cannot be bound.
    """
    context = await _ssl_context(config)
    addresses = await _addresses(config)
    if not config.encrypted and not all(_is_loopback(address) for address in addresses):
        if not config.allow_plain_remote:
            raise QueryError(
                Code.INVALID_CONFIG,
                f"{config.host} is reachable from other machines: use TLS, or allow it without explicitly",
            )
        logger.warning("serving %s without encryption, as told", config.host)
    # With port 0 every further address would get another port: bind the first alone.
    hosts = addresses[:1] if config.port == 0 else addresses
    bound: list[trio.SocketListener] = []
    try:
        for host in hosts:
            bound += await trio.open_tcp_listeners(config.port, host=host)
    except BaseException:
        for listener in bound:
            listener.socket.close()
        raise
    if context is None:
        return list(bound)
    return [trio.SSLListener(listener, context, https_compatible=True) for listener in bound]


async def _addresses(config: ServerConfig) -> list[str]:
    if not config.host:
        raise QueryError(Code.INVALID_CONFIG, "host must name an address")
    try:
        found = await trio.socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as exc:
        raise QueryError(Code.INVALID_CONFIG, f"{config.host} is no address of this machine") from exc
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


async def _ssl_context(config: ServerConfig) -> ssl.SSLContext | None:
    cert, key = config.tls_cert, config.tls_key
    if cert is None or key is None:
        return config.ssl_context
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        await trio.to_thread.run_sync(context.load_cert_chain, cert, key)
    except (OSError, ssl.SSLError) as exc:
        raise QueryError(Code.INVALID_CONFIG, f"the TLS files cannot be used: {exc}") from exc
    return context


def port_of(listener: Listener) -> int:
    """The bound port."""
    inner = listener.transport_listener if isinstance(listener, trio.SSLListener) else listener
    assert isinstance(inner, trio.SocketListener)
    return int(inner.socket.getsockname()[1])
