"""What a peer is told when it comes: the welcome, or that there is no common version."""

from __future__ import annotations

from ...protocol.wire import messages as m
from ...protocol.wire.codes import WireCode
from ...protocol.wire.identity import Role
from ...protocol.wire.limits import PROTOCOL_VERSION
from .server_config import ServerConfig


def welcome(config: ServerConfig, instance: str, role: Role) -> m.Welcome:
    """What a peer is told when it is let in."""
    return m.Welcome(
        protocol=PROTOCOL_VERSION,
        server=m.Software(name=config.server_name, version=config.server_version),
        instance=instance,
        role=role,
        limits=m.Limits(
            frame_bytes=config.frame_bytes,
            frame_containers=config.frame_containers,
            part_bytes=config.part_bytes,
            fetch_bytes=config.fetch_bytes,
            in_flight=config.in_flight,
            keepalive_ms=int(config.keepalive_s * 1000),
        ),
        features=["follow", "parts"],
    )


def unsupported() -> m.Error:
    """For a peer that asked for subprotocols of other versions alone."""
    return m.Error(
        code=WireCode.UNSUPPORTED_VERSION.value,
        message="this server speaks session-query.v1.json and session-query.v1.msgpack",
    )
