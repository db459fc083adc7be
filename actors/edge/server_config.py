"""Settings of the WebSocket edge, checked before a port is opened."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

import attrs

from ...protocol.errors import Code, QueryError
from ...protocol.wire import limits
from ...storage.tokens import StoredToken

_TIMES: Final = (
    "hello_s", "keepalive_s", "keepalive_timeout_s", "stall_s", "settle_s", "close_s", "watch_s",
)  # fmt: skip
_SIZES: Final = (
    "frame_bytes", "frame_containers", "part_bytes", "fetch_bytes", "answer_bytes", "unsent_bytes",
    "in_flight",
    "connections_max", "unauthenticated_max", "bad_frames_max",
)  # fmt: skip


@attrs.frozen(kw_only=True)
class ServerConfig:
    """What the edge can be told. Sizes in bytes, times in seconds.

    ``host``: loopback unless there is TLS or ``allow_plain_remote``. ``port`` 0: any free one.
    ``token_file``: see ``storage.tokens``; read again whenever it changes. ``tokens``: further ones, fixed.
    ``tls_cert``/``tls_key``: PEM files; or a ready ``ssl_context`` from an embedding host.
    ``allowed_origins``: browser origins that may connect; all others, and there are none by default, are
    refused. Programs send no origin.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token_file: Path | None = None
    tokens: tuple[StoredToken, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    ssl_context: ssl.SSLContext | None = None
    allow_plain_remote: bool = False
    allowed_origins: frozenset[str] = frozenset()
    server_name: str = "session-query"
    server_version: str = "0"

    frame_bytes: int = limits.FRAME_BYTES
    frame_containers: int = limits.FRAME_CONTAINERS
    part_bytes: int = limits.PART_BYTES
    fetch_bytes: int = limits.FETCH_BYTES
    in_flight: int = limits.IN_FLIGHT
    answer_bytes: int = 256 * 1024 * 1024
    """Largest encoded answer; it exists whole in memory while its parts are sent."""
    unsent_bytes: int = 4 * 1024 * 1024
    """Encoded answers one connection may have waiting for its peer. Above it answers wait unencoded; when
    small frames (errors, progress) double it, the peer is not reading and the connection is closed."""

    connections_max: int = 4096
    unauthenticated_max: int = 256
    bad_frames_max: int = 16
    receive_buffer_bytes: int = 256 * 1024
    """At 256 KB messages a 4 KiB buffer costs three times the CPU: it is chunking that costs, not masking."""

    hello_s: float = 10.0
    keepalive_s: float = 20.0
    """A ping goes out after this much silence."""
    keepalive_timeout_s: float = 60.0
    """Silence after a ping that ends the connection; long, as a busy single-threaded peer is no dead one."""
    stall_s: float = 30.0
    """Unsent bytes and no byte accepted for this long: the peer is too slow."""
    settle_s: float = 10.0
    """How long a request may take to notice that its peer has gone, before its task is cancelled."""
    close_s: float = 2.0
    watch_s: float = 1.0
    """How often silence, stalls and revoked tokens are looked at."""
    auth_delay_s: float = 0.25
    auth_delay_max_s: float = 5.0
    busy_retry_ms: int = 100
    progress_every_s: float = 0.1

    def __attrs_post_init__(self) -> None:
        """Raise ``QueryError`` INVALID_CONFIG for the first setting that cannot be."""
        _require(0 <= self.port <= 65_535, "port must be 0..65535")
        for name in _TIMES:
            _require(getattr(self, name) > 0, f"{name} must be positive")
        for name in _SIZES:
            _require(getattr(self, name) >= 1, f"{name} must be at least 1")
        _require((self.tls_cert is None) == (self.tls_key is None), "tls_cert and tls_key go together")
        _require(self.ssl_context is None or self.tls_cert is None, "give ssl_context or files, not both")
        _require(self.token_file is not None or bool(self.tokens), "there must be a token file or tokens")

    @property
    def encrypted(self) -> bool:
        return self.ssl_context is not None or self.tls_cert is not None


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise QueryError(Code.INVALID_CONFIG, what)
